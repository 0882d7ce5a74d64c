"""The one erasing kernel: what happens to a vector, wherever and in whatever form a projection is applied."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.erase.gate import Gate
from unface.threads import one_blas_thread, parallel_map

Matrix = NDArray[np.float64]

VANISHED = 1e-6
"""A vector of which less than this share of its length is left has no direction of its own any more."""
UNIT = 2.0**-22
"""‖x‖² within this of 1 is unit length: twice what rounding every coordinate to float32 can add up to."""

# Of float64: what is read, multiplied and written again stays in a core's own cache.
_BLOCK_BYTES = 1 << 20
# Near half of the dimensions two thin products and a subtraction cost more than one square product; so they do where
# a vector is so short that calls cost more than arithmetic.
_SQUARE_FROM = 0.45
_SHORT = 64


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ x L R, or x − x L R, plus an offset; R may be missing.

    In float64: in float32 the rounding of the factors leaves a hundred-millionth of what was removed, which is still
    linear in it, and an attacker who looks along the removed directions reads identities from that. Erased in float64
    and rounded afterwards, a vector is a function of what was kept.
    """

    left: Matrix  # (d, k)
    right: Matrix | None  # (k, d)
    subtract: bool
    offset: NDArray[np.float64] | None  # (d,)

    @property
    def released(self) -> int:
        """Dimensions of what comes out."""
        return int((self.left if self.right is None else self.right).shape[1])

    def __call__(self, vectors: Matrix) -> Matrix:
        """Of (n, d) vectors or a single one; always a new array. NaN and Inf pass through, for the caller to see."""
        mapped: Matrix = vectors @ self.left
        if self.right is not None:
            mapped = mapped @ self.right
        if self.subtract:
            np.subtract(vectors, mapped, out=mapped)
        if self.offset is not None:
            mapped += self.offset
        return mapped


def cheapest_map(directions: Matrix, readers: Matrix | None, mean: NDArray[np.float64] | None) -> LinearMap:
    """z ↦ z − A Bᵀ(z − mean) as I − A Bᵀ, as the thin factors of its complement, or as one square matrix."""
    dim, rank = directions.shape
    read = directions if readers is None else readers
    offset = None if mean is None else directions @ (read.T @ mean)
    if dim <= _SHORT or min(rank, dim - rank) > _SQUARE_FROM * dim:
        return LinearMap(np.eye(dim) - read @ directions.T, None, False, offset)
    if rank < dim - rank:
        return LinearMap(np.ascontiguousarray(read), np.ascontiguousarray(directions.T), True, offset)
    # What is kept is spanned by the complement C of the readers, and P = C CᵀP = C (Cᵀ − CᵀA Bᵀ).
    with one_blas_thread():
        kept = np.linalg.qr(read, mode="complete")[0][:, rank:]
    return LinearMap(kept - read @ (directions.T @ kept), np.ascontiguousarray(kept.T), False, offset)


@dataclass(frozen=True, eq=False)
class ErasedRows:
    """Erased vectors (n, released), how many have nothing left, and the rows with NaN or Inf, not to be used."""

    vectors: NDArray[np.float32]
    degenerate: int
    bad: NDArray[np.int64]
    not_faces: int = 0
    """Vectors that a face gate left as they are."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """What is released is what was audited: a vector is scaled as the projection's own were before it is mapped.

    1. A vector x is float32; a zero vector stays zero, whatever the map's offset.
    2. If ``unit_input`` (the projection was fitted, and is audited, in a normalised space), x becomes x / ‖x‖, worked
       out in float64 and rounded to float32 as ``EmbeddingSet.unit`` does. A vector of unit length stays as it is, so
       that a vector and its unit form come out as the same bits. A map with an offset, such as LEACE's, does not
       commute with scaling: the step is not optional.
    3. With a ``gate``, a vector that it does not take for a face is released as it is now. It needs ``unit_input``.
    4. y = linear(x), in float64.
    5. If ‖y‖ ≤ 1e-6 ‖x‖ nothing is left: y becomes zero and is counted as degenerate.
    6. If ``unit_output``, y becomes y / ‖y‖. Then y is rounded to float32.

    The ONNX, torch and FAISS forms repeat these steps in their own operators.
    """

    linear: LinearMap
    unit_input: bool
    unit_output: bool
    gate: Gate | None = None

    def rows(self, vectors: NDArray[np.generic], threads: int | None = None) -> ErasedRows:
        """Of (n, d) numbers of any width; with ``threads=1`` the caller limits BLAS to one thread."""
        out = np.empty((len(vectors), self.linear.released), np.float32)
        step = max(1, _BLOCK_BYTES // max(1, 8 * vectors.shape[1]))
        work = partial(self._block, vectors, out, step)
        starts = range(0, len(vectors), step)
        blocks = [work(start) for start in starts] if threads == 1 else parallel_map(work, starts, threads)
        bad = [rows for _, _, rows in blocks if rows is not None]
        degenerate, not_faces = sum(block[0] for block in blocks), sum(block[1] for block in blocks)
        return ErasedRows(out, degenerate, np.concatenate(bad) if bad else np.empty(0, np.int64), not_faces)

    def one(self, vector: NDArray[np.generic]) -> tuple[NDArray[np.float32], int] | None:
        """One vector (d,) and 1 if nothing is left, without what only many rows pay for; None for NaN and Inf."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused, not warned of
            exact = vector.astype(np.float32, copy=False).astype(np.float64)
            before = float(exact.dot(exact))
            if self.unit_input and 0 < before < math.inf and abs(before - 1) > UNIT:
                exact = (exact / math.sqrt(before)).astype(np.float32).astype(np.float64)
            if self.gate is not None and 0 < before < math.inf and not self.gate.scores(exact) > 0:
                return exact.astype(np.float32), 0
            mapped = self.linear(exact)
            after = float(mapped.dot(mapped))
        if not math.isfinite(before + after):
            return None
        if not before or after <= VANISHED**2 * (1.0 if self.unit_input else before):
            return np.zeros(len(mapped), np.float32), 1
        if self.unit_output:
            mapped *= 1 / math.sqrt(after)
        return mapped.astype(np.float32), 0

    def _block(
        self, vectors: NDArray[np.generic], out: NDArray[np.float32], step: int, start: int
    ) -> tuple[int, int, NDArray[np.int64] | None]:
        """How many rows have nothing left and how many are not faces; the bad ones, if any, and then nothing else."""
        rows = slice(start, start + step)
        with np.errstate(over="ignore"):  # what does not fit becomes Inf, which is bad
            exact = vectors[rows].astype(np.float32, copy=False).astype(np.float64)
        # Squares of single precision do not overflow here, so a sum that is not finite means a number that was not.
        squares = np.einsum("ij,ij->i", exact, exact)
        if not np.isfinite(squares).all():
            return 0, 0, start + np.flatnonzero(~np.isfinite(squares))
        nothing = squares == 0
        if self.unit_input:
            lengths = np.sqrt(np.where(nothing | (np.abs(squares - 1) <= UNIT), 1, squares))
            exact[...] = np.divide(exact, lengths[:, None], out=exact).astype(np.float32)
            squares = 1.0
        chosen = np.arange(start, start + len(exact))
        if self.gate is not None:
            faces = (self.gate.scores(exact) > 0) | nothing
            out[rows] = exact
            exact, nothing, chosen = exact[faces], nothing[faces], chosen[faces]
        with np.errstate(over="ignore", invalid="ignore"):
            mapped = self.linear(exact)
            after = np.einsum("ij,ij->i", mapped, mapped)
        if not np.isfinite(after).all():
            return 0, 0, chosen[~np.isfinite(after)]
        vanished = (after <= VANISHED**2 * squares) | nothing
        scale = (~vanished).astype(np.float64)
        if self.unit_output:
            np.divide(1, np.sqrt(after), where=~vanished, out=scale)
        # In two steps, which are faster than one that casts on the way.
        mapped *= scale[:, None]
        if self.gate is None:
            out[rows] = mapped
        else:
            out[chosen] = mapped
        return int(np.count_nonzero(vanished)), len(out[rows]) - len(chosen), None
