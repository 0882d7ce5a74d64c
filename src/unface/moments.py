"""Class sums and scatter: all that the closed-form probes and erasers ever need of the samples."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.threads import parallel_map

_ROWS_AT_ONCE = 4096
_BLOCKS_AT_ONCE = 16
_FEW_BLOCKS = 4
_GROWTH = 1.25


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Counts (m,) and sums (m, d) in float64: enough for whatever rests on class means alone."""

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Class means, (m, d)."""
        means: NDArray[np.float64] = self.sums / self.counts[:, None]
        return means

    def mean(self) -> NDArray[np.float64]:
        """The mean of all samples, (d,)."""
        mean: NDArray[np.float64] = self.sums.sum(axis=0) / float(self.counts.sum())
        return mean

    def blocks(self) -> Iterator["ClassSums"]:
        """The same classes some thousands at a time, so that a million means are never held next to their sums."""
        for start in range(0, len(self.counts), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            yield ClassSums(self.counts[rows], self.sums[rows])


@dataclass(frozen=True, eq=False)
class ClassMoments(ClassSums):
    """Counts (m,), sums (m, d) and the uncentred scatter Σ x xᵀ (d, d), in float64."""

    scatter: NDArray[np.float64]

    def within_covariance(self) -> NDArray[np.float64]:
        """Pooled covariance around the class means; unbiased."""
        between = np.zeros_like(self.scatter)
        for block in self.blocks():
            between += block.means.T @ block.sums
        return _symmetric(self.scatter - between) / float(self.counts.sum() - len(self.counts))

    def total_covariance(self) -> NDArray[np.float64]:
        """Covariance around the mean of all samples; unbiased."""
        n = float(self.counts.sum())
        mean = self.mean()
        return _symmetric(self.scatter - n * np.outer(mean, mean)) / (n - 1)


def class_moments(vectors: NDArray[np.floating], identities: NDArray[np.integer]) -> ClassMoments:
    """Moments of the (n, d) vectors; identities are codes 0 … m − 1, each of them present."""
    exact = np.asarray(vectors, np.float64)
    counts = np.bincount(identities)
    return ClassMoments(counts, _class_sums(exact, identities, len(counts)), exact.T @ exact)


class MomentStream:
    """Moments of samples that come in batches of any size and order; holds one sum for each identity, no sample.

    Without ``scatter`` nothing of size d × d is touched. Identities are numbered as they first appear. The same
    batches give the same bytes, whatever the number of threads.
    """

    def __init__(self, dim: int, *, scatter: bool) -> None:
        self.dim = dim
        self._codes: dict[Hashable, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._sums = np.zeros((0, dim))
        self._scatter = np.zeros((dim, dim)) if scatter else None

    @property
    def identities(self) -> int:
        """How many were seen so far."""
        return len(self._codes)

    def add(self, vectors: NDArray[np.floating], identities: NDArray[np.generic]) -> None:
        """A batch of (n, d) vectors and the n identities they belong to: numbers or text, in an array."""
        codes = self._coded(identities)
        self._make_room()
        self._counts[: self.identities] += np.bincount(codes, minlength=self.identities)
        starts = range(0, len(vectors), _ROWS_AT_ONCE)
        work = partial(_block_moments, vectors, codes, scatter=self._scatter is not None)
        # A few blocks without their scatter are read before threads have started.
        threads = 1 if self._scatter is None and len(starts) <= _FEW_BLOCKS else None
        # So many blocks at a time: each brings a d × d scatter of its own until they are added up, in order.
        for wave in range(0, len(starts), _BLOCKS_AT_ONCE):
            for present, sums, scatter in parallel_map(work, starts[wave : wave + _BLOCKS_AT_ONCE], threads):
                self._sums[present] += sums
                if self._scatter is not None and scatter is not None:
                    self._scatter += scatter

    def sums(self) -> ClassSums:
        """Counts and sums so far; views of what the next batch adds to."""
        return ClassSums(self._counts[: self.identities], self._sums[: self.identities])

    def moments(self) -> ClassMoments:
        """Counts, sums and scatter so far; only of a stream that keeps the scatter."""
        if self._scatter is None:
            raise UnfaceError("moments: these batches were summed without their scatter; fit again from the first one")
        return ClassMoments(self._counts[: self.identities], self._sums[: self.identities], self._scatter)

    def _coded(self, identities: NDArray[np.generic]) -> NDArray[np.int64]:
        known = self._codes
        if identities.dtype.kind not in "iu":
            names = identities.tolist()
            return np.fromiter((known.setdefault(name, len(known)) for name in names), np.int64, len(names))
        # Numbers are sorted faster than they are looked up one by one.
        values, first, rows = np.unique(identities, return_index=True, return_inverse=True)
        for value in values[np.argsort(first)].tolist():
            known.setdefault(value, len(known))
        return np.array([known[value] for value in values.tolist()], np.int64)[rows]

    def _make_room(self) -> None:
        if self.identities > len(self._sums):
            rows = max(self.identities, int(_GROWTH * len(self._sums)))
            self._counts = np.append(self._counts, np.zeros(rows - len(self._counts), np.int64))
            try:
                # In place: the system moves pages instead of copying, and old and new are never held together.
                self._sums.resize((rows, self.dim))
            except ValueError:  # somebody still looks at the old ones
                self._sums = np.vstack([self._sums, np.zeros((rows - len(self._sums), self.dim))])


def _block_moments(
    vectors: NDArray[np.floating], codes: NDArray[np.int64], start: int, *, scatter: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None]:
    exact = np.asarray(vectors[start : start + _ROWS_AT_ONCE], np.float64)
    present, rows = np.unique(codes[start : start + _ROWS_AT_ONCE], return_inverse=True)
    return present, _class_sums(exact, rows, len(present)), exact.T @ exact if scatter else None


def _class_sums(exact: NDArray[np.float64], codes: NDArray[np.integer], classes: int) -> NDArray[np.float64]:
    """Sums (classes, d) of the rows of each code."""
    from scipy.sparse import csc_array

    # One entry in each column, so the parts of the matrix are known without sorting.
    members = csc_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=(classes, len(codes)))
    sums: NDArray[np.float64] = members @ exact
    return sums


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
