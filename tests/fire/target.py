"""A store under fire: how it is filled, written to by clients, sanitised by ``unface`` and looked into."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tests.fire.held_run import Announce, HeldRun, Step
from tests.fire.traffic import Pool, Session


@dataclass(frozen=True)
class Found:
    """A row as a client finds it."""

    version: int
    vector: NDArray[np.float32]


class Target(Protocol):
    """All but ``url`` and ``wrap`` use the store's own tools, and nothing of unface."""

    rows: int
    clients: int
    pause: float
    """Of a client between two changes, in seconds."""

    def wrap(self, announce: Announce, /) -> None:
        """The steps, in the process that will run."""
        ...

    def url(self) -> str: ...

    def fill(self, pool: Pool) -> None:
        """A new table of raw vectors, each of version 0."""
        ...

    def connect(self) -> Session: ...

    def read(self) -> dict[int, Found]:
        """Raises AssertionError if a row is there twice."""
        ...

    def kept(self) -> dict[int, NDArray[np.float32]] | None:
        """Raw vectors that are kept for a restore, by row; None where they are only kept as an older version."""
        ...

    def faults(self, purged: bool) -> list[str]:
        """What is left over that should not be, or gone that should be there, such as an index."""
        ...

    def files(self) -> Iterable[Path]: ...

    def lists(self, notes: str, path: Path) -> bool:
        """Whether the notes of a receipt say that this file may hold raw vectors."""
        ...

    def hit(self, run: HeldRun, step: Step, rng: np.random.Generator, pause: Callable[[], None]) -> None:
        """Kill at a step of the run; ``pause`` lets it go on for a part of that step first."""
        ...
