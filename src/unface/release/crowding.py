"""How crowded the place of a real picture is: its mean similarity to the nearest pictures of other real people.

Some pictures (sunglasses, closed eyes, a beard) are near to everybody's. Ranked by similarity alone they come before
any true copy, most of all in the vectors of a facial trait. So a similarity counts above what is usual at its place,
as cohort scores do in speaker recognition and CSLS in translation. Training and holdout people are treated alike, in
one pool: their scores stay exchangeable, and so p-values stay valid.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError

NEIGHBOURS = 10
COHORT = 10_000
"""Real pictures that neighbours come from; drawn by people, whether training or holdout, where there are more."""
BLOCK = 4_096


def crowding(
    blocks: Iterable[NDArray[np.float32]],
    people: NDArray[np.int64],
    cohort: NDArray[np.float32],
    whose: NDArray[np.int64],
) -> NDArray[np.float32]:
    """(n,) of unit vectors that come in blocks, with the person of each; ``whose`` are the people of the cohort."""
    if len(np.unique(whose)) < 2:
        raise UnfaceError("crowding needs two people or more; one was given")
    others = np.ascontiguousarray(cohort.T)
    found: list[NDArray[np.float32]] = []
    first = 0
    for block in blocks:
        for start in range(0, len(block), BLOCK):
            scores = block[start : start + BLOCK] @ others
            scores[people[first : first + len(scores), None] == whose] = -np.inf
            nearest = np.partition(scores, -min(NEIGHBOURS, len(whose)), axis=1)[:, -NEIGHBOURS:]
            strangers = np.isfinite(nearest)  # a person with nearly all pictures has fewer than ten strangers
            total = np.where(strangers, nearest, 0).sum(axis=1)
            found.append((total / np.maximum(strangers.sum(axis=1), 1)).astype(np.float32))
            first += len(scores)
    return np.concatenate(found)
