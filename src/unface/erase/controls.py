"""What every eraser must beat: as many dimensions removed at random, or the largest ones without looking at labels."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from unface.erase.eraser import ClosedFormEraser, Eraser, FitError, Removal, require_rank
from unface.erase.spectrum import row_spectrum, symmetric_spectrum
from unface.moments import MomentStream
from unface.seeds import stream
from unface.threads import one_blas_thread

# Dimensions above which only the columns that are asked for are made orthonormal.
_MANY = 2048


class RandomSubspace(Eraser):
    """Projects out a uniformly random subspace; learns nothing but the number of dimensions."""

    kind: ClassVar[str] = "random"
    uses_identities: ClassVar[bool] = False

    def __init__(self, rank: int = 192, seed: int = 0, *, normalise: bool = True) -> None:
        self.rank = rank
        self.seed = seed
        self.normalise = normalise

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        """Neither the values of X nor whose they are matter."""
        dim = self._checked(X, reset=True).shape[1]
        require_rank(self.kind, self.rank, dim)
        # Drawn for all dimensions, so that subspaces of one seed are nested.
        draw = stream(self.seed, "random subspace", dim).standard_normal((dim, dim))
        # Later columns change nothing of earlier directions but rounding, and cost d³.
        columns = draw if dim <= _MANY else np.ascontiguousarray(draw[:, : self.rank])
        del draw
        with one_blas_thread():
            basis = np.linalg.qr(columns)[0]
        return self._keep(Removal(basis[:, : self.rank], np.ones(self.rank)))


class LabelFreePCA(ClosedFormEraser):
    """Projects out the leading principal components of the same vectors; ignores whose they are."""

    kind: ClassVar[str] = "pca"
    uses_identities: ClassVar[bool] = False

    def __init__(self, rank: int = 192, *, normalise: bool = True) -> None:
        self.rank = rank
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        require_rank(self.kind, self.rank, seen.dim)
        rows = seen.few_rows()
        spectrum = symmetric_spectrum(seen.moments().total_covariance()) if rows is None else row_spectrum(rows)
        if self.rank > len(spectrum.values):
            varying = len(spectrum.values)
            raise FitError(
                f"{self.kind}: rank {self.rank}, but the vectors vary in {varying} directions only; lower it"
            )
        return Removal(spectrum.leading(self.rank), spectrum.values)
