"""Scores of mated pairs, an identity at a time; there are few of them, so they are made exactly at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.memory import require_further_memory
from unface.pairs.pairing import Pairing

_ROWS_AT_ONCE = 2048
_PAIRS_AT_ONCE = 1 << 20
# Of a pair that is listed: its row in Mated, and once more while the parts are joined.
_BYTES_OF_A_PAIR = 56
_FEW = 100_000


@dataclass(frozen=True, eq=False)
class Mated:
    """Scores of pairs of one identity each: identity codes, scores and row numbers before sorting, (p, 2)."""

    identities: NDArray[np.int64]
    scores: NDArray[np.float32]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)


def mated_pairs(pairing: Pairing) -> Iterator[Mated]:
    """Every mated pair once, in chunks that stay small however many images an identity has."""
    codes, starts, sizes = np.unique(pairing.identities, return_index=True, return_counts=True)
    for size in np.unique(sizes[sizes > 1]):
        same = sizes == size
        at_once = max(1, min(_ROWS_AT_ONCE // int(size), _PAIRS_AT_ONCE // int(size) ** 2))
        groups, first = codes[same], starts[same]
        for part in range(0, len(groups), at_once):
            rows = first[part : part + at_once, None] + np.arange(size)
            yield from _within(pairing, groups[part : part + at_once], rows)


def all_mated(pairing: Pairing) -> Mated:
    """Every mated pair at once, by identity."""
    if (pairs := pairing.mated) > _FEW:
        require_further_memory(_BYTES_OF_A_PAIR * pairs, f"{pairs:,} mated pairs", "use fewer pictures of each person")
    parts = list(mated_pairs(pairing))
    if not parts:
        return Mated(np.empty(0, np.int64), np.empty(0, np.float32), np.empty((0, 2), np.int64))
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("identities", "scores", "rows"))
    return Mated(*joined)


def _within(pairing: Pairing, codes: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[Mated]:
    """Pairs inside groups of equal size; ``rows`` is (groups, size)."""
    size = rows.shape[1]
    right = pairing.space.right[rows].astype(np.float64)
    step = min(_ROWS_AT_ONCE, max(1, _PAIRS_AT_ONCE // size)) if len(rows) == 1 else size
    for start in range(0, size, step):
        band = rows[:, start : start + step]
        left = pairing.space.left[band].astype(np.float64)
        scores = np.matmul(left, right[:, start:].transpose(0, 2, 1))
        i, j = np.triu_indices(band.shape[1], 1, size - start)
        pairs = np.stack([pairing.rows[band[:, i]], pairing.rows[rows[:, start + j]]], axis=-1)
        yield Mated(np.repeat(codes, len(i)), pairing.space.settle(scores[:, i, j]).ravel(), pairs.reshape(-1, 2))
