"""Sittings: each person is photographed in rounds of tries until enough pictures are accepted."""

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch

from unface.errors import UnfaceError
from unface.synth.camera import Shot
from unface.synth.people import People
from unface.synth.studio import Studio
from unface.synth.variation import draw, moved
from unface.synth.verdict import verdicts

_PER_PICTURE = 1.5  # tries for each picture still missing
_MOST = 48  # tries of one round
_TOO_FEW = 0.25  # accepted of a round: below that the next one moves the person less
_HOPELESS = 20  # such rounds
_IN_FLIGHT = 4  # people: one is judged while others are compressed and one is made


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
    found = [shot.frames is not None for shot in shots]
    reasons = verdicts(found, studio.vectors(shots), sitting.person, people, studio.judges)
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
