"""The k nearest references of each query by cosine, exactly: blocked products, ties to the earlier row."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace, cosine_space
from unface.threads import parallel_map

_QUERIES_AT_ONCE = 256
_REFERENCES_AT_ONCE = 4096
_RUN = 32


def nearest(
    queries: NDArray[np.float32],
    references: NDArray[np.float32],
    k: int,
    own: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """(q, k) rows of the references in falling order of cosine; −1 where there are no more.

    ``own`` (q,) is the row of the references that each query is itself, and is left out. A vector of zeros has no
    direction: it is nobody's neighbour and has none.
    """
    asking, answering = np.flatnonzero(queries.any(axis=1)), np.flatnonzero(references.any(axis=1))
    found = np.full((len(queries), k), -1, np.int64)
    if not len(asking) or not len(answering):
        return found
    space = compared(queries[asking], references[answering])
    itself = np.full(len(asking), -1) if own is None else places(answering, len(references))[own[asking]]
    starts = range(0, len(asking), _QUERIES_AT_ONCE)
    parts = parallel_map(partial(_nearest_of_block, space, itself, min(k, len(answering))), starts)
    positions = np.concatenate(parts)
    found[asking, : positions.shape[1]] = np.where(positions < 0, -1, answering[positions])
    return found


def compared(queries: NDArray[np.float32], references: NDArray[np.float32]) -> PairSpace:
    """Cosines of queries, on the left, with references, on the right."""
    return PairSpace(cosine_space(queries).left, cosine_space(references).left)


def places(chosen: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Where each of so many rows stands among the chosen; −1 if it does not, and at the end, where row −1 looks."""
    place = np.full(rows + 1, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return place


def _nearest_of_block(space: PairSpace, itself: NDArray[np.int64], k: int, start: int) -> NDArray[np.int64]:
    """(b, k) positions among the references for the queries from ``start`` on."""
    left, itself = space.left[start : start + _QUERIES_AT_ONCE], itself[start : start + _QUERIES_AT_ONCE]
    # A reference among the k nearest screens at no less than any k others less two margins: one for their error, one
    # for its own. Those k are the best of runs of references, which is nearly as good as the best and far cheaper.
    slack = np.float32(2 * space.float32_margin())
    best = np.full((len(left), k), -np.inf, np.float32)
    hits = []
    for column in range(0, len(space.right), _REFERENCES_AT_ONCE):
        scores = left @ space.right[column : column + _REFERENCES_AT_ONCE].T
        here = np.flatnonzero((itself >= column) & (itself < column + scores.shape[1]))
        scores[here, itself[here] - column] = -np.inf
        runs = np.maximum.reduceat(scores, np.arange(0, scores.shape[1], _RUN), axis=1)
        best = np.partition(np.hstack([best, runs]), -k, axis=1)[:, -k:]
        near = (scores >= best.min(axis=1)[:, None] - slack) & (scores > -np.inf)
        i, j = np.divmod(np.flatnonzero(near), scores.shape[1])
        hits.append((i, j + column, scores[i, j]))
    i, j, screened = (np.concatenate(parts) for parts in zip(*hits, strict=True))
    kept = screened >= best.min(axis=1)[i] - slack
    return _ranked(i[kept], j[kept], space.exact(i[kept] + start, j[kept]), len(left), k)


def _ranked(
    i: NDArray[np.int64], j: NDArray[np.int64], scores: NDArray[np.float32], rows: int, k: int
) -> NDArray[np.int64]:
    """The first k candidates j of each row i in falling order of score, ties in rising order of j."""
    order = np.lexsort((j, -scores, i))
    i, j = i[order], j[order]
    rank = np.arange(len(i)) - np.searchsorted(i, i)
    ranked = np.full((rows, k), -1, np.int64)
    ranked[i[rank < k], rank[rank < k]] = j[rank < k]
    return ranked
