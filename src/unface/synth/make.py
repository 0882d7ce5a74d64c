"""``unface synth`` as a function: people are chosen first, then each is photographed.

In the studio latents become pictures on the prior's device, threads compress them and find faces, judges look. Each
person is photographed in rounds of tries until enough pictures are accepted.
"""

import math
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import BytesIO
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from unface._version import __version__
from unface.data import decode
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.judge import FEWEST, PanelJudge, face_frames, verdicts
from unface.prior import Prior
from unface.progress import Progress, Silent
from unface.seeds import stream
from unface.synth.folder import Folder, Record, opened_folder
from unface.synth.palette import Palette, decode_size, decoded, draw, moved, palette_of
from unface.synth.people import Candidates, People, kept_apart
from unface.synth.photograph import PLAIN, Variation, photographed
from unface.synth.recipe import Origin, Recipe
from unface.threads import available_cores

_CANDIDATES = 32  # at once
_PER_PICTURE = 1.5  # tries for each picture still missing
_MOST = 48  # tries of one round
_TOO_FEW = 0.25  # accepted of a round: below that the next one moves the person less
_HOPELESS = 20  # such rounds
_IN_FLIGHT = 4  # people: one is judged while others are compressed and one is made


@dataclass(frozen=True, eq=False)
class Shot:
    """A file and the face on it as each judge takes it; no ``frames`` where no face was found."""

    jpeg: bytes
    frames: tuple[NDArray[np.uint8], ...] | None


@dataclass(frozen=True, eq=False)
class Studio:
    """``pool`` is for what the device does not do: while it works on one batch, the device makes the next."""

    recipe: Recipe
    prior: Prior
    palette: Palette
    judges: Sequence[PanelJudge]
    detector: Detector
    pool: Executor

    def shots(self, latents: torch.Tensor, variations: Sequence[Variation]) -> list[Future[Shot]]:
        """Pictures of (n, slots, dim) latents, being compressed and looked at."""
        with torch.inference_mode():
            faces = decoded(self.prior, latents, decode_size(self.prior, self.recipe.size))
            pictures = photographed(faces, variations, self.palette.backgrounds, self.recipe.size).cpu().numpy()
        return [
            self.pool.submit(self.shot, picture, one.quality) for picture, one in zip(pictures, variations, strict=True)
        ]

    def shot(self, picture: NDArray[np.uint8], quality: int) -> Shot:
        """A picture as it will lie in the folder. Judges see the file's pixels, not those it was made from."""
        jpeg = compressed(picture, quality)
        return Shot(jpeg, face_frames(decode(jpeg), self.detector, [judge.recogniser.wanted for judge in self.judges]))

    def vectors(self, shots: Sequence[Shot]) -> tuple[NDArray[np.float32], ...]:
        """(n, dim) by judge, of those pictures alone on which there is a face."""
        faces = [shot.frames for shot in shots if shot.frames is not None]
        return tuple(
            judge.recogniser.embed([frames[place] for frames in faces]) for place, judge in enumerate(self.judges)
        )

    @property
    def chunk(self) -> int:
        """Candidates that are drawn together."""
        return min(_CANDIDATES, self.recipe.identities)

    def candidates(self, number: int) -> Candidates:
        """The people of one chunk, plainly portrayed."""
        latents = self._drawn(number)
        shots = self.shots(latents[:, None].expand(-1, self.prior.slots, -1), [PLAIN] * len(latents))
        seen = [shot.result() for shot in shots]
        return Candidates(np.array([shot.frames is not None for shot in seen]), self.vectors(seen))

    def latents(self, candidates: Sequence[int]) -> torch.Tensor:
        """(n, dim) of W, of candidates by number."""
        chunks = {number: self._drawn(number) for number in {one // self.chunk for one in candidates}}
        return torch.stack([chunks[one // self.chunk][one % self.chunk] for one in candidates])

    def _drawn(self, number: int) -> torch.Tensor:
        seed = int(stream(self.recipe.seed, "synth", "candidates", number).integers(2**31))
        return self.prior.sample(self.chunk, seed, self.recipe.truncation)


def compressed(picture: NDArray[np.uint8], quality: int) -> bytes:
    """As JPEG."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=quality)
    return file.getvalue()


@dataclass(eq=False)
class Sitting:
    """One person of ``People`` being photographed; ``kept`` are files, ``rejected`` counts the others by reason."""

    person: int
    candidate: int
    latent: torch.Tensor
    kept: list[bytes] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    weaker: int = 0
    shots: list[Future[Shot]] = field(default_factory=list)


def photograph(studio: Studio, people: People, wanted: Iterable[int]) -> Iterator[Sitting]:
    """Finished sittings of the wanted people, in no certain order.

    A batch is always of one person and depends on that person alone, so a run that was cut off makes the same bytes.
    """
    waiting: deque[Sitting] = deque()
    latents = studio.latents(people.numbers)
    todo = (Sitting(person, people.numbers[person], latents[person]) for person in wanted)
    while True:
        while len(waiting) < _IN_FLIGHT and (new := next(todo, None)) is not None:
            waiting.append(_tried(new, studio))
        if not waiting:
            return
        sitting = waiting.popleft()
        _judged(sitting, studio, people)
        if len(sitting.kept) == studio.recipe.images:
            yield sitting
        else:
            waiting.append(_tried(sitting, studio))


def _tried(sitting: Sitting, studio: Studio) -> Sitting:
    """The next round, under way."""
    missing = studio.recipe.images - len(sitting.kept)
    count = min(math.ceil(_PER_PICTURE * missing) + 1, _MOST)
    variations = [
        draw(studio.recipe.seed, sitting.candidate, sitting.tries + number, studio.palette, weaker=sitting.weaker)
        for number in range(count)
    ]
    latents = moved(sitting.latent, variations, studio.palette, studio.prior.slots)
    sitting.shots = studio.shots(latents, variations)
    return sitting


def _judged(sitting: Sitting, studio: Studio, people: People) -> None:
    """What of the round is kept; tries left over when the last picture is there count for nothing."""
    shots = [shot.result() for shot in sitting.shots]
    has_face = [shot.frames is not None for shot in shots]
    reasons = verdicts(has_face, studio.vectors(shots), sitting.person, people.vectors, studio.judges)
    before = len(sitting.kept)
    for shot, reason in zip(shots, reasons, strict=True):
        sitting.tries += 1
        if reason is None:
            sitting.kept.append(shot.jpeg)
        else:
            sitting.rejected[reason] += 1
        if len(sitting.kept) == studio.recipe.images:
            return
    if len(sitting.kept) - before < _TOO_FEW * len(shots):
        sitting.weaker += 1
    if sitting.weaker == _HOPELESS:
        why = ", ".join(f"{count} {reason}" for reason, count in sitting.rejected.most_common())
        raise UnfaceError(
            f"person {sitting.person}: {len(sitting.kept)} of {studio.recipe.images} pictures accepted in "
            f"{sitting.tries} tries ({why}); choose another --seed or a larger --size"
        )


SCHEMA = "unface.synth/1"
_MOST_WORKERS = 8


def synthesise(
    recipe: Recipe,
    prior: Prior,
    judges: Sequence[PanelJudge],
    detector: Detector,
    out: Path,
    *,
    origins: Sequence[Origin] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> "Synthesised":
    """Pictures ``<identity>/<image>.jpg`` and ``synth.json``, which says how they were made.

    People are kept apart, and pictures accepted, only where all judges agree. The same call continues a killed run
    and ends in the same bytes; ``origins`` are in the plan, so that other weights are refused.
    """
    if len({judge.name for judge in judges}) < max(FEWEST, len(judges)):
        raise UnfaceError(f"{len(judges)} judges; expected {FEWEST} or more, all different")
    progress = progress or Silent()
    # A few keep up with any device, and more would only hold up the thread that feeds it.
    workers = threads or min(available_cores(), _MOST_WORKERS)
    plan: dict[str, object] = {
        **asdict(recipe),
        "prior": prior.name,
        "device": prior.device.type,
        "detector": detector.name,
        "judges": {judge.name: asdict(judge.thresholds) for judge in judges},
        "weights": [asdict(origin) for origin in origins],
    }
    with opened_folder(out, plan) as folder, _undisturbed(), ThreadPoolExecutor(workers) as pool:
        studio = Studio(recipe, prior, palette_of(prior, recipe, detector), judges, detector, pool)
        people = kept_apart(_candidates(studio, folder, progress), judges, recipe.identities)
        records = _photographed(studio, people, folder, progress)
        result = Synthesised(
            out=out,
            plan=plan,
            identities={_name(person, recipe): number for person, number in enumerate(people.numbers)},
            images=recipe.images,
            refused=_sorted_counts(people.refused),
            tries=sum(record.tries for record in records),
            rejected=_sorted_counts(sum((record.rejected for record in records), Counter())),
        )
        folder.finish(result.as_json())
    return result


@dataclass(frozen=True)
class Synthesised:
    """A folder of pictures of people who do not exist."""

    out: Path
    plan: Mapping[str, object]
    identities: Mapping[str, int]
    """By name of the folder: the number of the candidate, which with the seed is the person."""
    images: int
    refused: Mapping[str, int]
    """Candidates that were not taken, by reason."""
    tries: int
    rejected: Mapping[str, int]
    """Pictures that were not taken, by reason; the first that applied."""

    @property
    def accepted(self) -> int:
        return len(self.identities) * self.images

    def sentences(self) -> tuple[str, ...]:
        """What a person wants to know, in lines."""
        people, refused = len(self.identities), sum(self.refused.values())
        return (
            f"{self.out}: {people} people who do not exist, {self.images} pictures each",
            f"people: {people} of {people + refused} candidates taken{_reasons(self.refused)}",
            f"pictures: {self.accepted} of {self.tries} tries accepted "
            f"({self.accepted / self.tries:.0%}){_reasons(self.rejected)}",
        )

    def as_json(self) -> dict[str, object]:
        """``synth.json``; nothing in it depends on when or how often a run was cut off."""
        return {
            "schema": SCHEMA,
            "unface": __version__,
            "plan": dict(self.plan),
            "candidates": {"taken": len(self.identities), "refused": dict(self.refused)},
            "pictures": {"tries": self.tries, "accepted": self.accepted, "rejected": dict(self.rejected)},
            "identities": dict(self.identities),
        }


def _candidates(studio: Studio, folder: Folder, progress: Progress) -> Iterator[Candidates]:
    """Chunk after chunk; each depends on nothing but its number, so those of an earlier run are as good as new ones."""
    progress.start("looking at people", studio.recipe.identities)
    for number in count():
        known = folder.candidates(number)
        if known is None:
            known = studio.candidates(number)
            folder.keep_candidates(number, known)
        progress.advance("looking at people", len(known.found))
        yield known


def _photographed(studio: Studio, people: People, folder: Folder, progress: Progress) -> list[Record]:
    """Everybody's record; files are written by the pool, and a failure there ends the run."""
    recipe = studio.recipe
    names = [_name(person, recipe) for person in range(recipe.identities)]
    known = {person: folder.record(name, recipe.images) for person, name in enumerate(names)}
    records = {person: record for person, record in known.items() if record is not None}
    progress.start("taking pictures", recipe.identities * recipe.images)
    progress.advance("taking pictures", len(records) * recipe.images)
    missing = [person for person in range(recipe.identities) if person not in records]
    writing: list[Future[None]] = []
    for sitting in photograph(studio, people, missing):
        record = records[sitting.person] = Record(sitting.tries, sitting.rejected)
        writing.append(studio.pool.submit(folder.keep_person, names[sitting.person], sitting.kept, record))
        progress.advance("taking pictures", recipe.images)
        while writing and writing[0].done():
            writing.pop(0).result()
    for one in writing:
        one.result()
    return [records[person] for person in range(recipe.identities)]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """On a GPU kernels with the same bits each time; OpenCV on one thread, since the pool has one for each core.

    The thread that feeds the device asks for the interpreter hundreds of times a batch; with workers that keep it for
    the usual 5 ms each time, little more than half as many pictures are made.
    """
    import cv2

    before = cv2.getNumThreads(), torch.backends.cudnn.deterministic, sys.getswitchinterval()
    cv2.setNumThreads(1)
    torch.backends.cudnn.deterministic = True
    sys.setswitchinterval(1e-4)
    try:
        yield
    finally:
        cv2.setNumThreads(before[0])
        torch.backends.cudnn.deterministic = before[1]
        sys.setswitchinterval(before[2])


def _name(person: int, recipe: Recipe) -> str:
    return f"{person:0{max(len(str(recipe.identities - 1)), 4)}d}"


def _sorted_counts(counts: Counter[str]) -> dict[str, int]:
    """Most frequent first, then by name: an order of their own, not of the run's."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _reasons(counts: Mapping[str, int]) -> str:
    return "; " + ", ".join(f"{count} {reason}" for reason, count in counts.items()) if counts else ""
