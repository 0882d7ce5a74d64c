"""The pictures that erasers of this process were fitted on: what is measured on the same pictures says so.

Only 64-bit hashes of vectors are kept, in memory alone; a saved projection holds none of them.
"""

from collections import OrderedDict
from threading import Lock

import numpy as np
from numpy.typing import NDArray

# Of one projection: a few are enough to notice.
_MOST_ROWS = 1 << 16
_MOST_PROJECTIONS = 32
_ROWS_AT_ONCE = 4096

Hashes = NDArray[np.uint64]


def hashes(vectors: NDArray[np.floating]) -> Hashes:
    """(n,) numbers that tell the float32 rows of (n, d) vectors apart."""
    # No named stream: nothing that is measured depends on it.
    factors = np.random.default_rng(vectors.shape[1]).integers(1 << 63, size=vectors.shape[1], dtype=np.uint64)
    made = np.empty(len(vectors), np.uint64)
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE], np.float32) + np.float32(0)  # no -0.0
        made[start : start + _ROWS_AT_ONCE] = np.einsum("ij,j->i", rows.view(np.uint32), 2 * factors + 1)
    return made


def hashes_to_remember(vectors: NDArray[np.floating]) -> Hashes:
    """Those of some of the rows, as they are and at length one."""
    some = np.asarray(vectors[:: -(-len(vectors) // _MOST_ROWS) or 1], np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", some, some, dtype=np.float64))
    usable = (lengths > 0) & np.isfinite(lengths)
    some, lengths = some[usable], lengths[usable]
    unit = np.divide(some, lengths[:, None], dtype=np.float64)
    return fewest(hashes(some), hashes(unit))


def fewest(known: Hashes, more: Hashes) -> Hashes:
    """Both, or the smallest of them: a sample of the rows that stays as large however long a stream is."""
    return np.union1d(known, more)[:_MOST_ROWS]


class Remembered:
    """Hashes by what a projection removes, the latest projections alone."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Hashes] = OrderedDict()
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, mark: str, rows: Hashes) -> None:
        """Remember further rows of a projection."""
        with self._lock:
            known = self._known.pop(mark, np.empty(0, np.uint64))
            self._known[mark] = fewest(known, rows)
            while len(self._known) > _MOST_PROJECTIONS:
                self._known.popitem(last=False)

    def among(self, vectors: NDArray[np.floating], mark: str | None = None) -> NDArray[np.bool_]:
        """(n,): which rows are remembered, of one projection or of any."""
        with self._lock:
            known = [rows for name, rows in self._known.items() if mark in (None, name)]
        if not known:
            return np.zeros(len(vectors), bool)
        found: NDArray[np.bool_] = np.isin(hashes(vectors), np.concatenate(known))
        return found


FITTED = Remembered()
"""Rows that a projection was fitted on."""
ERASED = Remembered()
"""What these rows became when the projection was applied to them."""
