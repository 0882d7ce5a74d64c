"""read_embeddings: one function for files, directories, tables and arrays; NumPy archives are read here too.

Nothing in an .npz file is ever unpickled, and no header is trusted before its size is checked.
"""

import os
import zipfile
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from unface.data.arrow import rows_of_table
from unface.data.embeddings import Columns, EmbeddingSet, RawRows, as_text, row_numbers
from unface.data.files import kind_of, reason, short_name
from unface.data.parquet import read_parquet, read_parquet_directory
from unface.errors import UnfaceError
from unface.memory import require_memory

Arrays = dict[str, NDArray[np.generic]]
_BYTES_PER_TEXT = 64  # of a Python string and the places that hold it
_BEST_DEFLATE = 1032  # deflate cannot shrink further; a directory that promises more is corrupt


@runtime_checkable
class ArrowTable(Protocol):
    """Anything that streams Arrow: pyarrow, pandas and polars do, and none of the latter is imported."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = str | os.PathLike[str] | ArrowTable | tuple[ArrayLike, ArrayLike] | EmbeddingSet


def read_embeddings(
    source: Source,
    *,
    vector: str = "vector",
    identity: str | None = "identity",
    id: str = "id",
    context: str | None = None,
    skip_bad_rows: bool = False,
) -> EmbeddingSet:
    """A checked set from a Parquet or .npz file, a directory of Parquet files, a table, or (vectors, identities).

    ``vector``, ``identity`` and ``id`` name the columns; without an id column, rows are numbered. With
    ``identity=None`` none is looked for. ``context`` names a second column of vectors to keep as a label; other nested
    columns are left out.
    Bad rows (null, NaN, Inf, all zeros, no identity) are refused, or dropped and counted in ``notes``.
    """
    columns = Columns(vector=vector, identity=identity, id=id, context=context)
    if isinstance(source, EmbeddingSet):
        return source
    if isinstance(source, tuple):
        if len(source) != 2:
            raise UnfaceError(f"arrays: a tuple of {len(source)} parts; expected (vectors, identities)")
        return EmbeddingSet.from_arrays(*source, skip_bad_rows=skip_bad_rows, columns=columns)
    if isinstance(source, str | os.PathLike):
        raw = _rows_of_path(Path(source), columns)
    elif isinstance(source, ArrowTable):
        raw = _rows_of_stream(source, columns)
    else:
        raise UnfaceError(
            f"{type(source).__name__} is not a source of embeddings; expected a path, an Arrow table, a data frame,"
            " or (vectors, identities)"
        )
    return EmbeddingSet.from_raw(raw, skip_bad_rows=skip_bad_rows)


def read_vector_arrays(path: Path, vector: str = "vector") -> tuple[str, Arrays]:
    """All arrays and the name of the one that holds vectors; no identity is needed."""
    source, arrays = short_name(path), _read_arrays(path)
    name = _array_name(arrays, vector, "vectors", source)
    held = arrays[name]
    if held.ndim != 2 or held.dtype.kind not in "fiu":
        raise UnfaceError(f"{source}: {name!r} holds {held.dtype} of shape {held.shape}; expected numbers (n, d)")
    return name, arrays


def write_vector_arrays(arrays: Arrays, name: str, vectors: NDArray[np.float32], path: Path) -> None:
    """Write the arrays with ``name`` replaced: in half precision if it was stored so, else in single."""
    narrow = vectors.astype(np.float16 if arrays[name].dtype == np.float16 else np.float32)
    # As np.savez, which takes no array by the name of one of its own arguments, such as "file".
    with zipfile.ZipFile(path, "w") as archive:
        for known, array in {**arrays, name: narrow}.items():
            with archive.open(f"{known}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _rows_of_path(path: Path, columns: Columns) -> RawRows:
    kind = kind_of(path)
    if kind == "npz":
        return _read_npz(path, columns)
    table, notes = read_parquet(path, columns) if kind == "parquet" else read_parquet_directory(path, columns)
    return rows_of_table(table, columns, short_name(path), notes)


def _rows_of_stream(source: ArrowTable, columns: Columns) -> RawRows:
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnfaceError(f"table: cannot be read as Arrow ({reason(error)})") from None
    return rows_of_table(table, columns, "table")


def _read_npz(path: Path, columns: Columns) -> RawRows:
    """Arrays ``vectors``, ``identities`` and maybe ``ids``, or called as the options say; others are labels."""
    source = short_name(path)
    arrays = _read_arrays(path)
    vector = _array_name(arrays, columns.vector, "vectors", source)
    identity = None if columns.identity is None else _array_name(arrays, columns.identity, "identities", source)
    row_id = next((name for name in (Columns.id, "ids") if name in arrays), "ids")
    if columns.id != Columns.id:
        row_id = _array_name(arrays, columns.id, "ids", source)
    vectors = arrays[vector]
    count = len(vectors) if vectors.ndim else 0
    others = {name: array for name, array in arrays.items() if name not in (vector, identity, row_id)}
    labels = {name: array for name, array in others.items() if array.shape[:1] == (count,)}
    return RawRows(
        source=source,
        columns=Columns(vector, identity, row_id),
        vectors=vectors,
        identities=row_numbers(count) if identity is None else as_text(arrays[identity], f"{source}: {identity!r}"),
        ids=as_text(arrays[row_id], f"{source}: {row_id!r}") if row_id in arrays else row_numbers(count),
        labels=labels,
        notes=tuple(f"array {name!r} left out: shape {others[name].shape}" for name in others if name not in labels),
    )


def _read_arrays(path: Path) -> Arrays:
    """Every array of an archive."""
    source = short_name(path)
    try:
        # Our own handle: np.load leaves the file open when it fails on one it opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            members = cast(zipfile.ZipFile, archive.zip).namelist()
            if members and not any(member.endswith(".npy") for member in members):
                raise UnfaceError(
                    f"{source}: not a readable .npz file (no array in it); for pictures name an --encoder"
                )
            needed = sum(_declared_bytes(archive, name, source) for name in archive.files)
            require_memory(needed, source, "write it as Parquet, which is read in pieces")
            return {name: archive[name] for name in archive.files}
    except UnfaceError:
        raise
    # A corrupt archive makes zipfile, zlib, numpy's header parser and the allocator raise nearly anything.
    except Exception as error:
        raise UnfaceError(f"{source}: not a readable .npz file ({reason(error)}); write or copy it again") from None


def _declared_bytes(archive: "np.lib.npyio.NpzFile", name: str, source: str) -> int:
    """Memory that an array takes in use, from its header; refuses what the bytes of the file cannot hold."""
    files = cast(zipfile.ZipFile, archive.zip)
    info = files.getinfo(name if name in files.namelist() else f"{name}.npy")
    with files.open(info) as file:
        shape, dtype = _header(cast(BinaryIO, file), name, source)
        header = file.tell()
    if dtype.hasobject:
        raise UnfaceError(f"{source}: {name!r} is an object array, never unpickled; save it as {name}.astype(str)")
    count = 1
    for length in shape:
        count *= length
    possible = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else _BEST_DEFLATE)
    if min(shape, default=0) < 0 or header + count * dtype.itemsize != info.file_size or info.file_size > possible:
        raise UnfaceError(
            f"{source}: {name!r} promises shape {shape}, which its bytes do not hold; copy the file again"
        )
    if len(shape) == 1:
        return count * (dtype.itemsize + _BYTES_PER_TEXT)
    # As it is stored, and twice in single precision: checked or erased, and normalised or written.
    return count * (dtype.itemsize + (8 if dtype.kind in "fiu" else 0))


def _header(file: BinaryIO, name: str, source: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(file)
    else:  # (3, 0) exists for record types alone
        raise UnfaceError(f"{source}: {name!r} has .npy version {version[0]}.{version[1]}; expected a plain array")
    return shape, dtype


def _array_name(arrays: Arrays, asked: str, usual: str, source: str) -> str:
    """The name asked for; the usual one where that is a default and not there."""
    default = asked in (Columns.vector, Columns.identity, Columns.id)
    for name in (asked, usual) if default else (asked,):
        if name in arrays:
            return name
    there = ", ".join(repr(name) for name in arrays) or "no arrays"
    wanted = f"{asked!r} or {usual!r}" if default else repr(asked)
    raise UnfaceError(f"{source}: no array {wanted}; there is {there}")
