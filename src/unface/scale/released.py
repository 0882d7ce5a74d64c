"""Vectors as they are released: scaled as the projection was fitted, erased, and in a space of their own."""

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.erase import Projection
from unface.errors import UnfaceError


def released_vectors(projection: Projection, vectors: NDArray[np.generic], source: str) -> NDArray[np.float32]:
    """(n, d) numbers of any width through a projection; zero vectors stay zero."""
    if vectors.shape[1] != projection.dim:
        raise UnfaceError(
            f"{source}: vectors of {vectors.shape[1]} dimensions; this projection is for {projection.dim}"
        )
    exact = vectors.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(exact).all(axis=1))
    if len(bad):
        raise UnfaceError(f"{source}: row {bad[0]} has NaN or Inf; repair or drop such rows ({len(bad):,} in all)")
    if projection.space.normalised:
        lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact, dtype=np.float64))
        exact = (exact / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
    erased = projection.apply(exact)
    # An oblique projection with a mean would turn "no vector" into one.
    erased[~exact.any(axis=1)] = 0
    return erased


def released_space(projection: Projection, given: Space | None) -> Space:
    """What comes out is another space than what went in: it must not be compared with raw vectors, or erased again."""
    space = given or projection.space
    encoder = f"{space.encoder or 'unknown encoder'} after {projection.kind} {projection.rank}"
    return Space(encoder, projection.sha256, projection.dim, projection.normalise)


def require_raw(projection: Projection, given: Space | None) -> None:
    """A file that names its space must name the projection's; one that says nothing is taken at its user's word."""
    if given is not None and is_named(given):
        projection.require_space(given)


def is_named(given: Space | None) -> bool:
    """Whether anybody said which encoder or weights vectors come from."""
    return given is not None and (given.encoder, given.weights_sha256) != (None, None)
