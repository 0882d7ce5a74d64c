"""The port of a face prior: latents of people who do not exist, decoded into pictures with gradients."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class Prior(Protocol):
    """A generator of faces over W (one latent for all slots) and W+ (one for each slot)."""

    @property
    def name(self) -> str:
        """What it was loaded by."""
        ...

    @property
    def slots(self) -> int:
        """How many places of the network take a latent of their own in W+."""
        ...

    @property
    def latent_dim(self) -> int:
        """Numbers in one latent."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """Heights (and widths) that ``decode`` can give, ascending."""
        ...

    @property
    def device(self) -> "torch.device":
        """Where latents and pictures live."""
        ...

    def mean_latent(self) -> "torch.Tensor":
        """(latent_dim,), the average of W."""
        ...

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> "torch.Tensor":
        """(count, latent_dim) of W, drawn towards the mean: mean + truncation · (w − mean)."""
        ...

    def decode(self, latents: "torch.Tensor", size: int) -> "torch.Tensor":
        """(n, 3, size, size) RGB from 0 to 1 of (n, latent_dim) or (n, slots, latent_dim)."""
        ...
