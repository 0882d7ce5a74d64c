"""Erasers that remove the directions in which class means differ: ISP, SAL, LEACE and fair PCA, in closed form."""

from typing import ClassVar

import numpy as np

from unface.erase.eraser import ClosedFormEraser, FitError, Removal, chosen_rank, require_rank
from unface.erase.spectrum import Weighting, mean_spectrum, whitening
from unface.moments import MomentStream


class ISP(ClosedFormEraser):
    """Identity sanitization projection (the ISP paper §3.4): removes the directions in which class means differ most.

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


class SAL(ClosedFormEraser):
    """Spectral attribute removal (Shao, Ziser and Cohen 2023), with identities as the attribute.

    Projects out the first left singular vectors of Σ_xz; the same as ISP where all classes are of one size.
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


class LEACE(ClosedFormEraser):
    """LEACE (Belrose et al. 2023): the smallest change after which no linear classifier does better than a constant.

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


class FairPCA(ClosedFormEraser):
    """Fair PCA (Kleindessner et al. 2023): keeps the principal components that class means do not differ in.

    Removes ``rank`` dimensions: the differences between class means, then the least variance that is left.
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
