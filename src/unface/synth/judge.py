"""Judges: face recognisers that say whether two pictures are of one person, each at thresholds of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from unface.encode import Encoder, TorchBacked, load_encoder
from unface.errors import UnfaceError
from unface.models import Input
from unface.progress import Progress

if TYPE_CHECKING:
    import torch

FEWEST = 2  # a picture that one recogniser alone believes in may only have found that recogniser's weakness


@dataclass(frozen=True)
class Thresholds:
    """Cosines of one judge: ``apart`` is what two people stay below, ``same`` what a picture and its person reach."""

    apart: float
    same: float


# ``apart`` is reached by 2 or 3 in 1,000 pairs of people from MobileStyleGAN at truncation 0.8 (28,680 pairs), and,
# for arcface-mbf and sface, by fewer than 1 in 10,000 pairs of strangers in photographs (CelebA: 0.31 and 0.44).
# ``same`` lies 0.05 above it.
THRESHOLDS = {
    "arcface-mbf": Thresholds(apart=0.40, same=0.45),
    "edgeface-s": Thresholds(apart=0.49, same=0.54),
    "sface": Thresholds(apart=0.52, same=0.57),
}


class Judge(Protocol):
    """A recogniser with its thresholds; ``wanted`` says how it takes a face."""

    @property
    def name(self) -> str: ...

    @property
    def thresholds(self) -> Thresholds: ...

    @property
    def wanted(self) -> Input: ...

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of faces cut out as ``wanted`` says."""
        ...


def load_judges(
    names: Sequence[str],
    *,
    device: str = "cpu",
    accept_licence: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Judge, ...]:
    """Recognisers by name; on a GPU as torch modules there."""
    unknown = [name for name in names if name not in THRESHOLDS]
    if unknown:
        raise UnfaceError(f"judge {unknown[0]!r} has no known thresholds; choose from {', '.join(THRESHOLDS)}")
    if len(set(names)) < max(FEWEST, len(names)):
        raise UnfaceError(f"judges are {', '.join(names) or 'none'}; expected {FEWEST} or more different ones")
    return tuple(
        EncoderJudge(load_encoder(name, accept_licence=accept_licence, threads=threads, progress=progress), device)
        for name in names
    )


class EncoderJudge:
    """An encoder of ours as a judge."""

    def __init__(self, encoder: Encoder, device: str = "cpu") -> None:
        self.name, self.thresholds, self.wanted = encoder.name, THRESHOLDS[encoder.name], encoder.card.input
        self._encoder = encoder
        self._module: torch.nn.Module | None = None
        self._device = device
        if device != "cpu" and isinstance(encoder, TorchBacked):
            self._module = encoder.torch_module().to(device)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors; what a recogniser gives no direction to is left zero, and is nobody."""
        vectors = self._encoder.encode(frames) if self._module is None or not frames else self._on_device(frames)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return unit

    def _on_device(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        import torch

        assert self._module is not None
        pixels = torch.from_numpy(np.stack(frames)).to(self._device).permute(0, 3, 1, 2)
        if self.wanted.channels == "BGR":
            pixels = pixels.flip(1)
        mean, std = (
            torch.tensor(values, device=self._device).view(3, 1, 1) for values in (self.wanted.mean, self.wanted.std)
        )
        with torch.inference_mode():
            vectors: NDArray[np.float32] = self._module((pixels.float() - mean) / std).float().cpu().numpy()
        return vectors
