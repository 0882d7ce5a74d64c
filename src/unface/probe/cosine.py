"""The attacker who learns nothing: cosine in the space as it is, which is what an index gives to anyone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace, cosine_space
from unface.probe.ports import Setting, Support


@dataclass(frozen=True)
class Cosine:
    """Probe and scorer in one, since there is nothing to fit."""

    name: str = "cosine"
    settings: tuple[Setting, ...] = ({},)
    notes: tuple[str, ...] = ()

    def fit(self, support: Support) -> "Cosine":
        return self

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        return cosine_space(vectors)
