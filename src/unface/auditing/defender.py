"""Whom erasers learn from, and the vectors that some of them are to spare."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.erase import Projection, fit_projection, make_eraser


@dataclass(frozen=True, eq=False)
class Defender:
    """Unit vectors of people to learn from; ``task``, if given, are unit vectors of what must stay useful."""

    people: EmbeddingSet
    task: NDArray[np.float32] | None = None

    @property
    def dim(self) -> int:
        """Dimensions of the space."""
        return self.people.space.dim

    @property
    def identities(self) -> int:
        """How many people."""
        return len(self.people.names)

    def project(self, method: str, rank: int) -> Projection:
        """Fit a method by its name."""
        return fit_projection(make_eraser(method, rank, self.task), self.people)

    def only(self, chosen: NDArray[np.bool_]) -> "Defender":
        """The same with some of the rows."""
        return replace(self, people=self.people.take(chosen))
