"""Linear fits in closed form: one eigendecomposition serves every strength of regularisation.

Ridge regression and discriminants are two different things that share no more than this decomposition. Ridge solves
(S + αI) W = XᵀY for one-hot classes Y: probe/ridge.py leaves S uncentred and takes α as it is (the ISP paper, A.5),
utility/tasks.py centres S and takes α in units of its mean. Discriminants whiten by the covariance within classes,
shrunk towards its mean variance: probe/fisher.py does so for many identities, swap/attack.py for two labels,
erase/gate.py for faces and everything else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
_ROWS_AT_ONCE = 2048


def spectrum(matrix: Matrix) -> tuple[NDArray[np.float64], Matrix]:
    """Eigenvalues (d,), rising and none below 0, and eigenvectors (d, d) of a matrix that has none but for rounding."""
    values, axes = np.linalg.eigh(matrix)
    return np.maximum(values, 0), axes


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """W = basis @ weights(α), for every α."""

    energy: NDArray[np.float64]  # (d,)
    basis: Matrix  # (d, d)
    targets: Matrix  # (d, m): XᵀY along the basis

    @classmethod
    def of(cls, scatter: Matrix, products: Matrix) -> "RidgeFit":
        """From S (d, d) and XᵀY (d, m), which class sums are made of: Y is never built."""
        energy, basis = spectrum(scatter)
        return cls(energy, basis, basis.T @ products)

    def weights(self, alpha: float) -> Matrix:
        """(d, m) along the basis."""
        weights: Matrix = self.targets / (self.energy + alpha)[:, None]
        return weights


@dataclass(frozen=True, eq=False)
class ShrunkCovariance:
    """A covariance along its own axes, for every shrinkage towards its mean variance."""

    values: NDArray[np.float64]
    axes: Matrix
    level: float
    """The mean variance."""

    @classmethod
    def of(cls, covariance: Matrix, energy: float, dim: int | None = None) -> "ShrunkCovariance":
        """``energy`` is the mean square of the samples' entries; ``dim`` the dimensions, if some vary in none of them.

        Samples that do not vary at all cannot be whitened; a trace of their energy keeps that finite.
        """
        values, axes = spectrum(covariance)
        mean = float(values.sum()) / (dim or len(values))
        return cls(values, axes, max(mean, 1e-12 * energy, float(np.finfo(float).tiny)))

    def variances(self, shrinkage: float) -> NDArray[np.float64]:
        """(d,) along the axes."""
        return (1 - shrinkage) * self.values + shrinkage * self.level

    def discriminant(self, difference: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
        """Σ⁻¹(μ₁ − μ₀): the normal of Fisher's boundary between two classes whose means differ by so much."""
        normal: NDArray[np.float64] = self.axes @ ((self.axes.T @ difference) / self.variances(shrinkage))
        return normal


class PairSums:
    """Sums over pairs (x, y) of vectors of the same picture in two spaces; batches and sums add up, no pair is held."""

    def __init__(self, inner: int, outer: int) -> None:
        self.count = 0
        self.x, self.y = np.zeros(inner), np.zeros(outer)
        self.xx, self.xy = np.zeros((inner, inner)), np.zeros((inner, outer))

    def add(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> "PairSums":
        """A batch (n, inner) and (n, outer); returns itself."""
        for start in range(0, len(x), _ROWS_AT_ONCE):
            first, second = (np.asarray(side[start : start + _ROWS_AT_ONCE], np.float64) for side in (x, y))
            self.count += len(first)
            self.x += first.sum(axis=0)
            self.y += second.sum(axis=0)
            self.xx += first.T @ first
            self.xy += first.T @ second
        return self

    def fit(self) -> "LinearMaps":
        """Least squares of y on x with an intercept, for every strength of regularisation."""
        x, y = self.x / self.count, self.y / self.count
        fit = RidgeFit.of(self.xx - self.count * np.outer(x, x), self.xy - self.count * np.outer(x, y))
        return LinearMaps(fit, x, y)


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """y ≈ (x − x̄) W + ȳ for every strength; α is the strength times the mean of the centred scatter's eigenvalues."""

    fit: RidgeFit
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def at(self, strength: float) -> "LinearMap":
        """The map at one strength."""
        weights = self.fit.basis @ self.fit.weights(strength * float(self.fit.energy.mean()))
        return LinearMap(weights, self.y - self.x @ weights)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """y = x W + b."""

    weights: Matrix  # (inner, outer)
    offset: NDArray[np.float64]

    def __call__(self, vectors: NDArray[np.floating]) -> Matrix:
        """(n, outer) of (n, inner)."""
        mapped: Matrix = vectors @ self.weights + self.offset
        return mapped
