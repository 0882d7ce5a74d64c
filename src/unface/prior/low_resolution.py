"""Small pictures for a fraction of the work: MobileStyleGAN stopped at 128 px, its colours fitted by least squares."""

import hashlib
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from unface.output.write import OutputError, write_file
from unface.prior.mobilestylegan import MobileSynthesis
from unface.prior.style import StylePrior, Synthesis
from unface.progress import Progress

_LEFT_OUT = 2  # blocks, those of 256 and 512 px; with one more left out, the face is somebody else's
_TRUNCATIONS = (0.7, 1.0)
_EACH = 12  # pictures at each truncation; twice as many bring it no nearer
_FILE = f"low-resolution-head-{_EACH * len(_TRUNCATIONS)}.safetensors"


class LowResolution(Synthesis):
    """All blocks but two, and a 1 × 1 convolution; the slots of what is left out (16 to 22) do nothing."""

    def __init__(self, whole: MobileSynthesis, head: Tensor) -> None:
        super().__init__()
        self.whole, self.slots, self.latent_dim, self.sizes = whole, whole.slots, whole.latent_dim, whole.sizes[:1]
        self.weight = torch.nn.Parameter(head[:-1].T[:, :, None, None].contiguous(), requires_grad=False)
        self.bias = torch.nn.Parameter(head[-1].clone(), requires_grad=False)

    def forward(self, latents: Tensor, size: int) -> Tensor:
        assert size == self.sizes[0], "the prior checks sizes"
        return functional.conv2d(_features(self.whole, latents), self.weight, self.bias)


def low_resolution(prior: StylePrior, whole: MobileSynthesis, folder: Path, progress: Progress) -> LowResolution:
    """Fitted to the prior's own pictures the first time, which takes a minute; kept in ``folder`` for the next."""
    network = _sha256(*whole.parameters())
    kept = _read(folder / _FILE, network)
    if kept is None:
        kept = fitted(prior, whole, progress)
        _write(kept, folder / _FILE, network)
    return LowResolution(whole, kept)


def fitted(prior: StylePrior, whole: MobileSynthesis, progress: Progress) -> Tensor:
    """(channels + 1, 3) least squares from features, and one, to the colours of the whole network's area means."""
    progress.start("low-resolution head", _EACH * len(_TRUNCATIONS))
    gram, moment = torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    for seed, truncation in enumerate(_TRUNCATIONS):
        for latent in prior.sample(_EACH, seed, truncation):
            slots = latent.expand(1, prior.slots, -1)
            features = _features(whole, slots)[0].flatten(1).T.double().cpu()
            rows = functional.pad(features, (0, 1), value=1.0)
            colours = whole(slots, whole.sizes[0])[0].flatten(1).T.double().cpu()
            gram = gram + rows.T @ rows
            moment = moment + rows.T @ colours
            progress.advance("low-resolution head")
    # Channels that never fire would make it singular.
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    head: Tensor = torch.linalg.solve(gram, moment)
    return head.float().contiguous()


def _features(whole: MobileSynthesis, latents: Tensor) -> Tensor:
    return whole.features(latents, whole.blocks - _LEFT_OUT)


def _read(path: Path, network: str) -> Tensor | None:
    """None of a file that is damaged, or was fitted to another network: it is made again."""
    try:
        with safe_open(path, framework="pt") as file:
            head: Tensor = file.get_tensor("head")
            metadata = file.metadata()
    except (OSError, SafetensorError):
        return None
    return head if metadata == {"network": network, "head": _sha256(head)} else None


def _write(head: Tensor, path: Path, network: str) -> None:
    """Keep it for the next start; a cache that cannot be written only costs time then."""
    with suppress(OutputError):
        write_file(path, save({"head": head}, {"network": network, "head": _sha256(head)}))


def _sha256(*tensors: Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
