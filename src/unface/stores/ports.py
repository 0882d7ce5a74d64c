"""What a store must do so that erased vectors can take the place of raw ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.progress import Progress

Erase = Callable[[NDArray[np.generic]], NDArray[np.float32]]
"""Raw vectors (n, d) of any width to erased ones, row by row; refuses NaN and Inf."""


@dataclass(frozen=True)
class Holding:
    """What a store holds now."""

    where: str
    """The store in words, without a password; begins every sentence about it."""
    rows: int
    dim: int
    sanitised_with: str | None = None
    """Hash of the projection that its vectors have gone through, as the store itself remembers; None for raw ones."""
    raw_kept: bool = False
    """Whether raw vectors still lie beside the sanitised ones, for ``purge`` to remove."""


class Store(Protocol):
    """One collection. Every step may be killed at any point and called again: nothing is lost, nothing doubled.

    ``inspect`` changes nothing and refuses what cannot be sanitised. ``stage`` puts erased vectors beside the raw
    ones, which stay searchable; it goes on where one with the same ``mark`` stopped, and begins anew after another
    mark. ``staged`` reads them back. ``swap`` puts them in the raw ones' place in one step and remembers the mark.
    ``purge`` removes the raw vectors from the store's own files.
    """

    def inspect(self) -> Holding: ...

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None: ...

    def staged(self) -> Iterator[NDArray[np.floating]]:
        """Batches of what lies staged, in the type it is stored in; after ``swap``, of what is there now.

        None after ``swap`` where only codes are left, which cannot be checked and have not changed.
        """
        ...

    def unmatched(self) -> int:
        """How many ids (or rows, where there are none) are in only one of the raw and the staged vectors."""
        ...

    def swap(self, mark: str) -> None: ...

    def purge(self) -> list[str]:
        """What it could not reach (archives, replicas, …), a sentence each, for the receipt."""
        ...
