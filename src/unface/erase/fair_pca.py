"""Fair PCA (Kleindessner et al. 2023): the principal components that class means do not differ in."""

from typing import ClassVar

import numpy as np

from unface.erase.eraser import ClosedFormEraser, Removal
from unface.erase.rank import FitError, require_rank
from unface.erase.spectrum import Weighting, mean_spectrum
from unface.moments import MomentStream


class FairPCA(ClosedFormEraser):
    """Removes ``rank`` dimensions: the differences between class means, then the least variance that is left.

    Of these, ``unfair`` are leading directions of the class-mean differences (of Σ_xz). By default that is all of
    them, so ``rank`` must be at least identities − 1; with more identities give both, since at ``unfair = rank``
    nothing is left to choose and fair PCA is SAL. The spectrum is that of Σ_xz.
    """

    kind: ClassVar[str] = "fair_pca"

    def __init__(self, rank: int = 192, *, unfair: int | None = None, normalise: bool = True) -> None:
        self.rank = rank
        self.unfair = unfair
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        require_rank(self.kind, self.rank, seen.dim)
        moments = seen.moments()
        spectrum = mean_spectrum(moments, Weighting.CROSS_COVARIANCE)
        differences = len(spectrum.values)
        unfair = differences if self.unfair is None else self.unfair
        if not 0 <= unfair <= min(self.rank, differences):
            raise FitError(
                f"{self.kind}: {unfair} directions of class-mean differences with rank {self.rank};"
                f" expected at most {min(self.rank, differences)}, set unfair= or raise the rank"
            )
        basis = spectrum.leading(unfair)
        fair = np.linalg.qr(basis, mode="complete")[0][:, unfair:]
        turn = np.linalg.eigh(fair.T @ moments.total_covariance() @ fair)[1]
        least = fair @ turn[:, : self.rank - unfair]
        return Removal(np.hstack([basis, least]), spectrum.values / float(moments.counts.sum()))
