"""How many impostor pairs a threshold accepts and which score has a given rank, exactly, without listing the pairs."""

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs.histogram import Histogram, impostor_histogram, sample_impostors
from unface.pairs.pairing import Block, Pairing
from unface.pairs.screen import Hits, Screen, join_hits
from unface.pairs.sweep import (
    PIECE,
    Reaching,
    look_through,
    most_held,
    parts_of,
    require_few_ties,
    rows_within,
)
from unface.threads import parallel_map


@dataclass(frozen=True, eq=False)
class Accepts:
    """Accepted impostor pairs at each threshold: all, and those that each identity takes part in, (identities, t)."""

    total: NDArray[np.int64]
    by_identity: NDArray[np.int64]


def count_impostors(
    pairing: Pairing, thresholds: NDArray[np.float64], screen: Screen, *, threads: int | None = None
) -> Accepts:
    """Impostor pairs with an exact score of at least each threshold."""
    identities = int(pairing.identities[-1]) + 1
    by_identity = np.zeros((identities, len(thresholds)), np.int64)
    reaching, held, count = Reaching(pairing.space, screen.margin), [Hits.none()], 0

    def add_up() -> None:
        hits = join_hits(held)
        for column, threshold in enumerate(thresholds):
            accepted = reaching(hits, threshold)
            for side in (hits.i, hits.j):
                by_identity[:, column] += np.bincount(pairing.identities[side[accepted]], minlength=identities)

    def take(hits: Hits) -> None:
        nonlocal held, count
        held.append(hits)
        count += len(hits)
        if count > most_held():
            add_up()
            held, count = [Hits.none()], 0

    lowest = float(thresholds.min()) - screen.margin
    look_through(pairing, screen, lambda: lowest, take, threads=threads)
    add_up()
    return Accepts(by_identity.sum(axis=0) // 2, by_identity)


def reaching_impostors(pairing: Pairing, score: float, most: int, screen: Screen) -> int | None:
    """How many impostor pairs have an exact score of at least ``score``; None as soon as these are more than ``most``.

    Only what the screen cannot separate from ``score`` is listed, so a score deep among the others costs no more than
    one above nearly all of them.
    """
    low = np.nextafter(np.float32(score - screen.margin), np.float32(-np.inf))
    high = np.nextafter(np.float32(score + screen.margin), np.float32(np.inf))
    reaching, near, held, decided = 0, [Hits.none()], 0, 0

    def decide() -> int:
        hits = join_hits(near)
        return int(np.count_nonzero(pairing.space.exact(hits.i, hits.j) >= score))

    for block in pairing.blocks(screen.block_rows, screen.block_columns):
        scores = screen.scores(block)
        pairing.leave_impostors(block, scores)
        reaching += (sure := int(np.count_nonzero(scores >= high)))
        if reaching > most:
            return None
        unsure = int(np.count_nonzero(scores >= low)) - sure
        for part in parts_of(block, PIECE) if unsure > PIECE else [block] if unsure else []:
            here = scores[rows_within(part, block)]
            i, j = np.nonzero((here >= low) & (here < high))
            near.append(Hits(i + part.rows.start, j + part.columns.start, here[i, j]))
            held += len(i)
            if held > most_held():
                decided += held
                require_few_ties(decided, score)
                reaching, near, held = reaching + decide(), [Hits.none()], 0
    reaching += decide()
    return reaching if reaching <= most else None


def ranked_impostor(pairing: Pairing, rank: int, screen: Screen, *, threads: int | None = None) -> tuple[float, int]:
    """The impostor score that exactly ``rank`` others precede in falling order, and how many are strictly higher.

    Two passes and little memory: a histogram says where the rank lies, the second pass lists that neighbourhood only.
    """
    histogram = fine_histogram(pairing, screen, threads=threads)
    low, high = neighbourhood(histogram, int(np.flatnonzero(histogram.at_least_edge() > rank)[-1]), screen.margin)
    above, scores, counts = impostors_between(pairing, low, high, screen, threads=threads)
    higher = above + np.cumsum(counts) - counts
    position = int(np.searchsorted(higher, rank, side="right")) - 1
    return float(scores[position]), int(higher[position])


def fine_histogram(pairing: Pairing, screen: Screen, *, threads: int | None = None) -> Histogram:
    """A histogram fine enough that one bin of it can be listed."""
    sample = sample_impostors(pairing)
    low, high = float(sample.min()), float(sample.max())
    return impostor_histogram(pairing, screen, low, max(high, low + screen.margin), bins=65_536, threads=threads)


def neighbourhood(histogram: Histogram, position: int, margin: float) -> tuple[float, float]:
    """Bounds that hold every score counted in a bin: a bin wider on both sides, and open at either end."""
    slack = histogram.width + margin
    low = -np.inf if position == 0 else histogram.edges[position] - slack
    high = np.inf if position + 1 == len(histogram.counts) else histogram.edges[position] + histogram.width + slack
    return float(np.float32(low)), float(np.float32(high))


def impostors_between(
    pairing: Pairing, low: float, high: float, screen: Screen, *, threads: int | None = None
) -> tuple[int, NDArray[np.float32], NDArray[np.int64]]:
    """How many impostor pairs score ``high`` or more; the scores from ``low`` up to it, falling, and pairs of each."""
    # Rounded up: a bound that lost half a step in float32 would count a score just below ``high`` as over it.
    sure = float(np.nextafter(np.float32(high + screen.margin), np.inf))
    lock, tally, above = threading.Lock(), _Tally(), 0

    def take(exact: NDArray[np.float32]) -> None:
        nonlocal above
        with lock:
            above += int(np.count_nonzero(exact >= high))
            tally.take(exact[(exact >= low) & (exact < high)])

    def look(block: Block) -> int:
        scores, mask = screen.scores(block), pairing.impostor_mask(block)
        inside = (scores >= low - screen.margin) & (scores < sure)
        over = scores >= sure
        if mask is not None:
            inside, over = inside & mask, over & mask
        if np.count_nonzero(inside) > PIECE:
            for part in parts_of(block, PIECE):
                exact = pairing.space.exact_block(part.rows, part.columns)
                take(exact[inside[rows_within(part, block)]])
        else:
            i, j = np.nonzero(inside)
            take(pairing.space.exact(i + block.rows.start, j + block.columns.start))
        return int(np.count_nonzero(over))

    blocks = pairing.blocks(screen.block_rows, screen.block_columns)
    over = parallel_map(look, blocks, screen.workers or threads)
    return sum(over) + above, *tally.falling()


class _Tally:
    """Distinct scores and how many pairs have each."""

    def __init__(self) -> None:
        self._scores, self._counts = [np.empty(0, np.float32)], [np.empty(0, np.int64)]
        self._held = 0

    def take(self, scores: NDArray[np.float32]) -> None:
        self._scores.append(scores)
        self._counts.append(np.ones(len(scores), np.int64))
        self._held += len(scores)
        if self._held > 4 * most_held():
            distinct, counts = self.falling()
            self._scores, self._counts, self._held = [distinct], [counts], len(distinct)
            if self._held > 2 * most_held():
                raise UnfaceError(
                    f"more than {2 * most_held():,} different impostor scores are close to the one that is looked for;"
                    " compare fewer vectors, or raise --memory"
                )

    def falling(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores in falling order, and the number of each."""
        scores, counts = np.concatenate(self._scores), np.concatenate(self._counts)
        order = np.argsort(scores, kind="stable")[::-1]
        scores, counts = scores[order], counts[order]
        first = np.flatnonzero(np.concatenate([np.ones(min(len(scores), 1), bool), scores[1:] != scores[:-1]]))
        return scores[first], np.add.reduceat(counts, first) if len(first) else counts
