"""What generators of the StyleGAN family share: z becomes w, w is drawn towards the mean, and is decoded."""

from collections.abc import Sequence
from copy import copy, deepcopy

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from unface.errors import UnfaceError
from unface.seeds import stream

_BLOCK = 64  # latents mapped at a time


class Synthesis(torch.nn.Module):
    """From W+ to pictures: ``forward`` takes (n, slots, latent_dim) and a size, and gives values of about −1 to 1."""

    slots: int
    latent_dim: int
    sizes: tuple[int, ...]


class Mapping(torch.nn.Module):
    """z → w: unit mean square, then layers of (out, in) weights and (out,) biases with leaky rectifiers."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
        super().__init__()
        self.dim = weights[0].shape[1]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(w.shape[1], w.shape[0]) for w in weights)
        for layer, weight, bias in zip(self.layers, weights, biases, strict=True):
            layer.load_state_dict({"weight": weight, "bias": bias})

    def forward(self, z: Tensor) -> Tensor:
        w = z * (z.square().mean(dim=1, keepdim=True) + 1e-8).rsqrt()
        for layer in self.layers:
            w = functional.leaky_relu(layer(w), 0.2) * 2**0.5
        return w


class StylePrior:
    """A Prior of a mapping, a synthesis and a mean; where the mean is None it is measured."""

    def __init__(
        self, name: str, mapping: Mapping, synthesis: Synthesis, mean: Tensor | None = None, device: str = "cpu"
    ) -> None:
        self.name, self.sizes = name, synthesis.sizes
        self.slots, self.latent_dim = synthesis.slots, synthesis.latent_dim
        # The mapping stays on the CPU: it is small, and there it gives every machine's GPU the same latents.
        self._mapping = mapping.eval().requires_grad_(False)
        self._synthesis = synthesis.eval().requires_grad_(False).to(device)
        if mean is None:
            mean = self._mapped(4096, stream(0, "prior", "mean")).double().mean(dim=0).float()
        self._mean = mean.cpu()
        self._checked = True
        self._tuned: dict[tuple[torch.dtype, bool], StylePrior] = {}

    @property
    def device(self) -> torch.device:
        """Where latents and pictures live."""
        return self._weight.device

    def mean_latent(self) -> Tensor:
        """(latent_dim,), the average of W."""
        return self._mean.to(self.device)

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> Tensor:
        """(count, latent_dim) of W; a longer sample of the same seed begins with the shorter one."""
        if count < 1:
            raise UnfaceError(f"{self.name}: {count} latents were asked for; expected 1 or more")
        if not 0 < truncation <= 1.5:
            raise UnfaceError(f"{self.name}: truncation is {truncation}; expected above 0 and at most 1.5")
        drawn = self._mapped(count, stream(seed, "prior", "sample"))
        return torch.lerp(self._mean, drawn, truncation).to(self.device)

    def decode(self, latents: Tensor, size: int) -> Tensor:
        """(n, 3, size, size) RGB from 0 to 1 of (n, latent_dim) or (n, slots, latent_dim); differentiable."""
        if size not in self.sizes:
            raise UnfaceError(f"{self.name}: cannot give {size} px; expected one of {', '.join(map(str, self.sizes))}")
        shape = tuple(latents.shape)
        if shape[1:] not in ((self.latent_dim,), (self.slots, self.latent_dim)):
            raise UnfaceError(
                f"{self.name}: latents have shape {shape}; "
                f"expected (n, {self.latent_dim}) or (n, {self.slots}, {self.latent_dim})"
            )
        if (latents.dtype, latents.device) != (self._weight.dtype, self.device):
            raise UnfaceError(
                f"{self.name}: latents are {latents.dtype} on {latents.device}; "
                f"expected {self._weight.dtype} on {self.device}"
            )
        if self._checked and not latents.isfinite().all():
            raise UnfaceError(f"{self.name}: latents have NaN or infinite values")
        each = latents if latents.ndim == 3 else latents[:, None].expand(-1, self.slots, -1)
        pictures: Tensor = self._synthesis(each, size)
        return (pictures * 0.5 + 0.5).clamp(0, 1)

    def tuned(self, dtype: torch.dtype, *, compiled: bool = False) -> "StylePrior":
        """The same network for many passes on a GPU: in another precision, compiled if asked, without a check of every
        latent, for which the machine would have to wait. Made once, however many searches use it."""
        if (dtype, compiled) in self._tuned:
            return self._tuned[dtype, compiled]
        other = copy(self)
        network = deepcopy(self._synthesis).to(dtype=dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
        other._synthesis, other._checked = network, False
        if compiled:
            other._synthesis = torch.compile(network, dynamic=False)  # type: ignore[assignment]
        self._tuned[dtype, compiled] = other
        return other

    @property
    def _weight(self) -> Tensor:
        return next(self._synthesis.parameters())

    def _mapped(self, count: int, numbers: np.random.Generator) -> Tensor:
        z = np.zeros((-(-count // _BLOCK) * _BLOCK, self._mapping.dim), dtype=np.float32)
        z[:count] = numbers.standard_normal((count, self._mapping.dim))
        # Always in whole blocks: how many others are asked for must not change the last bits of anybody.
        return torch.cat([self._mapping(block) for block in torch.split(torch.from_numpy(z), _BLOCK)])[:count]
