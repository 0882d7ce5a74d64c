"""An .npz file for which nothing but the vectors matters: every other array is carried along as it is."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from unface.data.files import short_name
from unface.data.npz import array_name, read_arrays
from unface.errors import UnfaceError

Arrays = dict[str, NDArray[np.generic]]


def read_vector_arrays(path: Path, vector: str = "vector") -> tuple[str, Arrays]:
    """All arrays and the name of the one that holds vectors; no identity is needed."""
    source, arrays = short_name(path), read_arrays(path)
    name = array_name(arrays, vector, "vectors", source)
    if arrays[name].ndim != 2 or arrays[name].dtype.kind not in "fiu":
        found = arrays[name]
        raise UnfaceError(f"{source}: {name!r} holds {found.dtype} of shape {found.shape}; expected numbers (n, d)")
    return name, arrays


def write_vector_arrays(arrays: Arrays, name: str, vectors: NDArray[np.float32], path: Path) -> None:
    """Other vectors in the old ones' place, in half precision if these were, else in single."""
    narrow = vectors.astype(np.float16 if arrays[name].dtype == np.float16 else np.float32)
    # As np.savez, which takes no array by the name of one of its own arguments, such as "file".
    with zipfile.ZipFile(path, "w") as archive:
        for known, array in {**arrays, name: narrow}.items():
            with archive.open(f"{known}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)
