"""Every score is an inner product: cosine, l2 and quadratic scores all become left · right, so one engine serves them.

A score *is* the float32 nearest to that inner product taken in float64. Blocks are screened in lower precision and
whatever lies within the screen's error of a decision is decided by ``exact``; so counts and thresholds do not depend on
the BLAS, the device, the blocks or the number of threads.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.threads import parallel_map

FLOAT32_ROUNDOFF = float(np.finfo(np.float32).eps) / 2
_EXACT_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class PairSpace:
    """``score(i, j) = left[i] · right[j]``, symmetric in i and j; both (n, D) float32."""

    left: NDArray[np.float32]
    right: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: NDArray[np.int64]) -> "PairSpace":
        """The same space for some of the rows."""
        left = np.ascontiguousarray(self.left[rows])
        return PairSpace(left, left if self.right is self.left else np.ascontiguousarray(self.right[rows]))

    def exact(self, i: NDArray[np.int64], j: NDArray[np.int64], *, threads: int | None = 1) -> NDArray[np.float32]:
        """Scores of the pairs (i, j): the inner product in float64, settled."""

        def part(start: int) -> NDArray[np.float32]:
            chunk = slice(start, start + _EXACT_CHUNK)
            left, right = self.left[i[chunk]].astype(np.float64), self.right[j[chunk]].astype(np.float64)
            return self.settle(np.einsum("nd,nd->n", left, right))

        parts = parallel_map(part, range(0, len(i), _EXACT_CHUNK), threads)
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def exact_block(self, rows: slice, columns: slice) -> NDArray[np.float32]:
        """The same of all pairs of these rows and columns, for many times less than pair by pair."""
        return self.settle(self.left[rows].astype(np.float64) @ self.right[columns].astype(np.float64).T)

    def settle(self, products: NDArray[np.float64]) -> NDArray[np.float32]:
        """Float64 inner products as scores: what only the order of summation decides is rounded away.

        Float32 does that except near zero, where equal vectors at distance 0 would differ by 1e-16; so the grid.
        """
        grid = 2.0 ** (np.ceil(np.log2(self.bound)) - 40)
        return np.asarray(np.round(products / grid) * grid, dtype=np.float32)

    @cached_property
    def bound(self) -> float:
        """No score is larger than this in size (Cauchy-Schwarz)."""
        return float(_norms(self.left).max()) * float(_norms(self.right).max())

    def float32_margin(self) -> float:
        """No float32 evaluation, in any order of summation, is further than this from ``exact``."""
        # Higham, Accuracy and Stability, eq. 3.5: |fl(x·y) − x·y| ≤ γ_D |x|·|y|; the last term is exact's own rounding.
        terms = self.left.shape[1]
        gamma = terms * FLOAT32_ROUNDOFF / (1 - terms * FLOAT32_ROUNDOFF)
        return float((gamma + FLOAT32_ROUNDOFF) * self.bound)


def cosine_space(vectors: NDArray[np.floating]) -> PairSpace:
    """Scores are cosines of the (n, d) vectors."""
    norms = _norms(vectors)
    if not norms.all():
        raise UnfaceError(f"vector {int(np.argmin(norms))} is zero and has no direction; drop it before comparing")
    unit = np.empty(vectors.shape, np.float32)
    np.divide(vectors, norms[:, None], out=unit)  # in float64, as the norms are
    return PairSpace(unit, unit)


def l2_space(vectors: NDArray[np.floating]) -> PairSpace:
    """Scores are −‖a − b‖² = 2 a·b − ‖a‖² − ‖b‖² of the (n, d) vectors."""
    plain = np.asarray(vectors, np.float32)
    largest = float(_norms(plain).max(initial=0.0))
    if largest and not 1e-17 < largest < 1e18:
        raise UnfaceError(f"squared distances of vectors of length {largest:.1e} leave float32's range; scale them")
    return quadratic_space(2 * plain, plain, -(_norms(plain) ** 2))


def quadratic_space(left: NDArray[np.float32], right: NDArray[np.float32], own: NDArray[np.float64]) -> PairSpace:
    """Scores are left · right + own[i] + own[j]; each own term is added as two float32 columns, high and low."""
    # Each own term is shared with the other side's ones, so that ``bound`` grows no faster than scores.
    share = 2.0 ** np.floor(np.log2(np.abs(own).max()) / 2 + 0.5) if own.any() else 1.0
    high = (own / share).astype(np.float32)
    low = (own / share - high).astype(np.float32)
    terms, ones = np.stack([high, low], axis=1), np.full((len(own), 2), share, np.float32)
    return PairSpace(np.hstack([left, terms, ones]), np.hstack([right, ones, terms]))


def _norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    return norms
