"""Where the attacker's identities differ most beside how each varies: the directions that lda and plda share."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unface.linear import ShrunkCovariance
from unface.moments import ClassMoments

SHRINKAGES = (0.05, 0.2, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class FisherBasis:
    """Directions in falling order of between-class spread, in units of the shrunk within-class covariance.

    ``x ↦ (x − mean) @ directions`` whitens the within-class covariance; ``spread`` is the variance of the class means
    along each direction.
    """

    mean: NDArray[np.float64]
    directions: NDArray[np.float64]
    spread: NDArray[np.float64]

    def apply(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The (n, d) vectors along the directions."""
        directions = self.directions.astype(np.float32)
        return vectors @ directions - (self.mean @ self.directions).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Fisher:
    """Moments of a support and one decomposition of its within-class covariance, for every shrinkage.

    Moments are along the (d, r) ``span`` of the support; beyond it nothing varies and no two means differ.
    """

    moments: ClassMoments
    span: NDArray[np.float64]
    _bases: dict[float, FisherBasis] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """With one image for each identity nothing is known of how one person varies."""
        stand_in = "one picture of each person: half the total covariance stands in for the within-class covariance"
        return (stand_in,) if self._single else ()

    @property
    def noise(self) -> float:
        """What the spread of the images of one identity adds to that of the means, in units of Σ_w: mean of 1 / n_i."""
        return float((1 / self.moments.counts).mean())

    @property
    def _single(self) -> bool:
        return int(self.moments.counts.max()) == 1

    @cached_property
    def _within(self) -> ShrunkCovariance:
        if self._single:
            covariance = self.moments.total_covariance() / 2
        else:
            covariance = self.moments.within_covariance()
        return ShrunkCovariance.of(covariance, self.moments.energy, len(self.span))

    def basis(self, shrinkage: float) -> FisherBasis:
        """Directions for Σ_w shrunk towards its mean variance."""
        if shrinkage not in self._bases:
            self._bases[shrinkage] = self._basis(shrinkage)
        return self._bases[shrinkage]

    def _basis(self, shrinkage: float) -> FisherBasis:
        whiten = self._within.axes / np.sqrt(self._within.variances(shrinkage))
        means = self.moments.means
        mean = means.mean(axis=0)
        centred = (means - mean) @ whiten
        spread, axes = _principal(centred)
        directions, spread = whiten @ axes, spread / (len(means) - 1)
        if self.span.shape[0] == self.span.shape[1]:
            return FisherBasis(mean, directions, spread)
        return FisherBasis(self.span @ mean, self.span @ directions, spread)


def _principal(centred: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squared singular values and right singular vectors (d, r) of an (m, d) matrix, from its smaller Gram matrix."""
    rows, columns = centred.shape
    if rows > columns:
        values, axes = np.linalg.eigh(centred.T @ centred)
    else:
        values, left = np.linalg.eigh(centred @ centred.T)
        axes = centred.T @ left / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    real = np.flatnonzero(values > values[-1] * 1e-9)[::-1]
    return values[real], axes[:, real]
