"""A .npy file for the contract: ids are row numbers."""

from collections.abc import Hashable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.stores.contract import Maker, StoreCase, Vectors
from unface.stores.npy import NpyStore


def make(dtype: str, folder: Path) -> StoreCase:
    path = folder / "faces.npy"
    kept = np.dtype(dtype)

    def fill(vectors: Vectors) -> range:
        np.save(path, vectors.astype(kept))
        return range(len(vectors))

    def read() -> dict[Hashable, NDArray[np.floating]]:
        return dict(enumerate(np.load(path)))

    def search(vector: Vectors) -> int:
        return int(np.argmax(np.load(path).astype(np.float64) @ vector))

    def patterns(vector: Vectors) -> list[bytes]:
        return [vector.astype(kept).tobytes()]

    return StoreCase(
        fill, lambda: NpyStore(path), read, search, lambda: list(folder.iterdir()), patterns, dtype=kept.name
    )


MAKERS: dict[str, Maker] = {
    "npy float32": partial(make, "<f4"),
    "npy float16": partial(make, "<f2"),
    "npy float64": partial(make, "<f8"),
    "npy big-endian": partial(make, ">f4"),
}
