"""Recognisers: an encoder of faces, what it sees of a picture, and the panel that accepts pictures of generated people.

A panel is two or more that must agree. Its thresholds are stored, since generated people are more alike than
photographed ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.encode import Encoder, TorchBacked, aligned, framed, load_encoder, space_of
from unface.errors import UnfaceError
from unface.faces import Detector, main_face
from unface.metrics import Resolution
from unface.models import Input
from unface.progress import Progress
from unface.result.validation import JudgeThreshold
from unface.score import Threshold

if TYPE_CHECKING:
    import torch


def threshold_facts(threshold: Threshold) -> JudgeThreshold:
    """As result files have it."""
    known: Literal["resolved", "coarse"] = "resolved" if threshold.resolution is Resolution.RESOLVED else "coarse"
    return JudgeThreshold(
        far=threshold.far,
        cosine=threshold.cosine,
        impostors=threshold.impostors,
        false_accepts=threshold.false_accepts,
        resolution=known,
    )


class Recogniser(Protocol):
    """A face recogniser; ``wanted`` says how it takes a face, ``space`` where its vectors live."""

    @property
    def name(self) -> str: ...

    @property
    def wanted(self) -> Input: ...

    @property
    def space(self) -> Space: ...

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of faces cut out as ``wanted`` says; zeros for a face without a direction."""
        ...


def load_recogniser(
    name: str,
    *,
    device: str = "cpu",
    accept_licence: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> "EncoderRecogniser":
    """An encoder by name as a recogniser; on a GPU as a torch module there."""
    return EncoderRecogniser(
        load_encoder(name, accept_licence=accept_licence, threads=threads, progress=progress), device
    )


class EncoderRecogniser:
    """An encoder as a recogniser."""

    def __init__(self, encoder: Encoder, device: str = "cpu") -> None:
        self.name, self.wanted, self.space = encoder.name, encoder.card.input, space_of(encoder)
        self._encoder = encoder
        self._module: torch.nn.Module | None = None
        self._device = device
        if device != "cpu" and isinstance(encoder, TorchBacked):
            self._module = encoder.torch_module().to(device)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors; what the encoder gives no direction to is left zero, and is nobody."""
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


def face_frames(
    picture: NDArray[np.uint8], detector: Detector, wanted: Sequence[Input]
) -> tuple[NDArray[np.uint8], ...] | None:
    """The picture's main face as each input takes it; None where no face is found.

    Inputs that agree on how a face is cut out share one array.
    """
    face = main_face(detector.detect(picture), picture.shape)
    if face is None:
        return None
    cuts = [
        replace(one, layout="NHWC", channels="RGB", dtype="uint8", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
        for one in wanted
    ]
    frames = {cut: framed(aligned(picture, face, cut), cut) for cut in set(cuts)}
    return tuple(frames[cut] for cut in cuts)


FEWEST = 2  # a picture that one recogniser alone accepts may only have found that recogniser's weakness
NO_FACE = "no face"
NEARER = "nearer to another person"


@dataclass(frozen=True)
class Thresholds:
    """Cosines: two people stay below ``apart``, and a picture and its person reach ``same``."""

    apart: float
    same: float


# ``apart`` is reached by 2 or 3 in 1,000 pairs of people from MobileStyleGAN at truncation 0.8 (28,680 pairs), and,
# for arcface-mbf and sface, by fewer than 1 in 10,000 impostor pairs of photographs (CelebA: 0.31 and 0.44).
# ``same`` lies 0.05 above it.
THRESHOLDS = {
    "arcface-mbf": Thresholds(apart=0.40, same=0.45),
    "edgeface-s": Thresholds(apart=0.49, same=0.54),
    "sface": Thresholds(apart=0.52, same=0.57),
}


@dataclass(frozen=True, eq=False)
class PanelJudge:
    """One recogniser of a panel."""

    recogniser: Recogniser
    thresholds: Thresholds

    @property
    def name(self) -> str:
        """The recogniser's."""
        return self.recogniser.name


def load_panel(
    names: Sequence[str],
    *,
    device: str = "cpu",
    accept_licence: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[PanelJudge, ...]:
    """Recognisers by name with the thresholds stored for them; on a GPU as torch modules there."""
    unknown = [name for name in names if name not in THRESHOLDS]
    if unknown:
        raise UnfaceError(f"judge {unknown[0]!r} has no known thresholds; choose from {', '.join(THRESHOLDS)}")
    if len(set(names)) < max(FEWEST, len(names)):
        raise UnfaceError(f"judges are {', '.join(names) or 'none'}; expected {FEWEST} or more different ones")
    return tuple(
        PanelJudge(
            load_recogniser(name, device=device, accept_licence=accept_licence, threads=threads, progress=progress),
            THRESHOLDS[name],
        )
        for name in names
    )


def verdicts(
    has_face: Sequence[bool],
    vectors: Sequence[NDArray[np.float32]],
    person: int,
    people: Sequence[NDArray[np.float32]],
    judges: Sequence[PanelJudge],
) -> list[str | None]:
    """For each picture why it is rejected, None where it is accepted: all judges must know the person on it.

    ``vectors`` (n, dim) by judge are of the pictures that have a face; ``people`` (m, dim) by judge are all people of
    the set, and ``person`` is a row of them.
    """
    reasons: list[str | None] = [None if one else NO_FACE for one in has_face]
    places = [place for place, one in enumerate(has_face) if one]
    for judge, seen, known in zip(judges, vectors, people, strict=True):
        for place, scores in zip(places, seen @ known.T, strict=True):
            if reasons[place] in (None, NEARER) and scores[person] < judge.thresholds.same:
                reasons[place] = f"not the person ({judge.name})"
            elif reasons[place] is None and int(scores.argmax()) != person:
                reasons[place] = NEARER
    return reasons
