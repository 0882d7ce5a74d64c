"""``unface synth`` as a function: people are chosen first, then each is photographed."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import torch

from unface._version import __version__
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.judge import FEWEST, PanelJudge
from unface.prior import Prior
from unface.progress import Progress, Silent
from unface.synth.folder import Folder, Record, opened_folder
from unface.synth.palette import palette_of
from unface.synth.people import Candidates, People, kept_apart
from unface.synth.recipe import Origin, Recipe
from unface.synth.studio import Studio, photograph
from unface.threads import available_cores

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
