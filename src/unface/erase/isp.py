"""Identity sanitization projection (the ISP paper §3.4): project out the leading directions of the class means."""

from typing import ClassVar

from unface.erase.eraser import ClosedFormEraser, Removal
from unface.erase.rank import FitError, chosen_rank
from unface.erase.spectrum import Weighting, mean_spectrum
from unface.erase.whitening import whitening
from unface.moments import MomentStream


class ISP(ClosedFormEraser):
    """Removes the directions in which the class means differ most.

    P = I − U Uᵀ, U the first left singular vectors of M = [μ_i − mean of the means].

    ``rank`` directions, or as many as hold the share ``energy`` of Σσ² where that is given, or all with neither.
    ``weighted`` lets a class count by its number of images. ``whitened`` measures means in units of the within-class
    spread: the SVD of Σ_w^{-1/2} M, applied as the oblique projection Σ_w^{1/2}(I − ŨŨᵀ)Σ_w^{-1/2}.
    Unless whitened, it needs sums and counts only.
    """

    kind: ClassVar[str] = "isp"

    def __init__(
        self,
        rank: int | None = 192,
        *,
        energy: float | None = None,
        weighted: bool = False,
        whitened: bool = False,
        normalise: bool = True,
    ) -> None:
        self.rank = rank
        self.energy = energy
        self.weighted = weighted
        self.whitened = whitened
        self.normalise = normalise

    def needs_scatter(self) -> bool:
        return self.whitened

    def _remove(self, seen: MomentStream) -> Removal:
        weighting = Weighting.SCATTER if self.weighted else Weighting.EQUAL
        sums = seen.sums()
        scale = None
        if self.whitened:
            if int(sums.counts.sum()) == len(sums.counts):
                raise FitError(f"{self.kind}: every identity has one image; whitened=True needs two of some")
            scale = whitening(seen.moments().within_covariance())
            if scale is None:
                raise FitError(f"{self.kind}: images of one identity are all the same; whitened=True needs spread")
        spectrum = mean_spectrum(sums, weighting, None if scale is None else scale.whiten)
        rank = chosen_rank(self.kind, spectrum.values, seen.dim, seen.identities, self.rank, self.energy)
        basis = spectrum.leading(rank)
        if scale is None:
            return Removal(basis, spectrum.values)
        directions, readers = scale.oblique(basis)
        return Removal(directions, spectrum.values, readers)
