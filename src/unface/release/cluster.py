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
from unface.pairs import (
    Hits,
    Reaching,
    cosine_space,
    highest_impostors,
    look_through,
    most_held,
    open_screen,
    pair_up,
)

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
    ours, others = (linked(side, cosine, device, threads) for side in (training, holdout))
    return Clustered(ours, others, cosine)


def linked(vectors: NDArray[np.float32], cosine: float, device: str, threads: int | None) -> NDArray[np.int64]:
    """(n,) codes of people: pictures that reach the cosine, directly or by others, are one."""
    pairing = pair_up(cosine_space(vectors), np.arange(len(vectors)))
    if len(vectors) < 2:
        return np.zeros(len(vectors), np.int64)
    screen = open_screen(pairing.space, device)
    reaching, links, held = Reaching(pairing.space, screen.margin), [np.empty((2, 0), np.int64)], 0

    def people() -> NDArray[np.int64]:
        i, j = np.concatenate(links, axis=1)
        found = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(len(vectors),) * 2), directed=False)
        return np.asarray(found[1], np.int64)

    def take(hits: Hits) -> None:
        nonlocal links, held
        near = hits.where(reaching(hits, cosine))
        links.append(np.stack([near.i, near.j]))
        held += len(near)
        if held > max(most_held(), 2 * len(vectors)):
            # A link of each picture to the first one of its person says the same.
            _, first, person = np.unique(people(), return_index=True, return_inverse=True)
            links, held = [np.stack([first[person], np.arange(len(vectors))])], len(vectors)

    look_through(pairing, screen, lambda: cosine - screen.margin, take, threads=threads)
    return people()
