"""A probe that reads the answers, which only the control with shuffled identities can notice."""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace, cosine_space
from unface.probe import RoleRows, Setting, Support
from unface.seeds import stream


class Cheat:
    """Looks up its caller's identity codes, whatever they are, and scores by them: a leak in the harness itself."""

    settings: tuple[Setting, ...] = ({},)
    notes: tuple[str, ...] = ()

    def __init__(self, name: str = "cheat", honesty: float = 1.0) -> None:
        self.name, self.honesty = name, honesty

    def fit(self, support: Support) -> "Cheat":
        return self

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        codes = next(codes for codes in _answers() if len(codes) == len(vectors))
        rng = stream(0, "cheat", len(vectors))
        told = rng.normal(size=(int(codes.max()) + 1, 24))[codes]
        return cosine_space((told + self.honesty * rng.normal(size=told.shape)).astype(np.float32))


def _answers() -> Iterator[NDArray[np.int64]]:
    frame = sys._getframe(1)
    while frame.f_back:
        frame = frame.f_back
        yield from (known.identities for known in frame.f_locals.values() if isinstance(known, RoleRows))
