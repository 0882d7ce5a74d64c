"""Erased vectors read back from where they were put: is anything of what was removed left, are their lengths right?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.erase import Projection
from unface.errors import UnfaceError

# What rounding to the stored type leaves of a vector of length one, with room for the sum over dimensions.
_ROUNDING = {"float16": 4e-3, "float32": 4e-6, "float64": 4e-6}


@dataclass
class Check:
    """Adds up over batches; ``require`` then refuses what is not erased."""

    projection: Projection
    rows: int = 0
    degenerate: int = 0
    largest_left: float = 0.0
    """Largest |coordinate along a removed direction|, in units in which vectors have length one."""
    worst_length: float = 0.0
    """Largest |length − 1| of vectors that are not zero."""
    allowed: float = 0.0

    def add(self, vectors: NDArray[np.generic]) -> None:
        """A batch (n, d) as it is stored."""
        exact = vectors.astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
        there = lengths != 0  # of NaN too: it must not pass for a vector of nothing
        self.rows += len(exact)
        self.degenerate += int(np.count_nonzero(~there))
        self.allowed = max(self.allowed, _ROUNDING[vectors.dtype.name])
        if not there.any():
            return
        left = np.abs(self._left(exact[there])).max(axis=1) / lengths[there]
        # NaN must not pass for small.
        self.largest_left = float(np.max([self.largest_left, left.max()]))
        self.worst_length = float(np.max([self.worst_length, np.abs(lengths[there] - 1).max()]))

    def require(self, rows: int, where: str) -> None:
        """Refuse too few rows, too many, and vectors from which something was not removed."""
        if self.rows != rows:
            raise UnfaceError(f"{where}: {self.rows:,} erased vectors, {rows:,} expected; run it again")
        if not self.largest_left <= self.allowed:
            raise UnfaceError(
                f"{where}: {self.largest_left:.2g} is left along a removed direction, at most {self.allowed:.2g}"
                " would be rounding; these vectors are not erased"
            )
        if self.projection.normalise and not self.worst_length <= self.allowed:
            raise UnfaceError(
                f"{where}: lengths differ from one by {self.worst_length:.2g}, at most {self.allowed:.2g} would be"
                " rounding; was the store told to scale vectors?"
            )

    def _left(self, exact: NDArray[np.float64]) -> NDArray[np.float64]:
        projection = self.projection
        readers = projection.directions if projection.readers is None else projection.readers
        # Readers of an oblique projection are not of length one, and only their span matters.
        basis = readers if projection.readers is None else np.linalg.qr(readers)[0]
        read: NDArray[np.float64] = exact @ basis
        if projection.mean is None:
            return read
        told = basis.T @ projection.mean
        if not projection.normalise:
            return read - told
        # Every vector has the mean's own part there, scaled with the vector: how much of it says nothing of anyone, but
        # it never points the other way.
        length = float(np.linalg.norm(told))
        if length > 0:
            told = told / length
            read -= np.outer(np.maximum(read @ told, 0), told)
        return read
