"""read_embeddings: one function for files, directories, tables and arrays; NumPy archives are read here too.

Nothing in an .npz file is ever unpickled, and no header is trusted before its size is checked.
"""

import os
import zipfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from unface.memory import beyond_memory, require_memory

Arrays = dict[str, NDArray[np.generic]]
_BYTES_PER_TEXT = 64  # of a Python string and the places that hold it
_COPIED_BYTES = 1 << 20
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


@dataclass(frozen=True)
class VectorArchive:
    """An open .npz file of which one array holds vectors: read some rows at a time, or whole if stored by columns."""

    name: str
    rows: int
    dim: int
    dtype: np.dtype[np.generic]
    _archive: "np.lib.npyio.NpzFile"
    _source: str

    def blocks(self, rows: int) -> Iterator[NDArray[np.generic]]:
        """(at most ``rows``, d) of the type that is stored, in order."""
        with _reading(self._source), self._member(self.name) as file:
            (_, _), by_column, _ = _header(file, self.name, self._source)
            if by_column:
                held = self.rows * self.dim * self.dtype.itemsize
                require_memory(held, self._source, "write it as Parquet, which is read in pieces")
        if by_column:
            with _reading(self._source):
                array = self._archive[self.name]
            yield from (array[start : start + rows] for start in range(0, self.rows, rows))
            return
        with self._member(self.name) as file:
            with _reading(self._source):
                _header(file, self.name, self._source)
            for start in range(0, self.rows, rows):
                count = min(rows, self.rows - start)
                with _reading(self._source):
                    content = file.read(count * self.dim * self.dtype.itemsize)
                    block = np.frombuffer(content, self.dtype).reshape(count, self.dim)
                yield block

    def write(self, path: Path, vectors: Iterator[NDArray[np.float32]], dim: int) -> None:
        """The archive with these vectors (rows, ``dim``), in half precision if they were stored so, else in single."""
        number = np.dtype(np.float16 if self.dtype == np.float16 else np.float32)
        # As np.savez, which takes no array by the name of one of its own arguments, such as "file".
        with zipfile.ZipFile(path, "w") as copy:
            for known in self._archive.files:
                with copy.open(f"{known}.npy", "w", force_zip64=True) as member:
                    if known == self.name:
                        shape = {"descr": number.str, "fortran_order": False, "shape": (self.rows, dim)}
                        npy.write_array_header_1_0(cast(BinaryIO, member), shape)
                        for block in vectors:
                            member.write(np.ascontiguousarray(block, number).data.cast("B"))
                        continue
                    with self._member(known) as file:
                        while content := self._read(file):
                            member.write(content)

    def _member(self, name: str) -> BinaryIO:
        with _reading(self._source):
            files = cast(zipfile.ZipFile, self._archive.zip)
            return cast(BinaryIO, files.open(_member_of(files, name)))

    def _read(self, file: BinaryIO) -> bytes:
        with _reading(self._source):
            return file.read(_COPIED_BYTES)


@contextmanager
def opened_archive(path: Path, vector: str = "vector") -> Iterator[VectorArchive]:
    """An archive whose headers were checked; no identity is needed."""
    source = short_name(path)
    with ExitStack() as stack:
        with _reading(source):
            archive = stack.enter_context(_loaded(stack.enter_context(path.open("rb")), source))
            name = _array_name(archive.files, vector, "vectors", source)
            for known in archive.files:
                _declared_bytes(archive, known, source)
            files = cast(zipfile.ZipFile, archive.zip)
            with files.open(_member_of(files, name)) as file:
                shape, _, dtype = _header(cast(BinaryIO, file), name, source)
        if len(shape) != 2 or dtype.kind not in "fiu":
            raise UnfaceError(f"{source}: {name!r} holds {dtype} of shape {shape}; expected numbers (n, d)")
        yield VectorArchive(name, *shape, dtype, archive, source)


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
    # Our own handle: np.load leaves the file open when it fails on one it opened itself.
    with _reading(source), path.open("rb") as file, _loaded(file, source) as archive:
        needed = sum(_declared_bytes(archive, name, source) for name in archive.files)
        require_memory(needed, source, "write it as Parquet, which is read in pieces")
        return {name: archive[name] for name in archive.files}


def _loaded(file: BinaryIO, source: str) -> "np.lib.npyio.NpzFile":
    archive: np.lib.npyio.NpzFile = np.load(file, allow_pickle=False)
    members = cast(zipfile.ZipFile, archive.zip).namelist()
    if members and not any(member.endswith(".npy") for member in members):
        raise UnfaceError(f"{source}: not a readable .npz file (no array in it); for pictures name an --encoder")
    return archive


@contextmanager
def _reading(source: str) -> Iterator[None]:
    try:
        yield
    except UnfaceError:
        raise
    except MemoryError:
        raise beyond_memory(source) from None
    # A corrupt archive makes zipfile, zlib and numpy's header parser raise nearly anything.
    except Exception as error:
        raise UnfaceError(f"{source}: not a readable .npz file ({reason(error)}); write or copy it again") from None


def _member_of(files: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    return files.getinfo(name if name in files.namelist() else f"{name}.npy")


def _declared_bytes(archive: "np.lib.npyio.NpzFile", name: str, source: str) -> int:
    """Memory that an array takes in use, from its header; refuses what the bytes of the file cannot hold."""
    files = cast(zipfile.ZipFile, archive.zip)
    info = _member_of(files, name)
    with files.open(info) as file:
        shape, _, dtype = _header(cast(BinaryIO, file), name, source)
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
    # As it is stored, and twice in single precision: checked and normalised.
    return count * (dtype.itemsize + (8 if dtype.kind in "fiu" else 0))


def _header(file: BinaryIO, name: str, source: str) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """The shape, whether columns come one after the other, and the type."""
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, by_column, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_column, dtype = npy.read_array_header_2_0(file)
    else:  # (3, 0) exists for record types alone
        raise UnfaceError(f"{source}: {name!r} has .npy version {version[0]}.{version[1]}; expected a plain array")
    return shape, by_column, dtype


def _array_name(arrays: Collection[str], asked: str, usual: str, source: str) -> str:
    """The name asked for; the usual one where that is a default and not there."""
    default = asked in (Columns.vector, Columns.identity, Columns.id)
    for name in (asked, usual) if default else (asked,):
        if name in arrays:
            return name
    there = ", ".join(repr(name) for name in arrays) or "no arrays"
    wanted = f"{asked!r} or {usual!r}" if default else repr(asked)
    raise UnfaceError(f"{source}: no array {wanted}; there is {there}")
