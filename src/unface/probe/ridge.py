"""Ridge regression onto the attacker's identities (the ISP paper, §3.1 and A.5), for all α from one decomposition."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace
from unface.probe.cosine import cosine_of_seen
from unface.probe.ports import Setting, Support


@dataclass(frozen=True)
class Ridge:
    """Scores are cosines of z W with W = (ZᵀZ + αI)⁻¹ ZᵀY, Y one-hot; Y is never built, ZᵀY being the class sums."""

    name: str = "ridge"
    settings: tuple[Setting, ...] = tuple({"alpha": alpha} for alpha in (1e-3, 1e-2, 1e-1, 1.0, 10.0))

    def fit(self, support: Support) -> "RidgeScorer":
        moments = support.moments
        energy, basis = np.linalg.eigh(moments.scatter)
        targets = basis.T @ moments.sums.T
        if targets.shape[1] > targets.shape[0]:
            # More identities than dimensions: only inner products of z W matter, and a square factor keeps them.
            values, vectors = np.linalg.eigh(targets @ targets.T)
            targets = vectors * np.sqrt(np.maximum(values, 0))
        return RidgeScorer(np.maximum(energy, 0), basis, targets)


@dataclass(frozen=True, eq=False)
class RidgeScorer:
    energy: NDArray[np.float64]
    basis: NDArray[np.float64]
    targets: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        weights = self.basis @ (self.targets / (self.energy + setting["alpha"])[:, None])
        return cosine_of_seen(vectors @ weights.astype(np.float32))
