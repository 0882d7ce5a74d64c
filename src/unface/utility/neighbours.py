"""Neighbour overlap: how many of the nearest neighbours in the raw space are still the nearest after erasure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.errors import UnfaceError
from unface.seeds import stream
from unface.utility.nearest import nearest
from unface.utility.outcome import Outcome, by_id, require_rows

_MOST_QUERIES = 4000


@dataclass(frozen=True, eq=False)
class NeighbourTask:
    """Rows that are asked for their neighbours among all others, and those they have in the raw space."""

    on: str
    notes: tuple[str, ...]
    vectors: NDArray[np.float32]
    queries: NDArray[np.int64]
    neighbours: NDArray[np.int64]  # (q, k) in the raw space
    groups: NDArray[np.int64]  # (q,) identities: images of one person have neighbours in common

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``overlap@k``: the share of each query's raw neighbours kept; all of them in the raw space itself."""
        require_rows(self, vectors)
        k = self.neighbours.shape[1]
        found = nearest(vectors[self.queries], vectors, k, own=self.queries)
        kept = (self.neighbours[:, :, None] == found[:, None, :]).any(axis=2)
        return (Outcome(f"overlap@{k}", self.on, kept.mean(axis=1), self.groups),)


def neighbour_task(embeddings: EmbeddingSet, *, k: int = 10, seed: int = 0) -> NeighbourTask:
    """Every row is a query against all others, or some thousands of rows drawn at random where there are more."""
    ordered = by_id(embeddings)
    count = len(ordered)
    if not 1 <= k < count:
        raise UnfaceError(f"{ordered.source}: k is {k} with {count} rows; expected 1 to {count - 1} neighbours")
    queries = np.arange(count)
    notes: tuple[str, ...] = ()
    if count > _MOST_QUERIES:
        queries = np.sort(stream(seed, "utility", "queries").choice(count, _MOST_QUERIES, replace=False))
        notes = (f"{_MOST_QUERIES} of {count} rows were drawn as queries",)
    neighbours = nearest(ordered.vectors[queries], ordered.vectors, k, own=queries)
    return NeighbourTask(ordered.source, notes, ordered.vectors, queries, neighbours, ordered.identities[queries])
