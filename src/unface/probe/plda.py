"""Two-covariance PLDA: the log-likelihood ratio of "one person" against "two"; optimal for Gaussian identities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace, quadratic_space
from unface.probe.albums import Dealt, album_means
from unface.probe.fisher import SHRINKAGES, Fisher, FisherBasis
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
        return llr_space(basis.apply(vectors), self._between(basis))

    def seen(self, setting: Setting, vectors: NDArray[np.float32]) -> "WhitenedSeen":
        """For albums: the ratio of m pictures against m."""
        basis = self.fisher.basis(setting["shrinkage"])
        return WhitenedSeen(basis.apply(vectors), self._between(basis))

    def _between(self, basis: FisherBasis) -> NDArray[np.float64]:
        return np.maximum(basis.spread - self.fisher.noise, 0)


@dataclass(frozen=True, eq=False)
class WhitenedSeen:
    """Pictures where Σ_w = I and Σ_b = diag(ψ)."""

    whitened: NDArray[np.float32]
    between: NDArray[np.float64]

    def space(self, dealt: Dealt) -> PairSpace:
        """Log-likelihood ratios of albums: all that m pictures tell is their mean, whose noise is 1/m."""
        means, size = album_means(self.whitened, dealt), dealt.size
        if size.equal:
            return llr_space(means, self.between, 1 / size.first, 1 / size.first)
        noise = np.repeat([1 / size.first, 1 / size.second], len(dealt.identities))[:, None]
        return llr_space(means, self.between, noise, noise[::-1])


def llr_space(
    whitened: NDArray[np.float32],
    between: NDArray[np.float64],
    noise: float | NDArray[np.float64] = 1.0,
    other: float | NDArray[np.float64] = 1.0,
) -> PairSpace:
    """Log-likelihood ratios where Σ_b = diag(ψ) and Σ_w is ``noise`` on a row's own side, ``other`` on the other's.

    Up to a constant. With noises α and β, from N(0, [[ψ+α, ψ], [ψ, ψ+β]]) against N(0, diag(ψ+α, ψ+β)), in each
    direction: ψ/D · a b − ½ ψ²/D · (a²/(ψ+α) + b²/(ψ+β)) with D = ψ(α+β) + αβ.
    """
    determinant = between * (noise + other) + noise * other
    cross = between / determinant
    own = -0.5 * between**2 / (determinant * (between + noise))
    scaled = (whitened * np.sqrt(cross)).astype(np.float32)
    squares = whitened.astype(np.float64) ** 2
    return quadratic_space(scaled, scaled, squares @ own if own.ndim == 1 else (squares * own).sum(axis=1))
