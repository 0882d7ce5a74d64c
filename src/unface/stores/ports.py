"""What a store must do so that erased vectors can replace raw ones."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.data.collection import Collection
from unface.data.embeddings import Columns
from unface.progress import Progress
from unface.scale.receipt import Check

Erase = Callable[[NDArray[np.generic]], NDArray[np.float32]]
"""Raw vectors (n, d) of any width, n may be 0, to erased ones, row by row; refuses NaN and Inf."""

IsErased = Callable[[NDArray[np.generic]], NDArray[np.bool_]]
"""Which of the stored vectors (n, d) are erased already, row by row."""


def released_dim(erase: Erase, dim: int) -> int:
    """Of the vectors that come out where vectors of ``dim`` dimensions go in."""
    return int(erase(np.empty((0, dim), np.float32)).shape[1])


@dataclass(frozen=True)
class Holding:
    """What a store holds now."""

    where: str
    """The store as messages name it, without a password."""
    rows: int
    dim: int
    sanitised_with: str | None = None
    """Hash of the projection that erased its vectors, as recorded in the store; None for raw ones."""
    swapped: bool = False
    """Whether its vectors are the erased ones although a killed run has not finished, so that it counts as raw."""
    raw_kept: bool = False
    """Whether raw vectors are still kept beside the sanitised ones, for ``purge`` to remove."""
    resizable: bool = False
    """Whether its vectors may have another dimension after ``swap``: ``stage`` asks ``released_dim`` which."""


class Store(Protocol):
    """One collection. Every step may be killed at any point and called again: nothing is lost, nothing duplicated.

    ``inspect`` changes nothing and refuses what cannot be sanitised. ``stage`` puts erased vectors beside the raw
    ones, which stay searchable; it continues an interrupted run with the same ``mark``, and begins again after one with
    another mark. ``staged`` reads them back. ``swap`` replaces the raw ones in one step and records the mark.
    ``purge`` removes the raw vectors from the store's own files.
    """

    def inspect(self) -> Holding: ...

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None: ...

    def staged(self) -> Iterator[NDArray[np.floating]]:
        """Batches of the staged vectors, in the type they are stored in; after ``swap``, of the vectors there now.

        No batches after ``swap`` if only codes are left, which cannot be checked and have not changed.
        """
        ...

    def unmatched(self) -> int:
        """How many ids (or rows, if there are no ids) have only a raw or only a staged vector."""
        ...

    def swap(self, mark: str) -> None: ...

    def purge(self) -> list[str]:
        """What it could not reach (archives, replicas, …), one sentence each, for the receipt."""
        ...


@runtime_checkable
class Readable(Protocol):
    """A store that ``unface audit`` and ``unface fit`` can read: nothing is written, and no writer has to wait."""

    def reading(self, columns: Columns) -> AbstractContextManager[Collection]:
        """Its rows with the columns of this name; which column holds the vectors is the store's own to say."""
        ...


@runtime_checkable
class Foreseeable(Protocol):
    """A store that can say what a run would do to it, for ``unface apply --dry-run``."""

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        """The steps of a run on a store that is not sanitised yet, one sentence each; changes nothing."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A store with an index that may miss neighbours, such as HNSW or IVF."""

    def recall(self) -> float | None:
        """Of the ten nearest of some stored vectors, the share that its index finds; None where it misses none."""
        ...


@runtime_checkable
class Exclusive(Protocol):
    """A store that can keep other runs out for a whole run, and not only during each step."""

    def exclusive(self) -> AbstractContextManager[None]: ...


@runtime_checkable
class Watched(Protocol):
    """A store to which others can write raw vectors between the swap and the end of the run."""

    def erase_arrivals(self, erase: Erase, is_erased: IsErased) -> int:
        """Look once at every row written since the swap, and erase the raw ones; how many there were."""
        ...


@runtime_checkable
class Rejecting(Protocol):
    """A store that can refuse raw vectors itself."""

    def reject_raw(self, check: Check) -> None:
        """From now on, refuse raw vectors from anybody, if the user asked for that; otherwise do nothing."""
        ...
