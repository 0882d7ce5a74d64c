"""Iterative null-space projection (Ravfogel et al. 2020) with a ridge classifier, which needs moments only."""

from typing import ClassVar

import numpy as np

from unface.erase.eraser import ClosedFormEraser, FitError, Matrix, Removal, require_rank
from unface.erase.spectrum import NEGLIGIBLE
from unface.moments import ClassMoments, MomentStream


class INLP(ClosedFormEraser):
    """Removes what a ridge classifier of identities uses, round after round.

    Fit W = (S + αI)⁻¹ XᵀY, drop its ``per_round`` leading directions, repeat on what is left up to ``rank``.
    S is the centred scatter and α = ``ridge`` times its mean eigenvalue. The spectrum holds the singular values of W,
    round after round, so it need not fall.
    """

    kind: ClassVar[str] = "inlp"

    def __init__(self, rank: int = 192, *, per_round: int = 16, ridge: float = 1e-3, normalise: bool = True) -> None:
        self.rank = rank
        self.per_round = per_round
        self.ridge = ridge
        self.normalise = normalise

    def _remove(self, seen: MomentStream) -> Removal:
        require_rank(self.kind, self.rank, seen.dim)
        if self.per_round < 1 or not self.ridge > 0:
            wrong = f"per_round {self.per_round} and ridge {self.ridge:g}"
            raise FitError(f"{self.kind}: {wrong}; expected at least 1, and more than 0")
        moments = seen.moments()
        scatter = moments.total_covariance() * float(moments.counts.sum() - 1)
        cross = _cross_gram(moments)
        if not np.trace(scatter) > 0:
            raise FitError(f"{self.kind}: all vectors are the same; there is nothing to erase")
        alpha = self.ridge * float(np.trace(scatter)) / seen.dim
        kept, removed, values = np.eye(seen.dim), np.zeros((seen.dim, 0)), np.zeros(0)
        total = float(np.trace(cross))
        while removed.shape[1] < self.rank:
            inside = kept.T @ cross @ kept
            if not np.trace(inside) > NEGLIGIBLE * total:
                differing = removed.shape[1]
                raise FitError(f"{self.kind}: rank {self.rank}, but class means differ in {differing} directions only")
            energy, turn = _classifier(kept.T @ scatter @ kept, inside, alpha)
            telling = int(np.count_nonzero(energy > NEGLIGIBLE * energy[0]))
            step = min(self.per_round, self.rank - removed.shape[1], seen.identities - 1, telling)
            removed = np.hstack([removed, kept @ turn[:, :step]])
            values = np.append(values, np.sqrt(energy[:step]))
            kept = kept @ turn[:, step:]
        return Removal(np.linalg.qr(removed)[0], values)


def _classifier(scatter: Matrix, cross: Matrix, alpha: float) -> tuple[Matrix, Matrix]:
    """Squared singular values and left singular vectors of the ridge classifier, in falling order, from XᵀY YᵀX."""
    inverse = np.linalg.inv(scatter + alpha * np.eye(len(scatter)))
    energy, turn = np.linalg.eigh(inverse @ cross @ inverse)
    return energy[::-1], turn[:, ::-1]


def _cross_gram(moments: ClassMoments) -> Matrix:
    """XᵀY YᵀX of centred X: Σ n_i² (μ_i − μ)(μ_i − μ)ᵀ."""
    mean = moments.mean()
    gram = np.zeros_like(moments.scatter)
    for block in moments.blocks():
        rows = block.sums - block.counts[:, None] * mean
        gram += rows.T @ rows
    return gram
