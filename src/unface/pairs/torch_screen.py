"""The screen on a GPU: TF32 products, several times faster than float32, with a bound on their error."""

import threading

import numpy as np
import torch
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.memory import memory_budget
from unface.pairs.pairing import Block
from unface.pairs.screen import Hits, Peaks, TooManyHits
from unface.pairs.space import FLOAT32_ROUNDOFF, PairSpace

_SEGMENT = 256
# Tensor cores add in float32 but may truncate where IEEE rounds: four times the unit roundoff for each term is safe.
_ACCUMULATION = 4 * FLOAT32_ROUNDOFF


class TorchScreen:
    """Products of vectors rounded to TF32's 11 bits; rounded here, so that the error is known and not assumed."""

    workers: int | None = 2  # one block is judged on the CPU while the GPU makes the next

    def __init__(self, space: PairSpace, device: str) -> None:
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise UnfaceError(f"device {device!r}: PyTorch sees no GPU here; use 'cpu'")
        self.block_rows = self.block_columns = _block_side(device)
        self._left, left_error = _rounded(space.left, device)
        same = space.right is space.left
        self._right, right_error = (self._left, left_error) if same else _rounded(space.right, device)
        self.margin = _margin(space, left_error, right_error)
        self._lock = threading.Lock()

    def above(self, block: Block, cut: float, most: int | None = None) -> Hits:
        # One comparison for each 256 scores finds the few segments worth a second look.
        scores, cut = self._product(block), max(cut, torch.finfo(torch.float32).min)  # never down to the padding
        missing = -scores.shape[1] % _SEGMENT
        padded = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf) if missing else scores
        segments = padded.view(-1, _SEGMENT)
        hot = torch.nonzero(segments.amax(dim=1) >= cut).squeeze(1)
        above = segments[hot] >= cut
        _require_few(above, most)
        within, position = torch.nonzero(above, as_tuple=True)
        flat = hot[within] * _SEGMENT + position
        i, j = torch.div(flat, padded.shape[1], rounding_mode="floor"), flat % padded.shape[1]
        found = padded.view(-1)[flat].cpu().numpy()
        return Hits(i.cpu().numpy() + block.rows.start, j.cpu().numpy() + block.columns.start, found)

    def scores(self, block: Block) -> NDArray[np.float32]:
        scores: NDArray[np.float32] = self._product(block).cpu().numpy()
        return scores

    def peaks(
        self,
        block: Block,
        row_best: NDArray[np.float32],
        column_best: NDArray[np.float32],
        slack: np.float32,
        without: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        most: int | None = None,
    ) -> Peaks:
        scores = self._product(block)
        if without is not None:
            i, j = (torch.from_numpy(side).to(scores.device) for side in without)
            scores[i, j] = -torch.inf
        sides = []
        for axis, known in ((1, row_best), (0, column_best)):
            here = scores.amax(dim=axis)
            best = torch.from_numpy(known).to(scores.device)
            lines = torch.nonzero((here >= best - float(slack)) & (here > -torch.inf)).squeeze(1)
            least = torch.maximum(here, best)[lines] - float(slack)
            part = scores if len(lines) == len(here) else scores.index_select(1 - axis, lines)
            near = part >= (least[:, None] if axis else least)
            _require_few(near, most)
            i, j = torch.nonzero(near, as_tuple=True)
            i, j = (lines[i], j) if axis else (i, lines[j])
            found = scores[i, j].cpu().numpy()
            hits = Hits(i.cpu().numpy() + block.rows.start, j.cpu().numpy() + block.columns.start, found)
            sides.append((here.cpu().numpy(), hits))
        (rows_here, by_row), (columns_here, by_column) = sides
        return Peaks(rows_here, columns_here, by_row, by_column)

    def _product(self, block: Block) -> torch.Tensor:
        with self._lock:
            if self._left.is_cuda:
                torch.cuda.set_device(self._left.device)  # a thread that never used the GPU has no context yet
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("high")
            try:
                return self._left[block.rows] @ self._right[block.columns].T
            except torch.OutOfMemoryError:
                raise UnfaceError("the GPU's memory is too small for these vectors; use device 'cpu'") from None
            finally:
                torch.set_float32_matmul_precision(before)


def _require_few(chosen: torch.Tensor, most: int | None) -> None:
    if most is not None and chosen.numel() > most and int(torch.count_nonzero(chosen)) > most:
        raise TooManyHits


def _block_side(device: str) -> int:
    """Large blocks, so that waiting for the GPU costs little; smaller where two would not fit its memory or ours."""
    if not device.startswith("cuda"):
        return 512
    free, _ = torch.cuda.mem_get_info(device)
    scores = min(free / 5, memory_budget() / 8) / 4
    return int(min(32_768, 2 ** int(np.log2(np.sqrt(scores)))))


def _rounded(vectors: NDArray[np.float32], device: str) -> tuple[torch.Tensor, float]:
    """Vectors rounded to TF32 (nearest, ties to even) on the device, and the largest length of a rounding error."""
    exact = torch.from_numpy(np.ascontiguousarray(vectors)).to(device)
    bits = exact.view(torch.int32)
    rounded = ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)
    return rounded, float((exact - rounded).double().norm(dim=1).max())


def _margin(space: PairSpace, left_error: float, right_error: float) -> float:
    """|l̃·r̃ − l·r| ≤ ‖l̃ − l‖‖r‖ + ‖l̃‖‖r̃ − r‖, plus what summing in float32 loses, plus exact's own rounding."""
    left = float(np.linalg.norm(space.left.astype(np.float64), axis=1).max())
    right = float(np.linalg.norm(space.right.astype(np.float64), axis=1).max())
    rounding = left_error * right + (left + left_error) * right_error
    summing = space.left.shape[1] * _ACCUMULATION * (left + left_error) * (right + right_error)
    return float(rounding + summing + FLOAT32_ROUNDOFF * space.bound)
