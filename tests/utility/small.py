"""Small sets for the tasks, and ways to erase that are known by heart."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, identity_basis, make_identities

Vectors = NDArray[np.float32]


def classes(
    count: int = 8, images: int = 30, dim: int = 16, *, rank: int | None = None, between: float = 1.0, seed: int = 0
) -> EmbeddingSet:
    """Classes of nobody, in no order of rows."""
    made = make_identities(count, images, dim, rank=rank, between=between, seed=seed)
    return shuffled(made, seed)


def shuffled(made: EmbeddingSet, seed: int = 0) -> EmbeddingSet:
    return made.take(np.random.default_rng(seed).permutation(len(made)))


def without_classes(vectors: Vectors, rank: int, seed: int = 0) -> Vectors:
    """The vectors without the subspace that ``classes`` of that rank lie in."""
    basis = identity_basis(vectors.shape[1], rank, seed)
    return (vectors - vectors @ basis @ basis.T).astype(np.float32)


def copies(
    references: Sequence[Sequence[float]], queries: Sequence[tuple[str | None, Sequence[float]]]
) -> EmbeddingSet:
    """References r0, r1, … and queries q0, q1, …, each with the id it names."""
    ids = [f"r{row}" for row in range(len(references))] + [f"q{row}" for row in range(len(queries))]
    named = np.array([None] * len(references) + [name for name, _ in queries], dtype=object)
    vectors = np.array([*references, *(vector for _, vector in queries)], np.float32)
    return EmbeddingSet.from_arrays(vectors, ids, ids=ids, labels={"copy_of": named}, source="copies")


def noisy_copies(
    references: int = 40, queries: int = 30, dim: int = 8, *, noise: float = 0.7, distractors: int = 0, seed: int = 0
) -> EmbeddingSet:
    """Queries are references with noise on them; distractors have nothing to do with any."""
    rng = np.random.default_rng(seed)
    originals = rng.standard_normal((references, dim))
    named = rng.integers(references, size=queries)
    altered = originals[named] + noise * rng.standard_normal((queries, dim))
    strangers = rng.standard_normal((distractors, dim))
    rows = [(f"r{number}", vector) for number, vector in zip(named, altered.tolist(), strict=True)]
    return copies(originals.tolist(), [*rows, *(("nothing", vector) for vector in strangers.tolist())])


def at_angles(*degrees: float) -> list[list[float]]:
    """Unit vectors in the plane: their cosines are those of differences."""
    return [[float(np.cos(np.deg2rad(angle))), float(np.sin(np.deg2rad(angle)))] for angle in degrees]
