"""Judge: a face recogniser with a threshold at each of several false-accept rates (FAR).

It answers one question: do these two pictures show the same person, at most one pair of strangers in 1/FAR accepted?
A panel is two or more that must agree on a picture of a generated person. Its thresholds are stored, since generated
people are more alike than photographed ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Space
from unface.encode import Encoder, TorchBacked, aligned, framed, load_encoder, space_of
from unface.errors import UnfaceError
from unface.faces import Detector, main_face
from unface.metrics import Resolution, allowed_accepts, identities_needed, just_above, resolution
from unface.models import Input
from unface.pairs import Pairing, cosine_space, open_screen, pair_up, ranked_impostor
from unface.progress import Progress
from unface.result.validation import JudgeThreshold

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Threshold:
    """The cosine that a pair must reach at a FAR, and the impostor pairs of the calibration set that it rests on."""

    far: float
    """The target."""
    cosine: float
    impostors: int
    false_accepts: int

    @property
    def achieved_far(self) -> float:
        """At most the target: the share of the calibration set's impostor pairs that reach the threshold."""
        return self.false_accepts / self.impostors

    @property
    def resolution(self) -> Resolution:
        """Resolved from 30 expected false accepts, coarse from 3; below that no threshold is given."""
        return resolution(self.far, self.impostors)

    def facts(self) -> JudgeThreshold:
        """As result files have it."""
        known: Literal["resolved", "coarse"] = "resolved" if self.resolution is Resolution.RESOLVED else "coarse"
        return JudgeThreshold(
            far=self.far,
            cosine=self.cosine,
            impostors=self.impostors,
            false_accepts=self.false_accepts,
            resolution=known,
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """n pairs judged at one threshold."""

    scores: NDArray[np.float32]
    """(n,) cosines; NaN where one side shows no face or has no direction."""
    threshold: Threshold

    @property
    def same(self) -> NDArray[np.bool_]:
        """(n,): which pairs show the same person; pairs that could not be compared do not."""
        return np.asarray(self.scores >= self.threshold.cosine)

    @property
    def compared(self) -> NDArray[np.bool_]:
        """(n,): which pairs have a score."""
        return ~np.isnan(self.scores)


@dataclass(frozen=True, eq=False)
class Judge:
    """A recogniser and its thresholds; ``Judge.calibrated`` makes one."""

    recogniser: "Recogniser"
    thresholds: tuple[Threshold, ...]

    @classmethod
    def calibrated(
        cls,
        recogniser: "Recogniser",
        calibrate: EmbeddingSet,
        far: Sequence[float] = (1e-3,),
        *,
        threads: int | None = None,
    ) -> "Judge":
        """For each FAR the lowest threshold that at most that share of the impostor pairs of ``calibrate`` reaches.

        ``calibrate`` holds the recogniser's vectors of people who are judged nowhere else. A FAR that its impostor
        pairs cannot resolve (fewer than 3 expected false accepts) is refused.
        """
        _require_space(recogniser, calibrate.space)
        pairing = pair_up(cosine_space(calibrate.vectors), calibrate.identities)
        people = len(calibrate.names)
        for rate in far:
            if not 0 < rate < 1:
                raise UnfaceError(f"FAR is {rate:g}; expected above 0 and below 1")
            if resolution(rate, pairing.impostors) is Resolution.REFUSED:
                pairs_each = pairing.impostors / (people * (people - 1) / 2)
                raise UnfaceError(
                    f"{recogniser.name}: FAR {rate:g} cannot be resolved: {pairing.impostors:,} impostor pairs of "
                    f"{people:,} calibrate identities lead to fewer than 3 false accepts; "
                    f"{identities_needed(rate, pairs_each):,} identities are needed, or a higher FAR"
                )
        return cls(recogniser, pair_thresholds(pairing, far, threads=threads))

    def at(self, far: float) -> Threshold:
        """The threshold of a FAR that this judge was calibrated at."""
        for threshold in self.thresholds:
            if threshold.far == far:
                return threshold
        known = ", ".join(f"{threshold.far:g}" for threshold in self.thresholds)
        raise UnfaceError(f"{self.recogniser.name}: is not calibrated at FAR {far:g}; choose from {known}")

    def compare(self, first: NDArray[np.floating], second: NDArray[np.floating], far: float) -> Comparison:
        """Row i of ``first`` (n, dim) with row i of ``second``; a zero vector shows nobody."""
        threshold, dim = self.at(far), self.recogniser.space.dim
        for name, rows in (("first", first), ("second", second)):
            if rows.shape != (len(first), dim):
                raise UnfaceError(
                    f"{self.recogniser.name}: {name} has shape {rows.shape}; expected ({len(first)}, {dim})"
                )
            finite = np.isfinite(rows).all(axis=1)
            if not finite.all():
                raise UnfaceError(f"{self.recogniser.name}: {name}: row {int(np.argmin(finite))} has NaN or infinity")
        there = first.any(axis=1) & second.any(axis=1)
        count = int(np.count_nonzero(there))
        scores = np.full(len(first), np.nan, np.float32)
        if count:
            # By the engine that set the threshold, so that a score is the same number on both sides of it.
            left = np.arange(count, dtype=np.int64)
            scores[there] = cosine_space(np.concatenate([first[there], second[there]])).exact(left, left + count)
        return Comparison(scores, threshold)

    def compare_pictures(
        self,
        first: Sequence[NDArray[np.uint8]],
        second: Sequence[NDArray[np.uint8]],
        far: float,
        detector: Detector,
    ) -> Comparison:
        """RGB pictures (h, w, 3) pair by pair, by the main face of each."""
        if len(first) != len(second):
            raise UnfaceError(f"{len(first)} pictures and {len(second)}; expected as many of both")
        self.at(far)
        return self.compare(self.vectors(first, detector), self.vectors(second, detector), far)

    def vectors(self, pictures: Sequence[NDArray[np.uint8]], detector: Detector) -> NDArray[np.float32]:
        """(n, dim) unit vectors of the main faces; zeros where there is no face."""
        frames = [face_frames(picture, detector, [self.recogniser.wanted]) for picture in pictures]
        vectors = np.zeros((len(pictures), self.recogniser.space.dim), np.float32)
        has_face = [frame is not None for frame in frames]
        if any(has_face):
            vectors[has_face] = self.recogniser.embed([frame[0] for frame in frames if frame is not None])
        return vectors


def pair_thresholds(pairing: Pairing, far: Sequence[float], *, threads: int | None = None) -> tuple[Threshold, ...]:
    """For each FAR the lowest threshold that at most that share of the impostor pairs reaches."""
    screen = open_screen(pairing.space, "cpu")
    thresholds = []
    for rate in far:
        allowed = allowed_accepts(rate, pairing.impostors)
        score, higher = ranked_impostor(pairing, allowed, screen, threads=threads)
        thresholds.append(Threshold(rate, just_above(np.float32(score)), pairing.impostors, higher))
    return tuple(thresholds)


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


def _require_space(recogniser: Recogniser, calibrate: Space) -> None:
    """Refuse a calibration set of another encoder, other weights or another length; what nobody stated passes."""
    own = recogniser.space
    differs = own.dim != calibrate.dim or any(
        None not in (ours, theirs) and ours != theirs
        for ours, theirs in (
            (own.encoder, calibrate.encoder),
            (own.weights_sha256, calibrate.weights_sha256),
        )
    )
    if differs:
        raise UnfaceError(f"two embedding spaces never mix: judge {own}; calibration set {calibrate}")


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
