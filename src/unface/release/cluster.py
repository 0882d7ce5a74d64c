"""People without labels: pictures that are nearer than strangers are count as one person.

Training and holdout show different people, so every pair across them is a pair of strangers: the threshold comes from
these. It accepts one of a million, so that chains of false links stay short.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from unface.metrics import allowed_accepts, just_above
from unface.pairs import cosine_space, highest_impostors, impostors_above, open_screen, pair_up

CLUSTER_FAR = 1e-6


@dataclass(frozen=True, eq=False)
class Clustered:
    """A person for each picture, numbered without gaps, on both sides."""

    training: NDArray[np.int64]
    holdout: NDArray[np.int64]
    cosine: float


def cluster_people(
    training: NDArray[np.float32], holdout: NDArray[np.float32], *, device: str = "cpu", threads: int | None = None
) -> Clustered:
    """Single linkage within each side at the threshold that strangers across the sides set."""
    both = pair_up(
        cosine_space(np.concatenate([training, holdout])),
        np.repeat([0, 1], [len(training), len(holdout)]),
    )
    allowed = allowed_accepts(CLUSTER_FAR, both.impostors)
    tail = highest_impostors(both, allowed + 1, open_screen(both.space, device), threads=threads)
    cosine = just_above(tail.scores[allowed])
    ours, others = (_linked(side, cosine, device, threads) for side in (training, holdout))
    return Clustered(ours, others, cosine)


def _linked(vectors: NDArray[np.float32], cosine: float, device: str, threads: int | None) -> NDArray[np.int64]:
    pairing = pair_up(cosine_space(vectors), np.arange(len(vectors)))
    if len(vectors) < 2:
        return np.zeros(len(vectors), np.int64)
    tail = impostors_above(pairing, cosine, open_screen(pairing.space, device), threads=threads)
    links = coo_matrix((np.ones(len(tail)), (tail.rows[:, 0], tail.rows[:, 1])), shape=(len(vectors), len(vectors)))
    people: NDArray[np.int64] = connected_components(links, directed=False)[1].astype(np.int64)
    return people
