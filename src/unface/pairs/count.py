"""How many impostor pairs a threshold accepts and which score has a given rank, exactly, without listing the pairs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs.histogram import Histogram, impostor_histogram, sample_impostors
from unface.pairs.pairing import Block, Pairing
from unface.pairs.screen import Hits, Screen, join_hits
from unface.pairs.sweep import sweep
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
    hits, _ = sweep(pairing, screen, float(thresholds.min()) - screen.margin, threads=threads)
    identities = int(pairing.identities[-1]) + 1
    by_identity = np.zeros((identities, len(thresholds)), np.int64)
    for column, threshold in enumerate(thresholds):
        accepted = hits.scores >= threshold
        unsure = np.flatnonzero(np.abs(hits.scores - threshold) <= screen.margin)
        accepted[unsure] = pairing.space.exact(hits.i[unsure], hits.j[unsure]) >= threshold
        for side in (hits.i, hits.j):
            by_identity[:, column] += np.bincount(pairing.identities[side[accepted]], minlength=identities)
    return Accepts(by_identity.sum(axis=0) // 2, by_identity)


def reaching_impostors(pairing: Pairing, score: float, most: int, screen: Screen) -> int | None:
    """How many impostor pairs have an exact score of at least ``score``; None as soon as these are more than ``most``.

    Only what the screen cannot separate from ``score`` is listed, so a score deep among the others costs no more than
    one above nearly all of them.
    """
    low = np.nextafter(np.float32(score - screen.margin), np.float32(-np.inf))
    high = np.nextafter(np.float32(score + screen.margin), np.float32(np.inf))
    reaching, near = 0, []
    for block in pairing.blocks(screen.block_rows, screen.block_columns):
        scores = screen.scores(block)
        pairing.leave_impostors(block, scores)
        reaching += (sure := int(np.count_nonzero(scores >= high)))
        if reaching > most:
            return None
        if np.count_nonzero(scores >= low) > sure:
            i, j = np.nonzero((scores >= low) & (scores < high))
            near.append((i + block.rows.start, j + block.columns.start))
    for i, j in near:
        reaching += int(np.count_nonzero(pairing.space.exact(i, j) >= score))
    return reaching if reaching <= most else None


def ranked_impostor(pairing: Pairing, rank: int, screen: Screen, *, threads: int | None = None) -> tuple[float, int]:
    """The impostor score that exactly ``rank`` others precede in falling order, and how many are strictly higher.

    Two passes and little memory: a histogram says where the rank lies, the second pass lists that neighbourhood only.
    """
    histogram = fine_histogram(pairing, screen, threads=threads)
    low, high = neighbourhood(histogram, int(np.flatnonzero(histogram.at_least_edge() > rank)[-1]), screen.margin)
    above, scores = impostors_between(pairing, low, high, screen, threads=threads)
    score = scores[rank - above]
    return float(score), above + int(np.count_nonzero(scores > score))


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
) -> tuple[int, NDArray[np.float32]]:
    """How many impostor pairs score ``high`` or more, and the scores from ``low`` up to it, falling."""

    # Rounded up: a bound that lost half a step in float32 would count a score just below ``high`` as over it.
    sure = float(np.nextafter(np.float32(high + screen.margin), np.inf))

    def look(block: Block) -> tuple[int, Hits]:
        scores, mask = screen.scores(block), pairing.impostor_mask(block)
        inside = (scores >= low - screen.margin) & (scores < sure)
        over = scores >= sure
        if mask is not None:
            inside, over = inside & mask, over & mask
        i, j = np.nonzero(inside)
        return int(np.count_nonzero(over)), Hits(i + block.rows.start, j + block.columns.start, scores[i, j])

    blocks = pairing.blocks(screen.block_rows, screen.block_columns)
    found = parallel_map(look, blocks, screen.workers or threads)
    hits = join_hits([hits for _, hits in found])
    exact = pairing.space.exact(hits.i, hits.j)
    above = sum(count for count, _ in found) + int(np.count_nonzero(exact >= high))
    return above, np.sort(exact[(exact >= low) & (exact < high)])[::-1]
