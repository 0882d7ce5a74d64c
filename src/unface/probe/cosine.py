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
        return cosine_of_seen(vectors)

    def embed(self, setting: Setting, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return vectors


def cosine_of_seen(seen: NDArray[np.float32]) -> PairSpace:
    """Cosines of what a probe makes of the pictures; one of which it makes nothing, a row of zeros, resembles none."""
    nothing = np.logical_not(seen.any(axis=1))
    if not nothing.any():
        return cosine_space(seen)
    # Two more coordinates: nothing · nothing is 0 as well, and yet no row is without length.
    blind = nothing[:, None].astype(np.float32)
    space = cosine_space(np.hstack([seen, blind, np.zeros_like(blind)]))
    return PairSpace(space.left, np.ascontiguousarray(space.left[:, [*range(seen.shape[1]), -1, -2]]))
