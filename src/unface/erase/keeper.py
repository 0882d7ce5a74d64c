"""The eraser that decides what stays: directions that tell pictures apart, and neither copies nor people."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from unface.erase.eraser import ClosedFormEraser, FitError, Matrix, Removal
from unface.erase.projection import complement
from unface.erase.spectrum import NEGLIGIBLE
from unface.moments import ClassMoments, MomentStream

# Of the nuisance covariance towards its mean variance: a direction in which few copies happened not to move is not one
# in which no copy moves.
_SHRINKAGE = 0.1
_ROWS_AT_ONCE = 4096


class Keeper(ClosedFormEraser):
    """Keeps the ``kept`` directions in which pictures differ most beside copies of a picture and beside people.

    W v = λ (A + μ · tr A / tr B · B) v, and z ↦ Vᵀz of the leading v. W is the covariance of pictures of one person, B
    that of people: the covariance of class means less what W / n adds to it, negative eigenvalues clipped. A is the
    ``nuisance``, a (d, d) covariance of what must not matter: ``copy_covariance`` of known copies, or
    ``task_covariance`` of labelled vectors; it is shrunk by 0.1 towards its mean variance.

    μ = ``mu`` says how much people count beside copies; 0 ignores whose pictures are alike, but for W. What comes out
    has ``kept`` dimensions; ``projection_.in_same_dimension()`` releases the same cosines in as many as went in.
    """

    kind: ClassVar[str] = "keeper"

    def __init__(
        self, kept: int = 64, *, mu: float = 0.3, nuisance: ArrayLike | None = None, normalise: bool = True
    ) -> None:
        self.kept = kept
        self.mu = mu
        self.nuisance = nuisance
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        self._require_options(seen.dim)
        nuisance, moments = self._shrunk_nuisance(seen.dim), seen.moments()
        if int(moments.counts.sum()) == len(moments.counts):
            raise FitError(f"{self.kind}: every identity has one image; at least one needs two, to see how they differ")
        within = moments.within_covariance()
        avoided = nuisance
        if self.mu > 0:
            between = between_covariance(moments, within)
            if np.trace(between) > 0:
                avoided = nuisance + self.mu * np.trace(nuisance) / np.trace(between) * between
        values, vectors = eigh(within, avoided)
        values, vectors = values[::-1], vectors[:, ::-1]
        varying = int(np.count_nonzero(values > NEGLIGIBLE * max(values[0], 0.0)))
        if varying < self.kept:
            raise FitError(
                f"{self.kind}: {self.kept} dimensions to keep, but images of one identity differ in {varying} only;"
                " keep fewer, or give more images"
            )
        chosen = vectors[:, : self.kept]
        # To a largest singular value of one, so that a vector that is not zero and comes out as zero has vanished.
        chosen = np.ascontiguousarray(chosen / np.linalg.norm(chosen, 2))
        return Removal(complement(chosen), values[:varying], kept=chosen)

    def _require_options(self, dim: int) -> None:
        if isinstance(self.kept, bool) or not isinstance(self.kept, int | np.integer) or not 1 <= self.kept <= dim:
            raise FitError(
                f"{self.kind}: {self.kept!r} of {dim} dimensions to keep; expected a whole number, 1 to {dim}"
            )
        if not 0 <= self.mu < np.inf:
            raise FitError(f"{self.kind}: mu {self.mu:g}; expected 0 or more")

    def _shrunk_nuisance(self, dim: int) -> Matrix:
        if self.nuisance is None:
            raise FitError(f"{self.kind}: no copies and no task; give nuisance= a covariance of shape ({dim}, {dim})")
        nuisance = np.asarray(self.nuisance, np.float64)
        if nuisance.shape != (dim, dim) or not np.isfinite(nuisance).all() or not _is_covariance(nuisance):
            raise FitError(
                f"{self.kind}: nuisance of shape {nuisance.shape}; expected a covariance of shape ({dim}, {dim}),"
                " such as copy_covariance makes"
            )
        variance = float(np.trace(nuisance)) / dim
        if not variance > 0:
            raise FitError(f"{self.kind}: copies are the same as their originals; give copies that were changed")
        shrunk: Matrix = (1 - _SHRINKAGE) * nuisance + _SHRINKAGE * variance * np.eye(dim)
        return shrunk


def between_covariance(moments: ClassMoments, within: Matrix) -> Matrix:
    """Of people: the covariance of class means less what the mean of n images varies by itself, clipped at zero."""
    means = moments.means
    images = float(np.mean(1 / moments.counts))
    covariance = np.atleast_2d(np.cov(means.T)) - images * within
    values, vectors = np.linalg.eigh(covariance)
    clipped: Matrix = (vectors * np.maximum(values, 0)) @ vectors.T
    return clipped


def copy_covariance(originals: NDArray[np.floating], copies: NDArray[np.floating]) -> Matrix:
    """(d, d) of (copy − original)/√2, row by row of two arrays (n, d); around zero, since a pair has no order."""
    if originals.shape != copies.shape or originals.ndim != 2:
        raise FitError(f"copies of shape {copies.shape}, originals of {originals.shape}; expected one for each, (n, d)")
    if not len(copies):
        raise FitError("keeper: no copies; give at least one, better thousands")
    total = np.zeros((copies.shape[1], copies.shape[1]))
    for start in range(0, len(copies), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        apart = copies[rows].astype(np.float64) - originals[rows]
        total += apart.T @ apart
    if not np.isfinite(total).all():
        raise FitError("keeper: copies or originals have NaN or Inf; drop those rows")
    covariance: Matrix = total / (2 * len(copies))
    return covariance


def task_covariance(vectors: NDArray[np.floating], classes: NDArray[np.generic]) -> Matrix:
    """(d, d) within-class covariance of labelled vectors (n, d): what must not matter to tell classes."""
    seen = MomentStream(vectors.shape[1], scatter=True)
    seen.add(vectors, classes)
    moments = seen.moments()
    if len(vectors) == len(moments.counts):
        raise FitError("keeper: every class of the task has one vector; at least one needs two, to see how they differ")
    covariance = moments.within_covariance()
    if not np.isfinite(covariance).all():
        raise FitError("keeper: the task's vectors have NaN or Inf; drop those rows")
    return covariance


def _is_covariance(matrix: Matrix) -> bool:
    """Symmetric, with no negative eigenvalue but for rounding."""
    scale = max(float(np.abs(matrix).max()), np.finfo(np.float64).tiny)
    return bool(np.abs(matrix - matrix.T).max() <= 1e-9 * scale and np.linalg.eigvalsh(matrix)[0] >= -1e-9 * scale)
