"""Exact rankings of references by cosine, block by block: the k nearest, and where the reference of a copy comes.

Micro average precision counts every pair and holds none. Ties go to the earlier row.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.pairs import Hits, PairSpace, cosine_space, join_hits
from unface.threads import parallel_map

_QUERIES_AT_ONCE = 256
_REFERENCES_AT_ONCE = 4096
_SCORES_AT_ONCE = 1 << 22
_RUN = 32
_CANDIDATES = 1 << 17


def nearest(
    queries: NDArray[np.float32],
    references: NDArray[np.float32],
    k: int,
    apart: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> NDArray[np.int64]:
    """(q, k) rows of the references in falling order of cosine; −1 where there are no more.

    ``apart`` are numbers of the queries (q,) and of the references (r,): no query has a neighbour of its own number. A
    vector of zeros has no direction: it is nobody's neighbour and has none.
    """
    asking, answering = np.flatnonzero(queries.any(axis=1)), np.flatnonzero(references.any(axis=1))
    rows = np.full((len(queries), k), -1, np.int64)
    if not len(asking) or not len(answering):
        return rows
    space = _compared(queries[asking], references[answering])
    numbers = None if apart is None else (apart[0][asking], apart[1][answering])
    starts = range(0, len(asking), _QUERIES_AT_ONCE)
    parts = parallel_map(partial(_nearest_of_block, space, numbers, min(k, len(answering))), starts)
    positions = np.concatenate(parts)
    rows[asking, : positions.shape[1]] = np.where(positions < 0, -1, answering[positions])
    return rows


def _nearest_of_block(
    space: PairSpace, apart: tuple[NDArray[np.int64], NDArray[np.int64]] | None, k: int, start: int
) -> NDArray[np.int64]:
    """(b, k) positions among the references for the queries from ``start`` on."""
    left = space.left[start : start + _QUERIES_AT_ONCE]
    # A reference among the k nearest screens at no less than any k others less two margins: one for their error, one
    # for its own. Those k are the best of runs of references, which is nearly as good as the best and far cheaper.
    slack = np.float32(2 * space.float32_margin())
    best = np.full((len(left), k), -np.inf, np.float32)
    hits = [Hits.none()]
    for column in range(0, len(space.right), _REFERENCES_AT_ONCE):
        columns = slice(column, min(column + _REFERENCES_AT_ONCE, len(space.right)))
        scores = left @ space.right[columns].T
        if apart is not None:
            scores[apart[0][start : start + len(left), None] == apart[1][None, columns]] = -np.inf
        runs = np.maximum.reduceat(scores, np.arange(0, scores.shape[1], _RUN), axis=1)
        best = np.partition(np.hstack([best, runs]), -k, axis=1)[:, -k:]
        near = (scores >= best.min(axis=1)[:, None] - slack) & (scores > -np.inf)
        if np.count_nonzero(near) > _CANDIDATES:
            # Nearly equal references, of which none but the first k count. Exact scores are within a margin of the
            # screened ones as well, and may stand in their place.
            scores = np.where(near, space.exact_block(slice(start, start + len(left)), columns), np.float32(-np.inf))
            near = _highest(scores, k)
        i, j = np.divmod(np.flatnonzero(near), scores.shape[1])
        hits.append(Hits(i, j + column, scores[i, j]))
        if sum(map(len, hits)) > 2 * max(_CANDIDATES, best.size):
            hits = [_ranked(space, join_hits(hits), best.min(axis=1) - slack, start, k)]
    found = _ranked(space, join_hits(hits), best.min(axis=1) - slack, start, k)
    ranked = np.full((len(left), k), -1, np.int64)
    ranked[found.i, np.arange(len(found)) - np.searchsorted(found.i, found.i)] = found.j
    return ranked


def _ranked(space: PairSpace, hits: Hits, least: NDArray[np.float32], start: int, k: int) -> Hits:
    """The first k candidates j of each query i in falling order of exact score, ties in rising order of j."""
    hits = hits.where(hits.scores >= least[hits.i])
    exact = space.exact(hits.i + start, hits.j)
    order = np.lexsort((hits.j, -exact, hits.i))
    i = hits.i[order]
    order = order[np.arange(len(i)) - np.searchsorted(i, i) < k]
    return Hits(hits.i[order], hits.j[order], exact[order])


def _highest(scores: NDArray[np.float32], k: int) -> NDArray[np.bool_]:
    """Which are the k highest of each row, ties to the earlier; −Inf is never one."""
    if k >= scores.shape[1]:
        return np.asarray(scores > -np.inf)
    last = np.partition(scores, -k, axis=1)[:, -k, None]
    higher, equal = scores > last, (scores == last) & (last > -np.inf)
    left = k - np.count_nonzero(higher, axis=1)
    return np.asarray(higher | (equal & (np.cumsum(equal, axis=1) <= left[:, None])))


@dataclass(frozen=True, eq=False)
class Ranking:
    """For each query: the rank of the reference it names, 0 if that is never found, and its pseudo-value of µAP."""

    rank: NDArray[np.int64]
    precision: NDArray[np.float64]


def rank_copies(queries: NDArray[np.float32], references: NDArray[np.float32], named: NDArray[np.int64]) -> Ranking:
    """Rank all references for queries that name one, or none (−1); ties to the earlier reference.

    For µAP the pairs of all queries are accepted in falling order of cosine, equal ones together; it is the mean over
    copies of the precision at which each is accepted. Zeros are in no pair: a copy that vanished is never accepted.
    """
    asking, answering = np.flatnonzero(queries.any(axis=1)), np.flatnonzero(references.any(axis=1))
    rank, added = np.zeros(len(queries), np.int64), np.zeros(len(queries))
    if not len(asking) or not len(answering):
        return Ranking(rank, added)
    own = _places(answering, len(references))[named[asking]]
    pairs = _pairs(_compared(queries[asking], references[answering]), own)
    ahead, false = pairs.tally()
    rank[asking] = np.where(own >= 0, 1 + ahead, 0)

    copies = int(np.count_nonzero(named >= 0))
    true = len(pairs.levels) - np.searchsorted(pairs.levels, pairs.levels)
    accepted = true + false
    average = float((true / accepted).sum()) / copies
    # What a query adds is the derivative by its weight w of Σ w_c (Σ w true_c) / (Σ w accepted_c) / Σ w_c over copies
    # c. These sum to zero over queries, since only the proportions of weights matter.
    costs = true / accepted**2
    added[asking] = -pairs.cost(costs)
    level = np.searchsorted(pairs.levels, pairs.scores[own >= 0], side="right") - 1
    added[asking[own >= 0]] += (true / accepted + np.cumsum(1 / accepted - costs))[level]
    added[named >= 0] -= average
    return Ranking(rank, average + added * (len(queries) / copies))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of a query and a reference, their scores made block by block and counted beside those of the copies."""

    space: PairSpace
    own: NDArray[np.int64]  # (q,) the reference that a query is a copy of, or −1
    scores: NDArray[np.float32]  # (q,) of a query with its own reference, or −Inf
    levels: NDArray[np.float32]  # (c,) the same of copies alone, rising

    def tally(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """False pairs of each query before its own reference, (q,), and of all queries at or above each level, (c,)."""
        ahead, false = zip(*parallel_map(self._tally_block, self._starts()), strict=True)
        return np.concatenate(ahead), np.sum(false, axis=0)

    def cost(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """(q,) the false pairs of each query at or above each level, times the cost of one there, summed."""
        return np.concatenate(parallel_map(partial(self._cost_block, costs), self._starts()))

    def _tally_block(self, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        false, rows = self._false_scores(start), slice(start, start + self._step())
        own, score = self.own[rows, None], self.scores[rows, None]
        earlier = np.arange(false.shape[1]) < own
        ahead = np.count_nonzero((false > score) | ((false == score) & earlier), axis=1)
        return ahead, self._at_least(false).sum(axis=0)

    def _cost_block(self, costs: NDArray[np.float64], start: int) -> NDArray[np.float64]:
        return self._at_least(self._false_scores(start)) @ costs

    def _at_least(self, false: NDArray[np.float32]) -> NDArray[np.int64]:
        """(b, c) how many of each row's scores reach each level; sorts the scores."""
        false.sort(axis=1)
        return np.array([false.shape[1] - np.searchsorted(row, self.levels) for row in false])

    def _false_scores(self, start: int) -> NDArray[np.float32]:
        """(b, r) exact scores of the queries from ``start`` on with every reference; −Inf with their own."""
        left = self.space.left[start : start + self._step()].astype(np.float64)
        scores = np.empty((len(left), len(self.space.right)), np.float32)
        for column in range(0, scores.shape[1], _REFERENCES_AT_ONCE):
            columns = slice(column, column + _REFERENCES_AT_ONCE)
            scores[:, columns] = self.space.settle(left @ self.space.right[columns].astype(np.float64).T)
        own = self.own[start : start + len(left)]
        scores[own >= 0, own[own >= 0]] = -np.inf
        return scores

    def _starts(self) -> range:
        return range(0, len(self.own), self._step())

    def _step(self) -> int:
        return int(np.clip(_SCORES_AT_ONCE // len(self.space.right), 1, _QUERIES_AT_ONCE))


def _pairs(space: PairSpace, own: NDArray[np.int64]) -> _Pairs:
    scores = np.full(len(own), -np.inf, np.float32)
    copies = np.flatnonzero(own >= 0)
    scores[copies] = space.exact(copies, own[copies])
    return _Pairs(space, own, scores, np.sort(scores[copies]))


def _compared(queries: NDArray[np.float32], references: NDArray[np.float32]) -> PairSpace:
    """Cosines of queries, on the left, with references, on the right."""
    return PairSpace(cosine_space(queries).left, cosine_space(references).left)


def _places(chosen: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Where each of so many rows stands among the chosen; −1 if it does not, and at the end, where row −1 looks."""
    place = np.full(rows + 1, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return place
