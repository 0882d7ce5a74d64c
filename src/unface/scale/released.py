"""Vectors as they are released: scaled as the projection was fitted, erased, and in a space of their own."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.erase import Projection
from unface.erase.rows import VANISHED
from unface.errors import UnfaceError
from unface.threads import parallel_map

# Of float64: what is read, multiplied and written again stays in a core's own cache.
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Released:
    """Erased vectors (n, d), how many have nothing left, and the rows with NaN or Inf, whose vectors mean nothing."""

    vectors: NDArray[np.float32]
    degenerate: int
    bad: NDArray[np.int64]


def released_vectors(projection: Projection, vectors: NDArray[np.generic], source: str) -> NDArray[np.float32]:
    """(n, d) numbers of any width through a projection; zero vectors stay zero."""
    require_dim(projection, vectors.shape[1], source)
    done = release(projection, vectors)
    if len(done.bad):
        raise bad_rows(source, int(done.bad[0]), len(done.bad))
    return done.vectors


def release(projection: Projection, vectors: NDArray[np.generic], threads: int | None = None) -> Released:
    """The same, with bad rows left for the caller to tell; on one thread of many he also sees to BLAS."""
    out = np.empty(vectors.shape, np.float32)
    step = max(1, _BLOCK_BYTES // max(1, 8 * vectors.shape[1]))
    work = partial(_release_block, projection, vectors, out, step)
    starts = range(0, len(vectors), step)
    blocks = [work(start) for start in starts] if threads == 1 else parallel_map(work, starts, threads)
    bad = [rows for _, rows in blocks if rows is not None]
    return Released(out, sum(count for count, _ in blocks), np.concatenate(bad) if bad else np.empty(0, np.int64))


def _release_block(
    projection: Projection, vectors: NDArray[np.generic], out: NDArray[np.float32], step: int, start: int
) -> tuple[int, NDArray[np.int64] | None]:
    rows = slice(start, start + step)
    with np.errstate(over="ignore"):  # what does not fit becomes Inf and is told as such
        exact = vectors[rows].astype(np.float32, copy=False).astype(np.float64)
    # Squares of single precision do not overflow here, so a sum that is not finite means a number that was not.
    squares = np.einsum("ij,ij->i", exact, exact)
    if not np.isfinite(squares).all():
        return 0, start + np.flatnonzero(~np.isfinite(squares))
    nothing = squares == 0
    if projection.space.normalised:
        # To single precision and back: as the vectors that the projection was fitted on.
        unit = np.divide(exact, np.sqrt(np.where(nothing, 1, squares))[:, None], out=exact).astype(np.float32)
        exact[...] = unit
        squares = 1.0
    mapped = projection.linear(exact)
    after = np.einsum("ij,ij->i", mapped, mapped)
    # An oblique projection with a mean would turn "no vector" into one.
    vanished = (after <= VANISHED**2 * squares) | nothing
    scale = (~vanished).astype(np.float64)
    if projection.normalise:
        np.divide(1, np.sqrt(after), where=~vanished, out=scale)
    # In two steps, which are faster than one that casts on the way.
    mapped *= scale[:, None]
    out[rows] = mapped
    return int(np.count_nonzero(vanished)), None


def require_dim(projection: Projection, dim: int, source: str) -> None:
    """Refuse vectors of another length."""
    if dim != projection.dim:
        raise UnfaceError(f"{source}: vectors of {dim} dimensions; this projection is for {projection.dim}: fit one")


def bad_rows(source: str, first: int, count: int) -> UnfaceError:
    """The sentence about rows that are no numbers."""
    return UnfaceError(f"{source}: row {first} has NaN or Inf; repair or drop such rows ({count:,} in all)")


def released_space(projection: Projection, given: Space | None) -> Space:
    """What comes out is another space than what went in: it must not be compared with raw vectors, or erased again."""
    space = given or projection.space
    encoder = f"{space.encoder or 'unknown encoder'} after {projection.kind} {projection.rank}"
    return Space(encoder, projection.sha256, projection.dim, projection.normalise)


def require_raw(projection: Projection, given: Space | None) -> None:
    """A file that names its space must name the projection's; one that says nothing is taken at its user's word."""
    if given is not None and is_named(given):
        projection.require_space(given)


def is_named(given: Space | None) -> bool:
    """Whether anybody said which encoder or weights vectors come from."""
    return given is not None and (given.encoder, given.weights_sha256) != (None, None)
