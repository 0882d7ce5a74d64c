"""The port of a face prior, and priors by name: ours, a StyleGAN2 file, or one registered as ``unface.priors``."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unface.errors import UnfaceError
from unface.functions import registered
from unface.models import card, weights
from unface.progress import Progress, Silent

if TYPE_CHECKING:
    import torch

    from unface.prior.style import StylePrior

WHOLE, SMALL = "mobilestylegan", "mobilestylegan-128"


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


def load_prior(
    name: str = WHOLE,
    *,
    device: str = "cpu",
    accept_licence: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    head: bool = False,
) -> Prior:
    """A prior with its weights, fetched if they are not here yet; ``name`` may be the path of a StyleGAN2 file.

    A class registered under the entry point ``unface.priors`` is called with ``device``. With ``head``, or as
    ``mobilestylegan-128``, MobileStyleGAN gives pictures of 128 px alone, near the whole network's, for a fraction of
    the time.
    """
    if find_spec("torch") is None:
        raise UnfaceError("generated faces need torch, not installed; run pip install 'unface[torch]'")
    import torch

    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    others: Prior | None = registered("prior", name, lambda make: make(device=device))
    if name in (WHOLE, SMALL) and others is None:
        return _mobilestylegan(device, accept_licence, progress or Silent(), head or name == SMALL)
    if head:
        raise UnfaceError(f"{name}: has no low-resolution head; only {WHOLE} has one")
    if others is not None:
        return others
    path = Path(name)
    if not path.is_file():
        raise UnfaceError(f"{name}: no prior of that name, and no file; expected {WHOLE}, {SMALL} or a StyleGAN2 file")
    from unface.prior.stylegan2 import read_stylegan2

    return read_stylegan2(path, device)


def require_device(device: str) -> None:
    """Refuse a device that is not here: before weights are fetched for it."""
    import torch

    kind, colon, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (colon and not number.isdecimal()):
        raise UnfaceError(f"device {device!r} is not known; use 'cpu' or 'cuda'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UnfaceError(f"device {device!r}: PyTorch finds no GPU here; use 'cpu'")
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if colon and int(number) >= count:
        raise UnfaceError(f"device {device!r}: there are {count} of that kind here, counted from 0")


def _mobilestylegan(device: str, accept_licence: bool, progress: Progress, head: bool) -> "StylePrior":
    from unface.prior.low_resolution import low_resolution
    from unface.prior.mobilestylegan import read_mapping, read_synthesis
    from unface.prior.style import StylePrior

    first, second = (
        weights(card(f"mobilestylegan-{part}"), accept_licence=accept_licence, progress=progress)
        for part in ("mapping", "synthesis")
    )
    mapping, synthesis = read_mapping(first), read_synthesis(second)
    prior = StylePrior(WHOLE, mapping, synthesis, device=device)
    if not head:
        return prior
    low = low_resolution(prior, synthesis, second.parent, progress)
    return StylePrior(SMALL, mapping, low, prior.mean_latent(), device)
