"""Vectors through a map: in blocks that fit a cache, to length one again, and with those that vanish left at zero."""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.erase.linear import LinearMap
from unface.errors import UnfaceError
from unface.threads import parallel_map

VANISHED = 1e-6
"""A vector of which less than this share of its length is left has no direction of its own any more."""

_BLOCK_BYTES = 1 << 20


def map_rows(vectors: NDArray[np.number], linear: LinearMap, *, normalise: bool) -> tuple[NDArray[np.float32], int]:
    """The mapped (n, d) vectors and how many of them vanished."""
    out = np.empty(vectors.shape, np.float32)
    step = max(1, _BLOCK_BYTES // max(1, 8 * vectors.shape[1]))
    work = partial(_map_block, vectors, out, step, linear=linear, normalise=normalise)
    return out, sum(parallel_map(work, range(0, len(vectors), step)))


def map_one(vector: NDArray[np.number], linear: LinearMap, *, normalise: bool) -> tuple[NDArray[np.float32], int]:
    """The same for one vector (d,), without what only many rows pay for."""
    exact = vector.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused, not warned of
        mapped = linear(exact)
        before, after = float(exact.dot(exact)), float(mapped.dot(mapped))
    if not math.isfinite(after):
        raise _unusable(0)
    if after <= VANISHED**2 * before:
        return np.zeros(len(mapped), np.float32), 1
    if normalise:
        mapped *= 1 / math.sqrt(after)
    return mapped.astype(np.float32), 0


def _map_block(
    vectors: NDArray[np.number],
    out: NDArray[np.float32],
    step: int,
    start: int,
    *,
    linear: LinearMap,
    normalise: bool,
) -> int:
    rows = slice(start, start + step)
    exact = vectors[rows].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mapped = linear(exact)
        before, after = (np.einsum("ij,ij->i", part, part) for part in (exact, mapped))
    if not np.isfinite(after).all():
        raise _unusable(start + int(np.argmin(np.isfinite(after))))
    vanished = after <= VANISHED**2 * before
    scale = (~vanished).astype(np.float64)
    if normalise:
        np.divide(1, np.sqrt(after), where=~vanished, out=scale)
    np.multiply(mapped, scale[:, None], out=out[rows])
    return int(np.count_nonzero(vanished))


def _unusable(row: int) -> UnfaceError:
    return UnfaceError(f"apply: vector {row} has NaN, Inf or values too large to square; drop it")
