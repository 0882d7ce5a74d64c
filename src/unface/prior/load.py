"""Priors by name: MobileStyleGAN out of the model cache, or a file in the layout of StyleGAN2-ADA."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unface.errors import UnfaceError
from unface.models import card, weights
from unface.prior.ports import Prior
from unface.progress import Progress, Silent

if TYPE_CHECKING:
    from unface.prior.style import StylePrior


def load_prior(
    name: str = "mobilestylegan",
    *,
    device: str = "cpu",
    accept_licence: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    head: bool = False,
) -> Prior:
    """A prior with its weights, fetched if they are not here yet; ``name`` may be the path of a StyleGAN2 file.

    ``head`` is for work on the CPU: pictures of 128 px alone, near the whole network's, for a fraction of the time.
    """
    if find_spec("torch") is None:
        raise UnfaceError("generated faces need torch, not installed; run pip install 'unface[torch]'")
    import torch

    from unface.prior.device import require_device

    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    if name == "mobilestylegan":
        return _mobilestylegan(device, accept_licence, progress or Silent(), head)
    if head:
        raise UnfaceError(f"{name}: has no low-resolution head; only mobilestylegan has one")
    path = Path(name)
    if not path.is_file():
        raise UnfaceError(f"{name}: no prior of that name, and no file; expected mobilestylegan, or a StyleGAN2 file")
    from unface.prior.stylegan2 import read_stylegan2

    return read_stylegan2(path, device)


def _mobilestylegan(device: str, accept_licence: bool, progress: Progress, head: bool) -> "StylePrior":
    from unface.prior.low_resolution import low_resolution
    from unface.prior.mobilestylegan import read_mapping, read_synthesis
    from unface.prior.style import StylePrior

    first, second = (
        weights(card(f"mobilestylegan-{part}"), accept_licence=accept_licence, progress=progress)
        for part in ("mapping", "synthesis")
    )
    mapping, synthesis = read_mapping(first), read_synthesis(second)
    prior = StylePrior("mobilestylegan", mapping, synthesis, device=device)
    if not head:
        return prior
    low = low_resolution(prior, synthesis, second.parent, progress)
    return StylePrior("mobilestylegan-128", mapping, low, prior.mean_latent(), device)
