"""What a store must let the contract tests do with it, and the vectors and projections that they use."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.erase import ISP, Keeper, Projection
from unface.scale import released_vectors
from unface.seeds import stream
from unface.stores import Store

DIM, ROWS, RANK = 32, 300, 8
Vectors = NDArray[np.float32]


def as_float32(vector: Vectors) -> list[bytes]:
    return [vector.astype("<f4").tobytes()]


@dataclass(frozen=True)
class StoreCase:
    """One kind of store in a folder of its own; each callable opens what lies there anew, as another process would.

    ``cases_*.py`` beside this file each hold ``MAKERS: dict[str, Maker]``; test_contract.py finds them. A maker whose
    package is not installed skips (pytest.importorskip inside the maker).
    """

    fill: Callable[[Vectors], Sequence[Hashable]]
    """Makes the store from (n, d) vectors (n may be 0) with the user's own tools, and gives their ids in that order."""
    open: Callable[[], Store]
    """The adapter under test, fresh."""
    read: Callable[[], dict[Hashable, NDArray[np.floating]]]
    """id → vector of what a user finds there, read with the user's own tools and not through the adapter."""
    search: Callable[[Vectors], Hashable]
    """The id that a user's search finds first for one vector (d,)."""
    files: Callable[[], Sequence[Path]]
    """Every file that the store has on disk now, logs and leftovers included; what holds it open is closed first."""
    patterns: Callable[[Vectors], list[bytes]] = as_float32
    """Bytes as which one vector (d,) can lie in those files."""
    dtype: str = "float32"
    """Type in which the store keeps its vectors."""
    holds_nan: bool = True
    """Whether the store itself lets a NaN in."""


Maker = Callable[[Path], StoreCase]


def raw_vectors(rows: int = ROWS, seed: int = 0) -> Vectors:
    """Of length one, so that stores that scale vectors do not change them."""
    drawn = stream(seed, "raw vectors of a store").normal(size=(rows, DIM))
    vectors: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def projection(seed: int = 0, dim: int = DIM) -> Projection:
    """Any one of its rank will do; it is not people that are tested here."""
    people = stream(seed, "people for a store").normal(size=(60, dim))
    fitted = ISP(RANK).fit(people, np.arange(60) // 3).projection_
    return Projection(fitted.kind, fitted.directions, fitted.spectrum, Space(None, None, dim, normalised=True))


def shorter(seed: int = 0, kept: int = 12) -> Projection:
    """One that releases fewer dimensions."""
    drawn = stream(seed, "people for a keeper").normal(size=(240, DIM))
    fitted = Keeper(kept, nuisance=np.eye(DIM)).fit(drawn, np.arange(240) // 4).projection_
    return replace(fitted, space=Space(None, None, DIM, normalised=True))


def erased(by: Projection, raw: Vectors, dtype: str) -> NDArray[np.floating]:
    """What must be found after: of the vectors as the store had them, in the type in which it keeps them."""
    return released_vectors(by, raw.astype(dtype), "here").astype(dtype)
