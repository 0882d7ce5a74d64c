"""Projection: what an eraser learned, as the one thing that is applied, saved, shipped and hashed."""

import hashlib
import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.data import Space
from unface.erase.fitted_on import FittedOn
from unface.erase.gate import Gate
from unface.erase.kernel import Kernel, LinearMap, cheapest_map
from unface.errors import UnfaceError
from unface.fitted import ERASED, FITTED, hashes
from unface.result.numbers import Certificate
from unface.threads import one_blas_thread

if TYPE_CHECKING:
    import faiss
    import torch

# Factors are orthonormal to about 1e-14; more than this is another matrix, not rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """z ↦ z − A Bᵀ(z − mean), or Vᵀz, then scaled to length one if ``normalise``. Holds no identity and no sample.

    If its ``space`` is normalised, z is the given vector scaled to length one; else the vector as it is (see Kernel).

    ``directions`` A (d, r) are orthonormal and span what is removed. ``readers`` B (d, r) with BᵀA = I say how much of
    it a vector has; None means B = A, an orthogonal projection. ``spectrum`` holds the values by which the eraser of
    this ``kind`` chose its directions, in their order. With a ``gate``, only what it takes for a face is changed.

    ``kept`` V (d, k), of an eraser that decides what stays, releases Vᵀz in k dimensions. With ``keep_dimension`` it is
    L Vᵀz in d dimensions, L (d, k) orthonormal with the span of V: every inner product is the same; so it is with a
    gate, beside vectors that stay as they are. ``directions`` are then the complement of V.
    """

    kind: str
    directions: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    space: Space
    readers: NDArray[np.float64] | None = None
    mean: NDArray[np.float64] | None = None
    normalise: bool = True
    certificate: Certificate | None = None
    gate: Gate | None = None
    kept: NDArray[np.float64] | None = None
    keep_dimension: bool = False
    fitted_on: FittedOn | None = None
    """Lets an audit notice the people it was fitted on; None where nobody recorded them."""

    def __post_init__(self) -> None:
        _require_projection(self)
        for array in (self.directions, self.spectrum, self.readers, self.mean, self.kept):
            if array is not None:
                array.flags.writeable = False

    def __repr__(self) -> str:
        faces = "" if self.gate is None else " from faces"
        return f"Projection({self.kind!r}: {self.rank} of {self.dim} dimensions removed{faces}, {self.space})"

    @property
    def released_dim(self) -> int:
        """Dimensions of the vectors that come out."""
        whole = self.kept is None or self.keep_dimension or self.gate is not None
        return self.dim if whole or self.kept is None else int(self.kept.shape[1])

    def in_same_dimension(self) -> "Projection":
        """The same with vectors of d dimensions, for what cannot hold shorter ones; itself if that is what it does."""
        return self if self.released_dim == self.dim else replace(self, keep_dimension=True)

    @property
    def dim(self) -> int:
        """Dimensions of the space."""
        return int(self.directions.shape[0])

    @property
    def rank(self) -> int:
        """Dimensions removed."""
        return int(self.directions.shape[1])

    @cached_property
    def mark(self) -> str:
        """Of what it removes; the same for a copy that was saved and loaded."""
        removed = self.directions if self.kept is None else self.kept
        return hashlib.blake2b(np.ascontiguousarray(removed).tobytes(), digest_size=16).hexdigest()

    @property
    def sha256(self) -> str:
        """Of the bytes that ``save`` writes."""
        from unface.erase.file import to_bytes

        return hashlib.sha256(to_bytes(self)).hexdigest()

    def apply(self, vectors: ArrayLike) -> NDArray[np.float32]:
        """The erased vectors, (n, released_dim) or (released_dim,) of (n, d) or (d,): see ``Kernel``."""
        erased = self._erased(vectors, self.kernel)[0]
        if FITTED and erased.ndim == 2:
            known = FITTED.among(np.asarray(vectors), self.mark)
            if known.any():
                ERASED.add(self.mark, hashes(erased[known]))
        return erased

    def apply_linear(self, vectors: ArrayLike) -> NDArray[np.float32]:
        """The same before it is scaled to length one: the map that the theorems are about."""
        return self._erased(vectors, replace(self.kernel, unit_output=False))[0]

    def count_degenerate(self, vectors: ArrayLike) -> int:
        """How many of the vectors become zero."""
        return self._erased(vectors, self.kernel)[1]

    def require_space(self, space: Space) -> None:
        """Refuse vectors of another encoder, other weights or another dimension; the sentence names both."""
        mine, theirs = ((one.encoder, one.weights_sha256, one.dim) for one in (self.space, space))
        if mine != theirs:
            raise UnfaceError(f"projection: fitted in {self.space}; these vectors are in {space}; fit one for them")

    def save(self, path: str | os.PathLike[str]) -> None:
        """One .safetensors file, by a rename once all is written."""
        from unface.erase.file import save_projection

        save_projection(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Projection":
        """What ``save`` wrote, whole and unchanged, or UnfaceError."""
        from unface.erase.file import load_projection

        return load_projection(Path(path))

    def export(self, path: str | os.PathLike[str]) -> None:
        """An ONNX model from ``vectors`` (batch, d) to ``erased``, scaling included; needs ``onnx``."""
        from unface.erase.exported import save_onnx

        save_onnx(self, Path(path))

    def torch_module(self) -> "torch.nn.Module":
        """The same as ``apply`` on torch tensors of any float type and device; needs ``torch``."""
        try:
            from unface.erase.torch_module import Erasure
        except ImportError:
            raise UnfaceError("torch_module: torch is not installed; pip install 'unface[torch]'") from None
        return Erasure(self)

    def faiss_transform(self) -> "list[faiss.VectorTransform]":
        """For queries to an index of erased vectors, each to stand before it in order; needs ``faiss``."""
        from unface.erase.exported import faiss_transforms

        return faiss_transforms(self)

    @cached_property
    def linear(self) -> LinearMap:
        """The cheapest form of the map, made on first use."""
        if self.kept is None:
            return cheapest_map(self.directions, self.readers, self.mean)
        back = orthonormal(self.kept).T if self.released_dim == self.dim else None
        return LinearMap(self.kept, back, False, None)

    @cached_property
    def kernel(self) -> Kernel:
        """What every form of this projection does to a vector."""
        return Kernel(self.linear, self.space.normalised, self.normalise, self.gate)

    def _erased(self, vectors: ArrayLike, kernel: Kernel) -> tuple[NDArray[np.float32], int]:
        array = np.asarray(vectors)
        if array.shape[-1:] != (self.dim,) or array.ndim > 2 or array.dtype.kind not in "fiu":
            raise UnfaceError(
                f"projection: vectors of shape {array.shape} and type {array.dtype};"
                f" expected numbers of shape (n, {self.dim}) or ({self.dim},)"
            )
        if array.ndim == 1:
            erased = kernel.one(array)
            if erased is None:
                raise _unusable(0)
            return erased
        done = kernel.rows(array)
        if len(done.bad):
            raise _unusable(int(done.bad[0]))
        return done.vectors, done.degenerate


@dataclass(frozen=True, eq=False)
class PrincipalCosines:
    """Cosines of the principal angles between what two projections remove, falling; and the largest by chance."""

    values: NDArray[np.float64]
    chance: float
    """Where the largest cosine of two random subspaces of these ranks concentrates; 1 says that dimensions alone
    force them to meet."""


def principal_cosines(a: Projection, b: Projection) -> PrincipalCosines:
    """All cosines σ(U_AᵀU_B); neither projection's encoder matters, only its dimensions."""
    if a.dim != b.dim:
        raise UnfaceError(f"principal cosines: {a.dim} and {b.dim} dimensions; both projections need the same number")
    if not a.rank or not b.rank:
        raise UnfaceError(f"principal cosines: ranks {a.rank} and {b.rank}; expected at least 1")
    overlap = a.directions.T @ b.directions
    values = np.minimum(np.linalg.svd(overlap, compute_uv=False), 1.0)
    return PrincipalCosines(values, chance_cosine(a.rank, b.rank, a.dim))


def chance_cosine(first: int, second: int, dim: int) -> float:
    """The upper edge of the Jacobi ensemble; for equal ranks its square is 4p(1 − p), p = r/d (Johnstone 2008)."""
    p, q = first / dim, second / dim
    if p + q >= 1:
        return 1.0
    return math.sqrt(p * (1 - q)) + math.sqrt(q * (1 - p))


def complement(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d, d − k) orthonormal directions that V (d, k) does not read."""
    with one_blas_thread():
        basis: NDArray[np.float64] = np.linalg.qr(kept, mode="complete")[0][:, kept.shape[1] :]
    return np.ascontiguousarray(basis)


def orthonormal(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d, k) of the same span, the same on every machine: where R of V = L R has a positive diagonal, L is unique."""
    with one_blas_thread():
        basis, triangle = np.linalg.qr(kept)
    return np.ascontiguousarray(basis * np.where(np.diag(triangle) < 0, -1.0, 1.0))


def _unusable(row: int) -> UnfaceError:
    return UnfaceError(f"apply: vector {row} has NaN, Inf or values too large for float32; drop it")


def _require_projection(projection: Projection) -> None:
    directions, readers, mean = projection.directions, projection.readers, projection.mean
    if directions.ndim != 2 or directions.shape[1] > directions.shape[0]:
        raise UnfaceError(f"projection: directions of shape {directions.shape}; expected (d, r) with r at most d")
    dim, rank = directions.shape
    if projection.space.dim != dim:
        raise UnfaceError(f"projection: directions have {dim} dimensions, its space {projection.space.dim}")
    expected = {
        "directions": (directions, (dim, rank)),
        "readers": (readers, (dim, rank)),
        "mean": (mean, (dim,)),
        "kept": (projection.kept, (dim, dim - rank)),
        "spectrum": (projection.spectrum, projection.spectrum.shape[:1]),
    }
    for name, (array, shape) in expected.items():
        if array is None:
            continue
        if array.shape != shape or array.dtype != np.float64:
            raise UnfaceError(f"projection: {name} is {array.dtype} of {array.shape}; expected float64 of {shape}")
        if not np.isfinite(array).all():
            raise UnfaceError(f"projection: {name} has NaN or Inf; fit it again")
    if projection.gate is not None:
        _require_gate(projection.gate, projection.space)
    with np.errstate(over="ignore", invalid="ignore"):
        frame = directions.T @ directions - np.eye(rank)
        read = frame if readers is None else readers.T @ directions - np.eye(rank)
    length = 1.0 if readers is None else max(float(np.abs(readers).max(initial=0)), 1.0)
    # Written so that NaN fails too.
    if not (np.abs(frame) <= _ROUNDING).all() or not (np.abs(read) <= _ROUNDING * length).all():
        raise UnfaceError("projection: its factors are not those of a projection; fit it again")
    kept = projection.kept
    if kept is None:
        if projection.keep_dimension:
            raise UnfaceError("projection: keep_dimension is for one with kept directions; leave it out")
        return
    with one_blas_thread():
        singular = np.linalg.svd(kept, compute_uv=False)
    if readers is not None or mean is not None or not len(singular) or not singular[-1] > _ROUNDING * singular[0]:
        raise UnfaceError("projection: its kept directions are not independent, or it also has readers or a mean")
    if not (np.abs(directions.T @ kept) <= _ROUNDING * singular[0]).all():
        raise UnfaceError("projection: its kept directions and those it removes overlap; fit it again")


def _require_gate(gate: Gate, space: Space) -> None:
    weights = gate.weights
    if weights.shape != (space.dim,) or weights.dtype != np.float64:
        raise UnfaceError(f"projection: gate is {weights.dtype} of {weights.shape}; expected float64 of ({space.dim},)")
    if not np.isfinite(weights).all() or not abs(float(weights @ weights) - 1) <= _ROUNDING:
        raise UnfaceError("projection: gate has NaN, Inf or weights that are not of length one; fit it again")
    if not math.isfinite(gate.offset):
        raise UnfaceError("projection: gate has NaN or Inf as its offset; fit it again")
    if not space.normalised:
        raise UnfaceError("projection: a face gate works on unit vectors; fit it with 'unface fit', which scales them")
    weights.flags.writeable = False
