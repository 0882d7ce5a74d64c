"""A panel: two or more recognisers that must all agree that a picture of a generated person shows that person.

Their thresholds are stored, since generated people are more alike than photographed ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.judge.judge import Recogniser, load_recogniser
from unface.progress import Progress

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
