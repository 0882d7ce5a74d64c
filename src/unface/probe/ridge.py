"""Ridge regression onto the attacker's identities (the ISP paper, §3.1 and A.5), for all α from one decomposition."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.linear import RidgeFit, spectrum
from unface.pairs import PairSpace
from unface.probe.cosine import cosine_of_seen
from unface.probe.ports import Setting, Support


@dataclass(frozen=True)
class Ridge:
    """Scores are cosines of z W with W = (ZᵀZ + αI)⁻¹ ZᵀY, Y one-hot; Y is never built, ZᵀY being the class sums."""

    name: str = "ridge"
    settings: tuple[Setting, ...] = tuple({"alpha": alpha} for alpha in (1e-3, 1e-2, 1e-1, 1.0, 10.0))

    def fit(self, support: Support) -> "RidgeScorer":
        fit = RidgeFit.of(support.moments.scatter, support.moments.sums.T)
        if fit.targets.shape[1] > fit.targets.shape[0]:
            # More identities than dimensions: only inner products of z W matter, and a square factor keeps them.
            values, vectors = spectrum(fit.targets @ fit.targets.T)
            fit = replace(fit, targets=vectors * np.sqrt(values))
        if support.span.shape[0] > support.span.shape[1]:
            fit = replace(fit, basis=support.span @ fit.basis)
        return RidgeScorer(fit)


@dataclass(frozen=True, eq=False)
class RidgeScorer:
    fit: RidgeFit
    notes: tuple[str, ...] = ()

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        return cosine_of_seen(self.embed(setting, vectors))

    def embed(self, setting: Setting, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        weights = self.fit.basis @ self.fit.weights(setting["alpha"])
        return vectors @ weights.astype(np.float32)
