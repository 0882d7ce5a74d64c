"""Class sums and scatter: all that the closed-form probes and erasers ever need of the samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Counts (m,), sums (m, d) and the uncentred scatter Σ x xᵀ (d, d), in float64."""

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    scatter: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Class means, (m, d)."""
        means: NDArray[np.float64] = self.sums / self.counts[:, None]
        return means

    def within_covariance(self) -> NDArray[np.float64]:
        """Pooled covariance around the class means; unbiased."""
        between = np.einsum("md,me->de", self.sums / self.counts[:, None], self.sums, optimize=True)
        return _symmetric(self.scatter - between) / float(self.counts.sum() - len(self.counts))

    def total_covariance(self) -> NDArray[np.float64]:
        """Covariance around the mean of all samples; unbiased."""
        n = float(self.counts.sum())
        mean = self.sums.sum(axis=0) / n
        return _symmetric(self.scatter - n * np.outer(mean, mean)) / (n - 1)


def class_moments(vectors: NDArray[np.floating], identities: NDArray[np.integer]) -> ClassMoments:
    """Moments of the (n, d) vectors; identities are codes 0 … m − 1, each of them present."""
    order = np.argsort(identities, kind="stable")
    counts = np.bincount(identities)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    exact = np.asarray(vectors, np.float64)
    return ClassMoments(counts, np.add.reduceat(exact[order], starts, axis=0), exact.T @ exact)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
