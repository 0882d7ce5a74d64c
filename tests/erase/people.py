"""Small people for the erasers, and what is looked at after them."""

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, make_identities
from unface.erase import Projection

Matrix = NDArray[np.float64]


def people(
    identities: int = 12,
    images: int = 8,
    dim: int = 24,
    *,
    rank: int | None = None,
    between: float = 1.0,
    seed: int = 0,
    unequal: bool = False,
) -> EmbeddingSet:
    """Raw Gaussian people, in no order of rows: an eraser may not rely on sorted ones."""
    made = make_identities(identities, images, dim, rank=rank, between=between, seed=seed, unequal=unequal)
    return made.take(np.random.default_rng(seed).permutation(len(made)))


def class_means(vectors: NDArray[np.floating], identities: NDArray[np.int64]) -> Matrix:
    return np.array([vectors[identities == code].mean(axis=0, dtype=np.float64) for code in np.unique(identities)])


def matrix_of(projection: Projection) -> Matrix:
    """P with P z = z − A Bᵀ z."""
    readers = projection.directions if projection.readers is None else projection.readers
    return np.asarray(np.eye(projection.dim) - projection.directions @ readers.T)


def mean_spread(vectors: NDArray[np.floating], identities: NDArray[np.int64]) -> float:
    """How far class means lie apart, beside the size of the vectors."""
    means = class_means(vectors, identities)
    return float(np.abs(means - means.mean(axis=0)).max() / np.abs(vectors).max())
