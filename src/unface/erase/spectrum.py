"""Where class means lie: singular values and left singular vectors of the matrix of their deviations, from sums alone;
and whitening, which turns an orthogonal projection of whitened vectors into an oblique one of the vectors.

The one-hot matrix of identities is never built: column i of Σ_xz is (n_i / N)(μ_i − μ).
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from unface.moments import ClassSums

Matrix = NDArray[np.float64]

# Relative to the largest squared singular value: the noise of float32 samples and of the Gram matrix lies below it.
# An absolute cut-off would grow with the number of identities m, since Σ_xz shrinks as 1/√m.
NEGLIGIBLE = 1e-12

# Relative to the largest variance. Below it lie directions in which float32 samples hold little but rounding, and
# whitening them would multiply that rounding by more than a hundred thousand.
_NO_VARIANCE = 1e-10

# Of the largest squared singular value to the smallest kept. M v / σ is orthonormal to about eps times that, or to
# 2e-15 where that is more, which is as good as the Cholesky QR that could follow.
_STEEP = 100


class Weighting(Enum):
    """How much the deviation of a class mean counts, as the power of the class size."""

    EQUAL = 0.0
    """M = [μ_i − mean of the means]: ISP."""
    SCATTER = 0.5
    """M Mᵀ = Σ n_i (μ_i − μ)(μ_i − μ)ᵀ, the between-class scatter: weighted ISP."""
    CROSS_COVARIANCE = 1.0
    """M = N Σ_xz: SAL and LEACE."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values, falling, those that are not negligible; and what the vectors are made from."""

    values: NDArray[np.float64]
    _vectors: Matrix
    _columns: Matrix | None

    def leading(self, rank: int) -> Matrix:
        """The first left singular vectors, (d, rank), orthonormal."""
        if self._columns is None:
            return self._vectors[:, :rank]
        nearly: Matrix = self._columns @ self._vectors[:, :rank]
        nearly /= np.linalg.norm(nearly, axis=0)
        if not rank or self.values[0] ** 2 <= _STEEP * self.values[rank - 1] ** 2:
            return nearly
        # M v / σ is orthonormal up to what small σ magnify; one Cholesky QR settles that and keeps the span.
        triangle = np.linalg.cholesky(nearly.T @ nearly)
        basis: Matrix = solve_triangular(triangle, nearly.T, lower=True).T
        return basis


def mean_spectrum(sums: ClassSums, weighting: Weighting, whiten: Matrix | None = None) -> Spectrum:
    """Spectrum of the deviations M (d, m), or of ``whiten``ᵀ M (k, m)."""
    centre = _centre(sums, weighting)
    dim = sums.sums.shape[1] if whiten is None else whiten.shape[1]
    if len(sums.counts) <= dim:
        columns = _deviations(sums, weighting, centre, whiten).T
        energy, vectors = np.linalg.eigh(columns.T @ columns)
        return _sorted(energy, vectors, columns)
    gram = np.zeros((dim, dim))
    for block in sums.blocks():
        rows = _deviations(block, weighting, centre, whiten)
        gram += rows.T @ rows
    energy, vectors = np.linalg.eigh(gram)
    return _sorted(energy, vectors, None)


def symmetric_spectrum(covariance: Matrix) -> Spectrum:
    """Principal directions of a covariance; the values are standard deviations."""
    energy, vectors = np.linalg.eigh(covariance)
    return _sorted(energy, vectors, None)


def row_spectrum(rows: Matrix) -> Spectrum:
    """The same of fewer vectors (n, d) than dimensions, from their inner products: n²d and not d³."""
    columns = (rows - rows.mean(axis=0)).T / np.sqrt(len(rows) - 1)
    energy, vectors = np.linalg.eigh(columns.T @ columns)
    return _sorted(energy, vectors, columns)


@dataclass(frozen=True, eq=False)
class Whitening:
    """x ↦ x @ ``whiten`` has the identity as its covariance; ``restore`` (d, k) leads back: whitenᵀ restore = I."""

    whiten: Matrix
    restore: Matrix

    def oblique(self, basis: Matrix) -> tuple[Matrix, Matrix]:
        """(A, B) of I − A Bᵀ, which removes the orthonormal ``basis`` (k, r) of the whitened space.

        A is made orthonormal, so that B is as short as this projection allows and float32 loses least.
        """
        directions, triangle = np.linalg.qr(self.restore @ basis)
        return directions, self.whiten @ (basis @ triangle.T)


def whitening(covariance: Matrix) -> Whitening | None:
    """From the eigenvectors of a covariance with variance in them; None if there is no variance at all."""
    values, vectors = np.linalg.eigh(covariance)
    real = values > _NO_VARIANCE * max(values[-1], 0.0)
    if not real.any():
        return None
    scale = np.sqrt(values[real])
    return Whitening(vectors[:, real] / scale, vectors[:, real] * scale)


def _sorted(energy: NDArray[np.float64], vectors: Matrix, columns: Matrix | None) -> Spectrum:
    real = np.flatnonzero(energy > NEGLIGIBLE * max(energy[-1], 0.0))[::-1]
    return Spectrum(np.sqrt(energy[real]), vectors[:, real], columns)


def _centre(sums: ClassSums, weighting: Weighting) -> NDArray[np.float64]:
    if weighting is not Weighting.EQUAL:
        return sums.mean()
    total = np.zeros(sums.sums.shape[1])
    for block in sums.blocks():
        total += block.means.sum(axis=0)
    return total / len(sums.counts)


def _deviations(sums: ClassSums, weighting: Weighting, centre: NDArray[np.float64], whiten: Matrix | None) -> Matrix:
    rows: Matrix = sums.means - centre
    if weighting is not Weighting.EQUAL:
        rows *= (sums.counts**weighting.value)[:, None]
    return rows if whiten is None else rows @ whiten
