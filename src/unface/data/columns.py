"""A file of vectors for which nothing but the vectors matters: all else is carried along as it is."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray

from unface.data.embeddings import row_numbers
from unface.data.files import kind_of, reason, short_name, written_whole
from unface.data.matrix import matrix_of
from unface.data.npz import array_name, read_arrays
from unface.data.parquet import read_all_columns
from unface.data.space import METADATA_KEY, Space, space_from_json
from unface.errors import UnfaceError


@dataclass(frozen=True, eq=False)
class VectorFile:
    """The vectors (n, d) of a file and what they came with: an Arrow table, or the arrays of an .npz."""

    vectors: NDArray[np.generic]
    name: str
    """Of the column or array they are in."""
    space: Space | None
    """None where the file does not say."""
    whole: "pa.Table | dict[str, NDArray[np.generic]]"


def read_vector_file(path: Path, vector: str = "vector") -> VectorFile:
    """A Parquet or .npz file; no identity is needed, and no column but the vectors is looked at."""
    kind, source = kind_of(path), short_name(path)
    if kind == "directory":
        raise UnfaceError(f"{source}: is a folder; give one file")
    if kind == "npz":
        arrays = read_arrays(path)
        name = array_name(arrays, vector, "vectors", source)
        if arrays[name].ndim != 2 or arrays[name].dtype.kind not in "fiu":
            raise UnfaceError(f"{source}: {name!r} has shape {arrays[name].shape}; expected numbers (n, d)")
        return VectorFile(arrays[name], name, None, arrays)
    table = read_all_columns(path)
    if vector not in table.column_names:
        raise UnfaceError(f"{source}: has no column {vector!r}; there are {', '.join(table.column_names)}")
    column = table.column(vector)
    vectors, nulls = matrix_of(column, row_numbers(np.empty((len(column), 1))), source, vector)
    if nulls is not None:
        raise UnfaceError(f"{source}: row {int(np.flatnonzero(nulls)[0])} has no vector; fill or drop such rows")
    said = (table.schema.metadata or {}).get(METADATA_KEY)
    return VectorFile(vectors, vector, None if said is None else space_from_json(said, source), table)


def write_vector_file(like: VectorFile, vectors: NDArray[np.float32], space: Space, path: Path) -> None:
    """Other vectors in the old ones' place, in half precision if these were, else in single."""
    narrow = vectors.astype(np.float16 if like.vectors.dtype == np.float16 else np.float32)
    if isinstance(like.whole, dict):
        with written_whole(path) as unfinished:
            _write_arrays({**like.whole, like.name: narrow}, unfinished)
        return
    column = pa.FixedSizeListArray.from_arrays(pa.array(narrow.reshape(-1)), narrow.shape[1])
    table = like.whole.set_column(like.whole.column_names.index(like.name), like.name, column)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), METADATA_KEY: space.to_json()})
    try:
        with written_whole(path) as unfinished:
            pq.write_table(table, unfinished, write_page_checksum=True)
    except pa.ArrowException as error:
        raise UnfaceError(f"{short_name(path)}: cannot be written ({reason(error)})") from None


def _write_arrays(arrays: dict[str, NDArray[np.generic]], path: Path) -> None:
    """As np.savez, which takes no array by the name of one of its own arguments, such as "file"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)
