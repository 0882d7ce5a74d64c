"""The map of a projection as matrix products, in whichever of its three forms is cheapest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.threads import one_blas_thread

Matrix = NDArray[np.float64]

# Near half of the dimensions two thin products and a subtraction cost more than one square product; so they do where
# a vector is so short that calls cost more than arithmetic.
_SQUARE_FROM = 0.45
_SHORT = 64


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ x L R, or x − x L R, plus an offset; R may be missing.

    In float64: in float32 the rounding of the factors leaves a hundred-millionth of what was removed, which is still
    linear in it, and an attacker who looks along the removed directions reads identities from that. Erased in float64
    and rounded afterwards, a vector is a function of what was kept.
    """

    left: Matrix  # (d, k)
    right: Matrix | None  # (k, d)
    subtract: bool
    offset: NDArray[np.float64] | None  # (d,)

    def __call__(self, vectors: Matrix) -> Matrix:
        """Of (n, d) vectors or a single one; always a new array. NaN and Inf pass through, for the caller to see."""
        mapped: Matrix = vectors @ self.left
        if self.right is not None:
            mapped = mapped @ self.right
        if self.subtract:
            np.subtract(vectors, mapped, out=mapped)
        if self.offset is not None:
            mapped += self.offset
        return mapped


def cheapest_map(directions: Matrix, readers: Matrix | None, mean: NDArray[np.float64] | None) -> LinearMap:
    """z ↦ z − A Bᵀ(z − mean) as I − A Bᵀ, as the thin factors of its complement, or as one square matrix."""
    dim, rank = directions.shape
    read = directions if readers is None else readers
    offset = None if mean is None else directions @ (read.T @ mean)
    if dim <= _SHORT or min(rank, dim - rank) > _SQUARE_FROM * dim:
        return LinearMap(np.eye(dim) - read @ directions.T, None, False, offset)
    if rank < dim - rank:
        return LinearMap(np.ascontiguousarray(read), np.ascontiguousarray(directions.T), True, offset)
    # What is kept is spanned by the complement C of the readers, and P = C CᵀP = C (Cᵀ − CᵀA Bᵀ).
    with one_blas_thread():
        kept = np.linalg.qr(read, mode="complete")[0][:, rank:]
    return LinearMap(kept - read @ (directions.T @ kept), np.ascontiguousarray(kept.T), False, offset)
