"""How the impostor scores are distributed: counts in equal bins, for curves and for finding where to look closer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs.pairing import Block, Pairing
from unface.pairs.screen import Screen
from unface.threads import parallel_map


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of scores in bins of one width; the first and the last bin also take what lies beyond them."""

    low: float
    width: float
    counts: NDArray[np.int64]

    @property
    def edges(self) -> NDArray[np.float64]:
        """Lower edges of the bins."""
        return np.asarray(self.low + self.width * np.arange(len(self.counts)), dtype=np.float64)

    def at_least_edge(self) -> NDArray[np.int64]:
        """How many scores lie in each bin or above it."""
        return np.cumsum(self.counts[::-1])[::-1]

    def add(self, other: "Histogram") -> "Histogram":
        """Both counts together; the bins must be the same."""
        if (self.low, self.width, len(self.counts)) != (other.low, other.width, len(other.counts)):
            raise ValueError("histograms with different bins cannot be added")
        return Histogram(self.low, self.width, self.counts + other.counts)


def bin_scores(scores: NDArray[np.float32], low: float, width: float, bins: int) -> Histogram:
    """Count ready scores."""
    positions = np.clip((scores - low) * (1 / width), 0, bins - 1).astype(np.int64)
    return Histogram(low, width, np.bincount(positions.ravel(), minlength=bins))


def impostor_histogram(
    pairing: Pairing, screen: Screen, low: float, high: float, bins: int, *, threads: int | None = None
) -> Histogram:
    """Count the screened scores of all impostor pairs between ``low`` and ``high``."""
    width = (high - low) / bins

    def count(block: Block) -> NDArray[np.int64]:
        scores, mask = screen.scores(block), pairing.impostor_mask(block)
        return bin_scores(scores if mask is None else scores[mask], low, width, bins).counts

    total = np.zeros(bins, np.int64)
    for counts in parallel_map(
        count, pairing.blocks(screen.block_rows, screen.block_columns), screen.workers or threads
    ):
        total += counts
    return Histogram(low, width, total)


def sample_impostors(pairing: Pairing) -> NDArray[np.float32]:
    """Impostor scores among rows spread evenly over the identities, to know where the scores lie."""
    space, n = pairing.space, len(pairing)
    rows = np.unique(np.linspace(0, n - 1, min(n, int(np.clip(n // 8, 64, 1024)))).astype(np.int64))
    i, j = np.triu_indices(len(rows), 1)
    impostor = pairing.identities[rows[i]] != pairing.identities[rows[j]]
    sample: NDArray[np.float32] = (space.left[rows] @ space.right[rows].T)[i[impostor], j[impostor]]
    return sample
