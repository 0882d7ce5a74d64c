"""Two-covariance PLDA: the log-likelihood ratio of "one person" against "two"; optimal for Gaussian identities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace, quadratic_space
from unface.probe.fisher import SHRINKAGES, Fisher
from unface.probe.ports import Setting, Support


@dataclass(frozen=True)
class Plda:
    """Moment fit, no EM: Σ_w pooled and shrunk, Σ_b the covariance of the class means less what Σ_w adds to it."""

    name: str = "plda"
    settings: tuple[Setting, ...] = tuple({"shrinkage": shrinkage} for shrinkage in SHRINKAGES)

    def fit(self, support: Support) -> "PldaScorer":
        return PldaScorer(support.fisher)


@dataclass(frozen=True, eq=False)
class PldaScorer:
    fisher: Fisher

    @property
    def notes(self) -> tuple[str, ...]:
        return self.fisher.notes

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        basis = self.fisher.basis(setting["shrinkage"])
        between = np.maximum(basis.spread - self.fisher.noise, 0)
        return llr_space(basis.apply(vectors), between)


def llr_space(whitened: NDArray[np.float32], between: NDArray[np.float64]) -> PairSpace:
    """Log-likelihood ratios where Σ_w = I and Σ_b = diag(ψ), up to a constant.

    In each direction, from N(0, [[1+ψ, ψ], [ψ, 1+ψ]]) against N(0, (1+ψ) I):
    ψ/(1+2ψ) · a b − ½ ψ²/((1+ψ)(1+2ψ)) · (a² + b²).
    """
    cross = between / (1 + 2 * between)
    own = -0.5 * between**2 / ((1 + between) * (1 + 2 * between))
    scaled = (whitened * np.sqrt(cross)).astype(np.float32)
    return quadratic_space(scaled, scaled, (whitened.astype(np.float64) ** 2) @ own)
