"""Erasers that know what must stay: identity is measured in units of how much the vectors of another use vary."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.erase.eraser import ClosedFormEraser, FitError, Matrix, Removal, chosen_rank, require_rank
from unface.erase.spectrum import Weighting, Whitening, mean_spectrum, symmetric_spectrum, whitening
from unface.moments import MomentStream

# Of the utility covariance towards its mean variance. Where utility hardly varies, removing costs nothing and the
# ratio would be decided by the noise of a small sample. On real encoders 0.001 equals 0.01; 0.1 costs utility.
_SHRINKAGE = 0.01


class UtilityPCA(ClosedFormEraser):
    """Removes the directions in which the fitted vectors vary most beside the ``utility`` vectors (n, d), label-free.

    x ↦ x − A Bᵀ(x − μ_u): B are the leading generalized eigenvectors of (Σ_x, Σ_u) and A = Σ_u B, so that what is left
    of the utility vectors is their best linear reconstruction from what is kept. The spectrum is in units of Σ_u. With
    Σ_u isotropic this is LabelFreePCA. ``utility`` is what the vectors are for, without the people to be protected.
    """

    kind: ClassVar[str] = "utility_pca"
    uses_identities: ClassVar[bool] = False

    def __init__(self, rank: int = 192, *, utility: ArrayLike | None = None, normalise: bool = True) -> None:
        self.rank = rank
        self.utility = utility
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        require_rank(self.kind, self.rank, seen.dim)
        mean, scale = _utility_units(self.kind, self.utility, seen.dim)
        spectrum = symmetric_spectrum(scale.whiten.T @ seen.moments().total_covariance() @ scale.whiten)
        if self.rank > len(spectrum.values):
            varying = len(spectrum.values)
            raise FitError(
                f"{self.kind}: rank {self.rank}, but the vectors vary in {varying} directions only; lower it"
            )
        directions, readers = scale.oblique(spectrum.leading(self.rank))
        return Removal(directions, spectrum.values, readers, mean)


class UtilityLEACE(ClosedFormEraser):
    """LEACE with the smallest change to the ``utility`` vectors (n, d) in place of the fitted ones.

    x ↦ x − W⁻¹ U Uᵀ W (x − μ_u), W = Σ_u^{-1/2}, U the first left singular vectors of W Σ_xz. With the fitted vectors
    as utility this is LEACE, with Σ_u isotropic SAL. ``rank`` and ``energy`` as there.
    """

    kind: ClassVar[str] = "utility_leace"

    def __init__(
        self,
        rank: int | None = 192,
        *,
        utility: ArrayLike | None = None,
        energy: float | None = None,
        normalise: bool = True,
    ) -> None:
        self.rank = rank
        self.utility = utility
        self.energy = energy
        self.normalise = normalise

    def needs_scatter(self) -> bool:
        return False

    def _remove(self, seen: MomentStream) -> Removal:
        mean, scale = _utility_units(self.kind, self.utility, seen.dim)
        sums = seen.sums()
        spectrum = mean_spectrum(sums, Weighting.CROSS_COVARIANCE, scale.whiten)
        rank = chosen_rank(self.kind, spectrum.values, seen.dim, seen.identities, self.rank, self.energy)
        directions, readers = scale.oblique(spectrum.leading(rank))
        return Removal(directions, spectrum.values / float(sums.counts.sum()), readers, mean)


def _utility_units(kind: str, utility: ArrayLike | None, dim: int) -> tuple[NDArray[np.float64], Whitening]:
    """Mean of the utility vectors and the whitening by their shrunk covariance."""
    if utility is None:
        raise FitError(f"{kind}: no utility vectors; give utility= an array of shape (n, {dim})")
    array = np.asarray(utility)
    if array.ndim != 2 or array.shape[1] != dim or len(array) < 2 or array.dtype.kind not in "fiu":
        given = f"utility vectors of shape {array.shape} and type {array.dtype}"
        raise FitError(f"{kind}: {given}; expected numbers of shape (n, {dim}) with n at least 2")
    exact = np.asarray(array, np.float64)
    if not np.isfinite(exact).all():
        raise FitError(f"{kind}: utility vectors have NaN or Inf; drop those rows")
    mean: NDArray[np.float64] = exact.mean(axis=0)
    covariance: Matrix = (exact - mean).T @ (exact - mean) / (len(exact) - 1)
    variance = float(np.trace(covariance)) / dim
    scale = whitening((1 - _SHRINKAGE) * covariance + _SHRINKAGE * variance * np.eye(dim))
    if scale is None:
        raise FitError(f"{kind}: all utility vectors are the same; give ones that vary")
    return mean, scale
