"""Where block scores come from: a fast screen with a known error, on the CPU here, on a GPU in ``torch_screen``."""

import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs.pairing import Block
from unface.pairs.space import PairSpace


@dataclass(frozen=True, eq=False)
class Hits:
    """Pairs that a screen let through: row numbers and screened scores."""

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def none(cls) -> "Hits":
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))

    def where(self, mask: NDArray[np.bool_]) -> "Hits":
        """Some of the hits."""
        return Hits(self.i[mask], self.j[mask], self.scores[mask])


@dataclass(frozen=True, eq=False)
class Peaks:
    """The highest screened scores of a block's rows and columns, and every pair that may be the best of one."""

    row_best: NDArray[np.float32]
    column_best: NDArray[np.float32]
    by_row: Hits
    by_column: Hits


def join_hits(parts: list[Hits]) -> Hits:
    """All the hits of several blocks, in their order."""
    return Hits(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("i", "j", "scores")))


class TooManyHits(Exception):
    """A block has more pairs above the cut than its caller wants to hold at once; it asks again for parts of it."""


class Screen(Protocol):
    """Scores a block with an error of at most ``margin``."""

    margin: float
    block_rows: int
    block_columns: int
    workers: int | None
    """Threads to call it from; None: as many as the user wants."""

    def above(self, block: Block, cut: float, most: int | None = None) -> Hits:
        """Every pair of the block whose screened score is at least ``cut``; (i, j) are rows of the space.

        Raises ``TooManyHits`` before it lists more than ``most``.
        """
        ...

    def scores(self, block: Block) -> NDArray[np.float32]:
        """The screened scores of a block, valid until the next call from the same thread."""
        ...


class PeakScreen(Screen, Protocol):
    """A screen that also finds the best of rows and columns where it made them, on a GPU before anything is copied."""

    def peaks(
        self,
        block: Block,
        row_best: NDArray[np.float32],
        column_best: NDArray[np.float32],
        slack: np.float32,
        without: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        most: int | None = None,
    ) -> Peaks:
        """What lies within ``slack`` of the best of its row or column, of those given and those in this block.

        ``without`` are places of the block that do not count. Raises ``TooManyHits`` before it lists more than
        ``most`` for rows or for columns.
        """
        ...


class CpuScreen:
    """Float32 products by BLAS into a buffer that each thread reuses."""

    workers: int | None = None

    def __init__(self, space: PairSpace) -> None:
        self.margin = space.float32_margin()
        # 1,024 × 2,048 float32 fit the last-level cache, so looking at the scores costs little beside making them.
        # Fewer rows for small sets, so that two cores have something to share.
        self.block_rows = int(np.clip(len(space) // 4, 128, 1024))
        self.block_columns = 2048
        self._space = space
        self._buffers = threading.local()

    def above(self, block: Block, cut: float, most: int | None = None) -> Hits:
        scores = self.scores(block)
        # A row's maximum is far cheaper than the positions in it, and at low rates few rows have any.
        rows = np.flatnonzero(scores.max(axis=1) >= cut)
        if 2 * len(rows) > len(scores):
            rows, above = np.arange(len(scores)), scores >= cut
        else:
            above = scores[rows] >= cut
        _require_few(above, most)
        i, j = np.divmod(np.flatnonzero(above), scores.shape[1])
        return Hits(rows[i] + block.rows.start, j + block.columns.start, scores[rows[i], j])

    def scores(self, block: Block) -> NDArray[np.float32]:
        left, right = self._space.left[block.rows], self._space.right[block.columns]
        buffer = self._buffer()[: len(left) * len(right)].reshape(len(left), len(right))
        return np.matmul(left, right.T, out=buffer)

    def peaks(
        self,
        block: Block,
        row_best: NDArray[np.float32],
        column_best: NDArray[np.float32],
        slack: np.float32,
        without: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        most: int | None = None,
    ) -> Peaks:
        scores = self.scores(block)
        if without is not None:
            scores[without] = -np.inf
        # Maxima are cheap beside the product. Positions are looked for only where a row's or a column's best may be.
        rows_here, columns_here = scores.max(axis=1), scores.max(axis=0)
        rows = np.flatnonzero((rows_here >= row_best - slack) & (rows_here > -np.inf))
        least = np.maximum(rows_here, row_best)[rows] - slack
        part = scores if len(rows) == len(scores) else scores[rows]
        near = part >= least[:, None]
        _require_few(near, most)
        i, j = np.divmod(np.flatnonzero(near), scores.shape[1])
        i = rows[i]
        by_row = Hits(i + block.rows.start, j + block.columns.start, scores[i, j])
        columns = np.flatnonzero((columns_here >= column_best - slack) & (columns_here > -np.inf))
        least = np.maximum(columns_here, column_best)[columns] - slack
        part = scores if len(columns) == scores.shape[1] else scores[:, columns]
        near = part >= least
        _require_few(near, most)
        i, j = np.divmod(np.flatnonzero(near), max(len(columns), 1))
        j = columns[j]
        by_column = Hits(i + block.rows.start, j + block.columns.start, scores[i, j])
        return Peaks(rows_here, columns_here, by_row, by_column)

    def _buffer(self) -> NDArray[np.float32]:
        if not hasattr(self._buffers, "array"):
            self._buffers.array = np.empty(self.block_rows * self.block_columns, np.float32)
        buffer: NDArray[np.float32] = self._buffers.array
        return buffer


def _require_few(chosen: NDArray[np.bool_], most: int | None) -> None:
    if most is not None and chosen.size > most and np.count_nonzero(chosen) > most:
        raise TooManyHits


def open_screen(space: PairSpace, device: str = "cpu") -> PeakScreen:
    """The screen of a device: ``cpu``, or ``cuda`` with PyTorch."""
    if device == "cpu":
        return CpuScreen(space)
    if device.partition(":")[0] == "cuda":
        try:
            from unface.pairs.torch_screen import TorchScreen
        except ModuleNotFoundError:
            raise UnfaceError(f"device {device!r} needs PyTorch; pip install 'unface[torch]', or use 'cpu'") from None
        return TorchScreen(space, device)
    raise UnfaceError(f"device {device!r} is not known; use 'cpu' or 'cuda'")
