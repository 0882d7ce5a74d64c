"""LEACE (Belrose et al. 2023): the smallest change after which no linear classifier does better than a constant."""

from typing import ClassVar

import numpy as np

from unface.erase.eraser import ClosedFormEraser, Removal
from unface.erase.rank import FitError, chosen_rank
from unface.erase.spectrum import Weighting, mean_spectrum
from unface.erase.whitening import whitening
from unface.moments import MomentStream


class LEACE(ClosedFormEraser):
    """Removes what linearly predicts the identity, with the smallest change to the fitted vectors.

    x ↦ x − W⁺ U Uᵀ W (x − μ), W = Σ_x^{+1/2}, U the left singular vectors of W Σ_xz.
    Without a ``rank`` all of them, which is everything once there are more identities than dimensions; with one the
    first of them; or as many as hold the share ``energy`` of Σσ². What counts as zero is relative to the largest
    singular value: these shrink as 1/√m, and an absolute cut-off erases nothing at many identities.
    """

    kind: ClassVar[str] = "leace"

    def __init__(self, rank: int | None = None, *, energy: float | None = None, normalise: bool = True) -> None:
        self.rank = rank
        self.energy = energy
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        moments = seen.moments()
        samples = float(moments.counts.sum())
        scale = whitening(moments.total_covariance())
        if scale is None:
            raise FitError(f"{self.kind}: all vectors are the same; there is nothing to erase")
        spectrum = mean_spectrum(moments, Weighting.CROSS_COVARIANCE, scale.whiten)
        rank = chosen_rank(self.kind, spectrum.values, seen.dim, seen.identities, self.rank, self.energy)
        directions, readers = scale.oblique(spectrum.leading(rank))
        return Removal(directions, np.asarray(spectrum.values / samples), readers, moments.mean())
