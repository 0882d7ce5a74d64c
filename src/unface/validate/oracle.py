"""Oracles: what an attack asks. ``Asking`` goes through the ledger to the target, ``Replayed`` knows all answers."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unface.validate.ports import Picture


class Replayed:
    """Answers that are there already: for controls and for hardening, which ask the target nothing."""

    def __init__(
        self, pictures: Sequence[Picture], scores: NDArray[np.float64], *, decisions_only: bool = False
    ) -> None:
        self._scores: Mapping[str, float] = {
            picture.sha256: float(score) for picture, score in zip(pictures, scores, strict=True)
        }
        self._asked: set[str] = set()
        self.decisions_only = decisions_only

    @property
    def left(self) -> int:
        """Pictures that were not asked about yet."""
        return len(self._scores) - len(self._asked)

    def ask(self, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) scores; NaN for a picture that there is no answer for."""
        self._asked.update(picture.sha256 for picture in pictures if picture.sha256 in self._scores)
        return np.array([self._scores.get(picture.sha256, np.nan) for picture in pictures], dtype=np.float64)
