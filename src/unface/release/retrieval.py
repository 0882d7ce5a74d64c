"""Retrieval risk R(A, S, K): how often the K released faces nearest to a real face show its person (paper 004, §3.4).

Measured for released sets whose rows say which person they were made of, over growing galleries of people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.metrics import Replicates, Scheme, identity_weights, rate_interval
from unface.pairs import PairSpace, compared
from unface.probe.search import chance_rate
from unface.result.numbers import Share
from unface.seeds import stream
from unface.threads import parallel_map

_QUERIES_AT_ONCE, _RELEASED_AT_ONCE = 1_024, 2_048
_REPLICATES = 1_000


@dataclass(frozen=True)
class Risk:
    """The share of real queries whose K nearest released faces contain their person."""

    pictures: Literal["same", "other", "any"]
    """"same": the released face was made of the query itself; "other": of other pictures; "any": not known."""
    identities: int
    released: int
    k: int
    share: Share
    chance: float


@dataclass(frozen=True, eq=False)
class Labelled:
    """Unit vectors (n, d), whose they are by common codes, and the picture that each is, or was made of (−1: unknown).

    Pictures have common numbers too.
    """

    vectors: NDArray[np.float32]
    people: NDArray[np.int64]
    pictures: NDArray[np.int64]


def retrieval_risk(
    queries: Labelled,
    released: Labelled,
    k: Sequence[int],
    *,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> list[Risk]:
    """For galleries of ``sizes`` people, drawn at random and nested; by default 10, 100, 1,000 … and all."""
    people = np.intersect1d(queries.people, released.people[released.people >= 0])
    if len(people) < 2:
        raise UnfaceError("retrieval needs released faces of at least two people of the queries; check the identities")
    order = stream(seed, "release galleries").permutation(people)
    known = bool((released.pictures >= 0).any())
    found: list[Risk] = []
    for size in gallery_sizes(len(people)) if sizes is None else sizes:
        chosen = order[:size]
        asking, answering = (np.flatnonzero(np.isin(side.people, chosen)) for side in (queries, released))
        asked, answered = _taken(queries, asking), _taken(released, answering)
        kinds: tuple[Literal["same", "other", "any"], ...] = ("same", "other") if known else ("any",)
        for pictures in kinds:
            found += _risks(asked, answered, pictures, k, size, seed, threads)
    return found


def gallery_sizes(people: int) -> list[int]:
    """10, 100, 1,000 … and all."""
    return [*(10**power for power in range(1, 9) if 10**power < people), people]


def _taken(side: Labelled, rows: NDArray[np.int64]) -> Labelled:
    return Labelled(side.vectors[rows], side.people[rows], side.pictures[rows])


def _risks(
    queries: Labelled,
    released: Labelled,
    pictures: Literal["same", "other", "any"],
    ks: Sequence[int],
    size: int,
    seed: int,
    threads: int | None,
) -> list[Risk]:
    if max(ks) > len(released.people):
        raise UnfaceError(
            f"k = {max(ks)}: the gallery of {size} people has {len(released.people)} released faces; give a smaller k"
        )
    mine, left_out = _mates(queries, released, pictures)
    asked = np.flatnonzero(mine.any_mate)
    if not len(asked):
        return []
    ahead = _ahead(compared(queries.vectors, released.vectors), mine, left_out, threads)
    codes = np.unique(queries.people, return_inverse=True)[1]
    count = int(codes.max()) + 1
    weights = identity_weights(Scheme.MULTINOMIAL, count, _REPLICATES, seed, "release retrieval")
    asks = np.bincount(codes[asked], minlength=count)
    found = []
    for k in ks:
        hit = asked[ahead[asked] < k]
        hits = np.bincount(codes[hit], minlength=count)
        total = weights @ asks
        values = np.divide(weights @ hits, total, out=np.full(len(total), len(hit) / len(asked)), where=total > 0)
        people = int(np.count_nonzero(asks))
        interval = rate_interval(len(hit), len(asked), Replicates(values, mirrored=False), people)
        share = Share.counted(len(hit), len(asked), interval, people)
        gallery = len(released.people) - left_out.counts[asked]
        pairs, number = np.unique(np.stack([mine.counts[asked], gallery], axis=1), axis=0, return_counts=True)
        chance = sum(chance_rate(int(m), int(g), k) * n for (m, g), n in zip(pairs, number.tolist(), strict=True))
        found.append(Risk(pictures, size, len(released.people), k, share, float(chance / len(asked))))
    return found


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a query and a released face, by query."""

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def any_mate(self) -> NDArray[np.bool_]:
        return self.counts > 0


def _mates(queries: Labelled, released: Labelled, pictures: str) -> tuple[_Pairs, _Pairs]:
    """Released faces of a query's person that count, and those that are left out of its gallery."""
    order = np.argsort(released.people, kind="stable")
    low, high = (np.searchsorted(released.people[order], queries.people, side=side) for side in ("left", "right"))
    number = high - low
    i = np.repeat(np.arange(len(queries.people)), number)
    j = order[np.repeat(low, number) + np.arange(len(i)) - np.repeat(np.cumsum(number) - number, number)]
    itself = (released.pictures[j] == queries.pictures[i]) & (released.pictures[j] >= 0)
    counted = {"same": itself, "other": ~itself, "any": np.ones(len(i), bool)}[pictures]
    # The face made of the query itself is no answer to "another picture"; faces of its person made of other pictures
    # may well answer for "the same picture", but are not what was asked.
    sides = (counted, ~counted)
    made = [_Pairs(i[one], j[one], np.bincount(i[one], minlength=len(queries.people))) for one in sides]
    return made[0], made[1]


def _ahead(space: PairSpace, mine: _Pairs, left_out: _Pairs, threads: int | None) -> NDArray[np.int64]:
    """How many faces of others are at least as near to each query as the best of its own: ties count against it."""
    limit = np.full(len(space.left), np.inf, np.float32)
    best = np.full(len(space.left), -np.inf, np.float32)
    np.maximum.at(best, mine.i, space.exact(mine.i, mine.j, threads=threads))
    limit[mine.any_mate] = best[mine.any_mate]
    margin = np.float32(space.float32_margin())

    def count(start: int) -> NDArray[np.int64]:
        rows = slice(start, min(start + _QUERIES_AT_ONCE, len(space.left)))
        ahead = np.zeros(rows.stop - start, np.int64)
        for column in range(0, len(space.right), _RELEASED_AT_ONCE):
            scores = space.left[rows] @ space.right[column : column + _RELEASED_AT_ONCE].T
            for pairs in (mine, left_out):
                first, last = np.searchsorted(pairs.i, (rows.start, rows.stop))
                i, j = pairs.i[first:last] - start, pairs.j[first:last] - column
                here = (j >= 0) & (j < scores.shape[1])
                scores[i[here], j[here]] = -np.inf
            ahead += np.count_nonzero(scores >= limit[rows, None] + margin, axis=1)
            i, j = np.nonzero(np.abs(scores - limit[rows, None]) < margin)
            if len(i):  # too close for float32 to tell
                np.add.at(ahead, i, space.exact(i + start, j + column) >= limit[i + start])
        return ahead

    with np.errstate(invalid="ignore"):  # queries without a mate have an infinite limit
        return np.concatenate(parallel_map(count, range(0, len(space.left), _QUERIES_AT_ONCE), threads))
