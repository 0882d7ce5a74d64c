"""One pass over all impostor pairs above a cut that may rise on the way; what it holds is bounded, however many tie."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.memory import memory_budget
from unface.pairs.pairing import Block, Pairing
from unface.pairs.screen import Hits, Screen, TooManyHits, join_hits
from unface.pairs.space import PairSpace
from unface.threads import parallel_map

# Cuts rise only between waves of a fixed number of blocks, so that what is kept does not depend on which thread was
# faster; the first waves are small, because the first cut is a guess and lets too much through.
_LARGEST_WAVE = 32
_MOST_HITS = 50_000_000
# A hit takes 20 bytes, and five times that while hits are joined, decided and sorted; several passes run at once.
_OF_THE_BUDGET = 1024
_FEWEST_HELD = 1 << 16
PIECE = 1 << 18
"""Pairs that are listed at once, if a block has no more than eight times as many."""


def sweep(pairing: Pairing, screen: Screen, cut: float, *, keep: int, threads: int | None = None) -> tuple[Hits, float]:
    """Impostor pairs among which the ``keep`` highest scores are, and the cut as it ended.

    The cut rises as soon as the ``keep`` highest scores are known to lie above a higher one.
    """
    highest = Highest(pairing.space, keep, screen.margin, cut)
    look_through(pairing, screen, highest.next_cut, highest.take, threads=threads)
    return highest.hits(), highest.cut


def look_through(
    pairing: Pairing,
    screen: Screen,
    next_cut: Callable[[], float],
    take: Callable[[Hits], None],
    *,
    threads: int | None = None,
) -> None:
    """Hand ``take`` every impostor pair screened at or above the cut: a piece at a time, from one thread at a time.

    ``next_cut`` is asked before each wave of blocks. Pieces come in no fixed order.
    """
    lock = threading.Lock()
    for wave in _waves(pairing.blocks(screen.block_rows, screen.block_columns)):
        cut = next_cut()

        def look(block: Block, cut: float = cut) -> None:
            for part, hits in hits_of(screen, block, cut):
                impostors = hits
                if not pairing.has_only_impostors(part):
                    impostors = hits.where(pairing.is_impostor(hits.i, hits.j))
                with lock:
                    take(impostors)

        parallel_map(look, wave, screen.workers or threads)


def hits_of(screen: Screen, block: Block, cut: float) -> Iterator[tuple[Block, Hits]]:
    """The hits of a block: at once if they are few, else of a part of its rows at a time."""
    most = most_at_once(block)
    try:
        yield block, screen.above(block, cut, most)
    except TooManyHits:
        for part in parts_of(block, most):
            yield part, screen.above(part, cut)


def most_at_once(block: Block) -> int:
    """Pairs of a block that are listed at once."""
    pairs = int((block.rows.stop - block.rows.start) * (block.columns.stop - block.columns.start))
    return max(PIECE, min(pairs // 8, most_held()))


def parts_of(block: Block, most: int) -> Iterator[Block]:
    """A block cut into parts of at most so many pairs, or of one row."""
    step = max(1, most // (block.columns.stop - block.columns.start))
    for start in range(block.rows.start, block.rows.stop, step):
        yield Block(slice(start, min(start + step, block.rows.stop)), block.columns)


def rows_within(part: Block, block: Block) -> slice:
    """Where the rows of a part are in its block."""
    return slice(part.rows.start - block.rows.start, part.rows.stop - block.rows.start)


def most_held() -> int:
    """Hits that a pass may hold before it decides which of them count."""
    return max(min(max(memory_budget() // _OF_THE_BUDGET, _FEWEST_HELD), _MOST_HITS), 1)


class Highest:
    """The hits that may be among the ``keep`` highest; where too many are as high as the screen can tell, the highest.

    Scores that had to be decided exactly stand in place of the screened ones, from which they differ by no more than
    the margin: all that is said of screened scores holds for them too.
    """

    def __init__(self, space: PairSpace, keep: int, margin: float, cut: float = -np.inf) -> None:
        self.cut = cut
        self._space, self._keep, self._margin = space, keep, margin
        self._room = keep + max(most_held(), keep // 2)
        self._held: list[Hits] = [Hits.none()]
        self._count = self._left_out = 0

    def take(self, hits: Hits) -> None:
        """Consider further hits."""
        self._held.append(hits)
        self._count += len(hits)
        if self._count > self._room:
            self._raise()
            if self._count > (self._room + self._keep) // 2:
                self._decide()

    def next_cut(self) -> float:
        """What hits have to reach from now on."""
        if self._count > 4 * self._keep + 65_536:
            self._raise()
        return self.cut

    def hits(self) -> Hits:
        """All that are left."""
        self._held = [join_hits(self._held)]
        return self._held[0]

    def _raise(self) -> None:
        hits, self.cut = raise_cut(self.hits(), self.cut, self._keep, self._margin)
        self._held, self._count = [hits], len(hits)

    def _decide(self) -> None:
        hits = self.hits()
        exact = self._space.exact(hits.i, hits.j)
        order = np.lexsort((hits.j, hits.i, -exact))[: self._keep]
        self._held, self._count = [Hits(hits.i[order], hits.j[order], exact[order])], len(order)
        self._left_out += len(hits) - len(order)
        require_few_ties(self._left_out, self.cut)


class Reaching:
    """Which hits have an exact score of at least a threshold; the screen decides where its margin allows."""

    def __init__(self, space: PairSpace, margin: float) -> None:
        self._space, self._margin, self._decided = space, margin, 0

    def __call__(self, hits: Hits, threshold: float) -> NDArray[np.bool_]:
        limit = np.float64(threshold)  # not a float, which would be rounded to the scores' precision first
        reached = np.asarray(hits.scores >= limit)
        unsure = np.flatnonzero(np.abs(hits.scores - limit) <= self._margin)
        if len(unsure):
            self._decided += len(unsure)
            require_few_ties(self._decided, threshold)
            reached[unsure] = self._space.exact(hits.i[unsure], hits.j[unsure]) >= limit
        return reached


def require_few_ties(count: int, score: float) -> None:
    """Refuse to decide exactly between more pairs than are worth the time."""
    if count > _MOST_HITS:
        raise UnfaceError(
            f"more than {_MOST_HITS:,} impostor pairs score {score:.4g} or higher: too many of these vectors are "
            "nearly the same; check the encoder, or compare fewer"
        )


def raise_cut(hits: Hits, cut: float, keep: int, margin: float) -> tuple[Hits, float]:
    """The highest cut under which none of the ``keep`` highest exact scores can hide, and the hits above it."""
    if len(hits) < keep:
        return hits, cut
    # `keep` pairs screen at `last` or more, so as many are exactly at least last − margin: whatever belongs among the
    # highest is at least that as well, and screens at no less than last − 2 margin.
    last = float(np.partition(hits.scores, len(hits) - keep)[len(hits) - keep])
    cut = max(cut, last - 2 * margin)
    return hits.where(hits.scores >= cut), cut


def _waves(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    size = 2
    while wave := list(islice(blocks, size)):
        yield wave
        size = min(2 * size, _LARGEST_WAVE)
