"""Linear discriminants: whiten by the shrunk within-class covariance, keep where identities differ most."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace
from unface.probe.cosine import cosine_of_seen
from unface.probe.fisher import SHRINKAGES, Fisher
from unface.probe.ports import Setting, Support


@dataclass(frozen=True)
class Lda:
    """Scores are cosines along the kept directions; ``keep`` is the share of them."""

    name: str = "lda"
    settings: tuple[Setting, ...] = tuple(
        {"shrinkage": shrinkage, "keep": keep} for shrinkage, keep in product(SHRINKAGES, (1.0, 0.5))
    )

    def fit(self, support: Support) -> "LdaScorer":
        return LdaScorer(support.fisher)


@dataclass(frozen=True, eq=False)
class LdaScorer:
    fisher: Fisher

    @property
    def notes(self) -> tuple[str, ...]:
        return self.fisher.notes

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        return cosine_of_seen(self.embed(setting, vectors))

    def embed(self, setting: Setting, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        basis = self.fisher.basis(setting["shrinkage"])
        kept = max(1, round(setting["keep"] * len(basis.spread)))
        return basis.apply(vectors)[:, :kept]
