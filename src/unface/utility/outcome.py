"""What one space achieves on a task, query by query: what utility is compared on before and after erasure."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.errors import UnfaceError


@dataclass(frozen=True, eq=False)
class Outcome:
    """One measure in one space; its value is the mean over queries.

    ``per_query`` (q,) says how well each query went, from 0 to 1. A measure that is no mean, such as µAP, gives
    pseudo-values: their mean is the measure, and each differs from it by what its query adds, to first order.
    Queries that share a number in ``groups`` (q,) are not independent.
    """

    measure: str
    on: str
    per_query: NDArray[np.float64]
    groups: NDArray[np.int64]

    @property
    def value(self) -> float:
        """The measure."""
        return float(self.per_query.mean())


class Task(Protocol):
    """Something vectors are good for. Built once; asked for its outcomes in every space."""

    @property
    def on(self) -> str:
        """The name of the data."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know of the data."""
        ...

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit vectors (n, d) of the raw space, in the task's own order of rows: by id, whatever order they came in."""
        ...

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """What these vectors achieve: the task's own, or what an eraser made of them; zeros are near to nothing."""
        ...


def by_id(embeddings: EmbeddingSet) -> EmbeddingSet:
    """Unit vectors in the order of their ids, so that no result depends on the order of rows and ties go to an id."""
    return embeddings.take(np.argsort(embeddings.ids, kind="stable")).unit()


def require_rows(task: Task, vectors: NDArray[np.float32]) -> None:
    """Refuse vectors that cannot be the task's own after erasure."""
    if vectors.shape != task.vectors.shape:
        raise UnfaceError(f"{task.on}: vectors of shape {vectors.shape}; expected {task.vectors.shape}, erased or not")
