"""The nearest row on the other side, for both sides of two sets in one pass; exact, ties to the earlier row.

The screens make the scores. Pairs within their error of a row's or a column's best are kept as candidates, and the
exact scores of these few decide: the result is the same for every device, block size and number of threads.
"""

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs.pairing import Block
from unface.pairs.screen import Hits, Screen, join_hits, open_screen
from unface.pairs.space import PairSpace
from unface.threads import parallel_map

_MOST_HITS = 50_000_000
_KEPT_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each row of one side: the best score on the other side, and where; −Inf and −1 where there is nothing."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def nothing(cls, rows: int) -> "Nearest":
        return cls(np.full(rows, -np.inf, np.float32), np.full(rows, -1, np.int64))

    def merged(self, other: "Nearest") -> "Nearest":
        """The better of the two for each row; of equal scores the earlier row on the other side."""
        earlier = (other.scores == self.scores) & (other.rows >= 0) & ((self.rows < 0) | (other.rows < self.rows))
        better = (other.scores > self.scores) | earlier
        return Nearest(np.where(better, other.scores, self.scores), np.where(better, other.rows, self.rows))


def nearest_between(
    space: PairSpace,
    *,
    own: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    floors: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> tuple[Nearest, Nearest]:
    """Of each left row among the right rows, and of each right row among the left rows.

    ``own`` are codes of the left and the right rows: a pair of equal codes from 0 on is left out. ``floors`` are
    scores that are known already: a best below them may be reported as nothing, which saves looking at it.
    """
    screen = open_screen(space, device)
    left, right = len(space.left), len(space.right)
    slack = np.float32(2 * screen.margin)
    rows_best, columns_best = (
        (np.full(left, -np.inf, np.float32), np.full(right, -np.inf, np.float32))
        if floors is None
        # A floor is exact; what reaches it may screen a margin lower.
        else (floors[0] - np.float32(screen.margin), floors[1] - np.float32(screen.margin))
    )
    pairs = None if own is None else _equal_pairs(*own)
    lock, columns_held = threading.Lock(), [_no_hits()]
    columns_count = 0

    def stripe(start: int) -> Nearest:
        nonlocal columns_count
        rows = slice(start, min(start + screen.block_rows, left))
        best = rows_best[rows]
        here: list[Hits] = [_no_hits()]
        for column in range(0, right, screen.block_columns):
            columns = slice(column, min(column + screen.block_columns, right))
            block = Block(rows, columns)
            with lock:
                known = columns_best[columns].copy()
            hits = screen.peaks(block, best, known, slack, _inside(pairs, block))
            best, above = np.maximum(best, hits.row_best), np.maximum(known, hits.column_best)
            here.append(hits.by_row)
            with lock:
                np.maximum(columns_best[columns], above, out=columns_best[columns])
                columns_held.append(hits.by_column)
                columns_count += len(hits.by_column)
                if columns_count > _KEPT_AT_ONCE:
                    kept = _above(join_hits(columns_held), columns_best, slack, by_row=False)
                    columns_held[:] = [kept]
                    columns_count = len(kept)
                    _require_few(kept)
        found = _above(join_hits(here), best, slack, by_row=True, start=start)
        _require_few(found)
        return _decided(space, found, rows.stop - rows.start, by_row=True, start=start)

    starts = range(0, left, screen.block_rows)
    done = parallel_map(stripe, starts, screen.workers or threads)
    of_left = Nearest(
        np.concatenate([np.empty(0, np.float32), *(one.scores for one in done)]),
        np.concatenate([np.empty(0, np.int64), *(one.rows for one in done)]),
    )
    kept = _above(join_hits(columns_held), columns_best, slack, by_row=False)
    return of_left, _decided(space, kept, right, by_row=False, threads=threads)


def compared(left: NDArray[np.float32], right: NDArray[np.float32]) -> PairSpace:
    """The space of two sets of unit vectors: scores are cosines of a left with a right row."""
    return PairSpace(np.ascontiguousarray(left, np.float32), np.ascontiguousarray(right, np.float32))


def pairs_above(
    space: PairSpace, cut: float, *, device: str = "cpu", threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Every (left row, right row, score) whose exact score is at least ``cut``, by left row, then right row."""
    screen: Screen = open_screen(space, device)
    left, right = len(space.left), len(space.right)
    blocks = [
        Block(slice(i, min(i + screen.block_rows, left)), slice(j, min(j + screen.block_columns, right)))
        for i in range(0, left, screen.block_rows)
        for j in range(0, right, screen.block_columns)
    ]
    found = parallel_map(lambda block: screen.above(block, cut - screen.margin), blocks, screen.workers or threads)
    hits = join_hits([_no_hits(), *found])
    _require_few(hits)
    exact = space.exact(hits.i, hits.j, threads=threads)
    order = np.lexsort((hits.j, hits.i))
    order = order[exact[order] >= cut]
    return hits.i[order], hits.j[order], exact[order]


def _no_hits() -> Hits:
    return Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def _above(hits: Hits, best: NDArray[np.float32], slack: np.float32, *, by_row: bool, start: int = 0) -> Hits:
    """Candidates that can still be the best of their row or column."""
    side = hits.i - start if by_row else hits.j
    return hits.where(hits.scores >= best[side] - slack)


def _require_few(hits: Hits) -> None:
    if len(hits) > _MOST_HITS:
        raise UnfaceError(
            f"more than {_MOST_HITS:,} pairs share the highest score of their row: too many of these vectors are "
            "nearly the same; check the encoder, or compare fewer"
        )


def _decided(
    space: PairSpace, hits: Hits, rows: int, *, by_row: bool, start: int = 0, threads: int | None = 1
) -> Nearest:
    """The best candidate of each row by exact score, ties to the earlier row of the other side."""
    exact = space.exact(hits.i, hits.j, threads=threads)
    side, other = (hits.i - start, hits.j) if by_row else (hits.j, hits.i)
    order = np.lexsort((other, -exact, side))
    side, other, exact = side[order], other[order], exact[order]
    first = np.ones(len(side), bool)
    first[1:] = side[1:] != side[:-1]
    made = Nearest.nothing(rows)
    made.scores[side[first]], made.rows[side[first]] = exact[first], other[first]
    return made


def _equal_pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every pair (i, j) of equal codes from 0 on, by i."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right[order], left, side=side) for side in ("left", "right"))
    count = np.where(left >= 0, high - low, 0)
    i = np.repeat(np.arange(len(left)), count)
    within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    return i, order[np.repeat(low, count) + within]


def _inside(
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None, block: Block
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The pairs in a block, by their place in it; None where there are none."""
    if pairs is None:
        return None
    first, last = np.searchsorted(pairs[0], (block.rows.start, block.rows.stop))
    i, j = pairs[0][first:last], pairs[1][first:last]
    here = (j >= block.columns.start) & (j < block.columns.stop)
    return (i[here] - block.rows.start, j[here] - block.columns.start) if here.any() else None
