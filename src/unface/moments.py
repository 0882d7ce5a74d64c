"""Class sums and scatter: all that the closed-form probes and erasers ever need of the samples."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.threads import parallel_map

_ROWS_AT_ONCE = 2048
_BLOCKS_AT_ONCE = 16
_FEW_BLOCKS = 8
_GROWTH = 1.25
# Dimensions above which a scatter takes half a second and 32 MB or more.
_MANY = 2048


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

    @property
    def energy(self) -> float:
        """The mean square of the samples' entries."""
        return float(np.trace(self.scatter) / (self.counts.sum() * len(self.scatter)))

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
    Of many dimensions the scatter is larger than few samples are: these are held until it is asked for, or they are
    no longer few.
    """

    def __init__(self, dim: int, *, scatter: bool) -> None:
        self.dim = dim
        self._codes: dict[Hashable, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._sums = np.zeros((0, dim))
        self._scatter = np.zeros((dim, dim)) if scatter else None
        self._few: list[NDArray[np.number]] | None = [] if scatter and dim > _MANY else None

    @property
    def identities(self) -> int:
        """How many were seen so far."""
        return len(self._codes)

    @property
    def names(self) -> list[Hashable]:
        """What the identities seen so far are called."""
        return list(self._codes)

    def add(
        self,
        vectors: NDArray[np.number],
        identities: NDArray[np.generic],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        """A batch of (n, d) vectors and the n identities they belong to: numbers or text, in an array.

        Each vector is multiplied by its weight, so that none has to be copied to be scaled; one of weight 0 takes no
        part, whatever is in it.
        """
        if weights is None:
            codes = self._coded(identities)
        else:
            codes = np.full(len(identities), -1)
            codes[weights != 0] = self._coded(identities[weights != 0])
        self._make_room()
        self._counts[: self.identities] += np.bincount(codes[codes >= 0], minlength=self.identities)
        held = self._few is not None and weights is None and len(vectors) + sum(map(len, self._few)) < self.dim
        if held and self._few is not None:
            self._few.append(vectors.copy())
        else:
            self._add_few()
        scatter_now = self._scatter is not None and not held
        starts = range(0, len(vectors), _ROWS_AT_ONCE)
        work = partial(_block_moments, vectors, codes, weights, scatter=scatter_now)
        # A few blocks without their scatter are read before threads have started.
        threads = 1 if not scatter_now and len(starts) <= _FEW_BLOCKS else None
        # So many blocks at a time: each brings a d × d scatter of its own until they are added up, in order.
        for wave in range(0, len(starts), _BLOCKS_AT_ONCE):
            for present, sums, scatter in parallel_map(work, starts[wave : wave + _BLOCKS_AT_ONCE], threads):
                self._sums[present] += sums
                if self._scatter is not None and scatter is not None:
                    self._scatter += scatter

    def sums(self) -> ClassSums:
        """Counts and sums so far; views of what the next batch adds to."""
        return ClassSums(self._counts[: self.identities], self._sums[: self.identities])

    def few_rows(self) -> NDArray[np.float64] | None:
        """All samples (n, d), where they are many dimensions and fewer samples; None otherwise."""
        return np.concatenate(self._few).astype(np.float64) if self._few else None

    def moments(self) -> ClassMoments:
        """Counts, sums and scatter so far; only of a stream that keeps the scatter."""
        if self._scatter is None:
            raise UnfaceError("moments: these batches were summed without their scatter; fit again from the first one")
        self._add_few()
        return ClassMoments(self._counts[: self.identities], self._sums[: self.identities], self._scatter)

    def merged(self, other: "MomentStream") -> "MomentStream":
        """Both together, in a new one; identities go by what they are called."""
        both = MomentStream(self.dim, scatter=self._scatter is not None)
        both._codes = dict(self._codes)
        both._few = None  # their scatters are added
        rows = np.array([both._codes.setdefault(name, len(both._codes)) for name in other._codes], np.int64)
        both._make_room()
        for one, where in ((self, np.arange(self.identities)), (other, rows)):
            sums = one.sums()
            both._counts[where] += sums.counts
            both._sums[where] += sums.sums
        if both._scatter is not None:
            both._scatter += self.moments().scatter + other.moments().scatter
        return both

    def _add_few(self) -> None:
        """The scatter of what was held; from here on that of each batch is added as it comes."""
        few, self._few = self._few, None
        if self._scatter is not None:
            for rows in few or []:
                exact = rows.astype(np.float64)
                self._scatter += exact.T @ exact

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
    vectors: NDArray[np.number],
    codes: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    start: int,
    *,
    scatter: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None]:
    block = slice(start, start + _ROWS_AT_ONCE)
    if weights is None:
        exact = np.asarray(vectors[block], np.float64)
        present, rows = np.unique(codes[block], return_inverse=True)
        return present, _class_sums(exact, rows, len(present)), exact.T @ exact if scatter else None
    taken = codes[block] >= 0
    exact = vectors[block][taken].astype(np.float64)
    present, rows = np.unique(codes[block][taken], return_inverse=True)
    share = weights[block][taken]
    sums = _class_sums(exact, rows, len(present), share)
    if not scatter:
        return present, sums, None
    exact *= share[:, None]
    return present, sums, exact.T @ exact


def _class_sums(
    exact: NDArray[np.float64],
    codes: NDArray[np.integer],
    classes: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Sums (classes, d) of the rows of each code, each by its weight."""
    from scipy.sparse import csc_array

    entries = np.ones(len(codes)) if weights is None else weights
    # One entry in each column, so the parts of the matrix are known without sorting.
    members = csc_array((entries, codes, np.arange(len(codes) + 1)), shape=(classes, len(codes)))
    sums: NDArray[np.float64] = members @ exact
    return sums


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
