"""Which pairs are compared: rows sorted by identity, blocks that cover each pair once, numbers of pairs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unface.pairs.space import PairSpace


@dataclass(frozen=True)
class Block:
    """Rows × columns of the score matrix."""

    rows: slice
    columns: slice


@dataclass(frozen=True, eq=False)
class Pairing:
    """A space whose rows are sorted by identity, so that mated pairs lie next to the diagonal."""

    space: PairSpace
    identities: NDArray[np.int64]
    rows: NDArray[np.int64] = field(repr=False)
    """Where each sorted row stood before sorting."""

    def __len__(self) -> int:
        return len(self.identities)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Images of each identity, by code."""
        return np.bincount(self.identities)

    @property
    def mated(self) -> int:
        """Number of unordered pairs of one identity."""
        sizes = self.sizes.astype(object)
        return int((sizes * (sizes - 1) // 2).sum())

    @property
    def impostors(self) -> int:
        """Number of unordered pairs of two identities."""
        n = len(self)
        return n * (n - 1) // 2 - self.mated

    def blocks(self, rows: int, columns: int) -> Iterator[Block]:
        """Blocks that together hold every pair (i < j) once; those on the diagonal hold others too."""
        for start in range(0, len(self), rows):
            for column in range(start, len(self), columns):
                yield Block(slice(start, min(start + rows, len(self))), slice(column, min(column + columns, len(self))))

    def is_impostor(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the pairs (i, j) are of two identities, counting (i, j) but not (j, i)."""
        return np.asarray((i < j) & (self.identities[i] != self.identities[j]))

    def impostor_mask(self, block: Block) -> NDArray[np.bool_] | None:
        """Which entries of a block are impostor pairs; None when all are."""
        if self.has_only_impostors(block):
            return None
        rows, columns = np.arange(len(self))[block.rows, None], np.arange(len(self))[None, block.columns]
        return self.is_impostor(rows, columns)

    def leave_impostors(self, block: Block, scores: NDArray[np.float32]) -> None:
        """Write −Inf over the scores of a block that are not of impostor pairs."""
        if self.has_only_impostors(block):
            return
        # Rows are sorted: the impostors of a row that count for it are all columns after its own identity.
        codes = self.identities[block.rows]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.searchsorted(self.identities, codes[first], side="right") - block.columns.start
        for start, stop, end in zip(first, [*first[1:], len(codes)], ends, strict=True):
            scores[start:stop, : max(end, 0)] = -np.inf

    def has_only_impostors(self, block: Block) -> bool:
        """Whether a block needs no mask: it lies right of the diagonal and shares no identity."""
        return bool(self.identities[block.rows.stop - 1] < self.identities[block.columns.start])


def pair_up(space: PairSpace, identities: NDArray[np.integer]) -> Pairing:
    """Sort the rows of a space by identity code."""
    order = np.argsort(identities, kind="stable")
    codes = np.asarray(identities, np.int64)[order]
    already = bool((order[1:] > order[:-1]).all())
    return Pairing(space if already else space.take(order), codes, order)
