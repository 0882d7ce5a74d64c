"""The nearest row on the other side, for both sides of two sets in one pass; exact, ties to the earlier row.

The screens make the scores. Pairs within their error of a row's or a column's best are kept as candidates, and the
exact scores of these few decide: the result is the same for every device, block size and number of threads.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs.pairing import Block
from unface.pairs.screen import Hits, Peaks, Screen, TooManyHits, join_hits, open_screen
from unface.pairs.space import PairSpace
from unface.pairs.sweep import Reaching, hits_of, most_at_once, most_held, parts_of, rows_within
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
    left_out = (lambda block: None) if own is None else _Own(*own, screen.block_columns).inside
    lock, of_columns = threading.Lock(), _Candidates(space, columns_best, slack, by_row=False)

    def stripe(start: int) -> Nearest:
        rows = slice(start, min(start + screen.block_rows, left))
        of_rows = _Candidates(space, rows_best[rows].copy(), slack, by_row=True, start=start)
        for column in range(0, right, screen.block_columns):
            columns = slice(column, min(column + screen.block_columns, right))
            for block, hits in peaks_of(Block(rows, columns), of_rows.best):
                of_rows.take(hits.row_best, hits.by_row, rows_within(block, Block(rows, columns)))
                with lock:
                    of_columns.take(hits.column_best, hits.by_column, columns)
        return of_rows.decided()

    def peaks_of(block: Block, best: NDArray[np.float32]) -> Iterator[tuple[Block, Peaks]]:
        """The peaks of a block: at once if they are few, else of a part of its rows at a time."""
        most = most_at_once(block)
        with lock:
            known = columns_best[block.columns].copy()
        try:
            yield block, screen.peaks(block, best, known, slack, left_out(block), most)
        except TooManyHits:
            for part in parts_of(block, most):
                with lock:
                    known = columns_best[block.columns].copy()
                here = best[rows_within(part, block)]
                yield part, screen.peaks(part, here, known, slack, left_out(part))

    starts = range(0, left, screen.block_rows)
    done = parallel_map(stripe, starts, screen.workers or threads)
    of_left = Nearest(
        np.concatenate([np.empty(0, np.float32), *(one.scores for one in done)]),
        np.concatenate([np.empty(0, np.int64), *(one.rows for one in done)]),
    )
    return of_left, of_columns.decided(threads)


class _Candidates:
    """Pairs that may be the best of a row, or of a column; too many of them are decided on the way.

    Then the exact score stands in place of the screened one, from which it differs by no more than the margin.
    """

    def __init__(
        self, space: PairSpace, best: NDArray[np.float32], slack: np.float32, *, by_row: bool, start: int = 0
    ) -> None:
        self.best = best
        self._space, self._slack, self._by_row, self._start = space, slack, by_row, start
        self._held: list[Hits] = [Hits.none()]
        self._count = self._left_out = 0
        self._room = max(min(_KEPT_AT_ONCE, most_held()), 4 * len(best))

    def take(self, best: NDArray[np.float32], hits: Hits, where: slice) -> None:
        """The best screened scores of some of the rows or columns, and candidates among these."""
        np.maximum(self.best[where], best, out=self.best[where])
        self._held.append(hits)
        self._count += len(hits)
        if self._count > self._room:
            self._thin()
            if self._count > self._room // 2:
                self._left_out += self._count
                _require_few(self._left_out)
                self._decide()

    def decided(self, threads: int | None = 1) -> Nearest:
        """The best candidate of each by exact score, ties to the earlier row of the other side."""
        self._thin()
        side, other, exact = self._decide(threads)
        made = Nearest.nothing(len(self.best))
        made.scores[side], made.rows[side] = exact, other
        return made

    def _thin(self) -> None:
        """Without those that cannot be the best any more."""
        hits = join_hits(self._held)
        hits = hits.where(hits.scores >= self.best[self._side(hits)] - self._slack)
        self._held, self._count = [hits], len(hits)

    def _decide(self, threads: int | None = 1) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        hits = join_hits(self._held)
        exact = self._space.exact(hits.i, hits.j, threads=threads)
        side, other = self._side(hits), hits.j if self._by_row else hits.i
        order = np.lexsort((other, -exact, side))
        first = np.ones(len(order), bool)
        first[1:] = side[order[1:]] != side[order[:-1]]
        chosen = order[first]
        self._held, self._count = [Hits(hits.i[chosen], hits.j[chosen], exact[chosen])], len(chosen)
        return side[chosen], other[chosen], exact[chosen]

    def _side(self, hits: Hits) -> NDArray[np.int64]:
        return hits.i - self._start if self._by_row else hits.j


def compared(left: NDArray[np.float32], right: NDArray[np.float32]) -> PairSpace:
    """The space of two sets of unit vectors: scores are cosines of a left with a right row."""
    return PairSpace(np.ascontiguousarray(left, np.float32), np.ascontiguousarray(right, np.float32))


def visit_above(
    space: PairSpace, cut: float, take: Callable[[Hits], None], *, device: str = "cpu", threads: int | None = None
) -> None:
    """Hand ``take`` every pair of a left and a right row whose exact score is at least ``cut``.

    A piece at a time, from one thread at a time and in no fixed order; scores are the screen's.
    """
    screen: Screen = open_screen(space, device)
    left, right = len(space.left), len(space.right)
    blocks = (
        Block(slice(i, min(i + screen.block_rows, left)), slice(j, min(j + screen.block_columns, right)))
        for i in range(0, left, screen.block_rows)
        for j in range(0, right, screen.block_columns)
    )
    lock, reaching = threading.Lock(), Reaching(space, screen.margin)

    def look(block: Block) -> None:
        for _, hits in hits_of(screen, block, cut - screen.margin):
            with lock:
                take(hits.where(reaching(hits, cut)))

    parallel_map(look, blocks, screen.workers or threads)


def pairs_above(
    space: PairSpace, cut: float, *, device: str = "cpu", threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Every (left row, right row, score) whose exact score is at least ``cut``, by left row, then right row."""
    held, count, most = [Hits.none()], 0, min(4 * most_held(), _MOST_HITS)

    def take(hits: Hits) -> None:
        nonlocal count
        held.append(hits)
        count += len(hits)
        if count > most:
            raise UnfaceError(
                f"more than {most:,} pairs score {cut:.4g} or higher: too many of these vectors are nearly the same; "
                "check the encoder, compare fewer, or raise --memory"
            )

    visit_above(space, cut, take, device=device, threads=threads)
    hits = join_hits(held)
    order = np.lexsort((hits.j, hits.i))
    i, j = hits.i[order], hits.j[order]
    return i, j, space.exact(i, j, threads=threads)


def _require_few(ties: int) -> None:
    if ties > _MOST_HITS:
        raise UnfaceError(
            f"more than {_MOST_HITS:,} pairs share the highest score of their row: too many of these vectors are "
            "nearly the same; check the encoder, or compare fewer"
        )


class _Own:
    """The pairs of equal codes from 0 on, block by block: there may be as many as pairs of rows."""

    def __init__(self, left: NDArray[np.int64], right: NDArray[np.int64], columns: int) -> None:
        self._left, self._all_right, self._columns = left, right, columns
        self._right = []
        for start in range(0, len(right), columns):
            part = right[start : start + columns]
            order = np.argsort(part, kind="stable")
            self._right.append((order, part[order]))

    def inside(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Their places in a block, whose columns begin where a block's do; None where there are none."""
        left = self._left[block.rows]
        order, right = self._right[block.columns.start // self._columns]
        low, high = (np.searchsorted(right, left, side=side) for side in ("left", "right"))
        count = np.where(left >= 0, high - low, 0)
        if not count.any():
            return None
        if 8 * count.sum() > len(left) * len(right):  # nothing to gain from knowing where to look
            return np.nonzero((left[:, None] == self._all_right[block.columns]) & (left[:, None] >= 0))  # type: ignore[return-value]
        i = np.repeat(np.arange(len(left)), count)
        within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
        return i, order[np.repeat(low, count) + within]
