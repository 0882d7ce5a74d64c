"""Which pictures are of the person: all judges must say so, and none may find somebody else nearer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.synth.judge import Judge
from unface.synth.people import NO_FACE, People

NEARER = "nearer to another person"


def not_the_person(judge: Judge) -> str:
    """The reason for a picture on which that judge does not know the person."""
    return f"not the person ({judge.name})"


def verdicts(
    found: Sequence[bool], vectors: Sequence[NDArray[np.float32]], person: int, people: People, judges: Sequence[Judge]
) -> list[str | None]:
    """For each picture why it is rejected, None where it is accepted.

    ``vectors`` (n, dim) by judge are of the pictures on which a face was ``found``; ``person`` is a row of ``people``.
    """
    reasons: list[str | None] = [None if one else NO_FACE for one in found]
    places = [place for place, one in enumerate(found) if one]
    for judge, seen, known in zip(judges, vectors, people.vectors, strict=True):
        for place, scores in zip(places, seen @ known.T, strict=True):
            if reasons[place] in (None, NEARER) and scores[person] < judge.thresholds.same:
                reasons[place] = not_the_person(judge)
            elif reasons[place] is None and int(scores.argmax()) != person:
                reasons[place] = NEARER
    return reasons
