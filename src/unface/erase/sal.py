"""Spectral attribute removal (Shao, Ziser and Cohen 2023), with identities as the attribute."""

from typing import ClassVar

from unface.erase.eraser import ClosedFormEraser, Removal
from unface.erase.rank import chosen_rank
from unface.erase.spectrum import Weighting, mean_spectrum
from unface.moments import MomentStream


class SAL(ClosedFormEraser):
    """Projects out the first left singular vectors of Σ_xz; the same as ISP where all classes are of one size.

    ``rank`` directions, or as many as hold the share ``energy`` of Σσ² where that is given, or all with neither.
    """

    kind: ClassVar[str] = "sal"

    def __init__(self, rank: int | None = 192, *, energy: float | None = None, normalise: bool = True) -> None:
        self.rank = rank
        self.energy = energy
        self.normalise = normalise

    def needs_scatter(self) -> bool:
        return False

    def _remove(self, seen: MomentStream) -> Removal:
        sums = seen.sums()
        spectrum = mean_spectrum(sums, Weighting.CROSS_COVARIANCE)
        rank = chosen_rank(self.kind, spectrum.values, seen.dim, seen.identities, self.rank, self.energy)
        return Removal(spectrum.leading(rank), spectrum.values / float(sums.counts.sum()))
