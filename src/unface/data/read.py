"""read_embeddings: one function for files, directories, tables and arrays; NumPy archives are read here too.

Nothing in an .npz file is ever unpickled, and no header is trusted before its size is checked.
"""

import os
import zipfile
from collections.abc import Callable, Iterator
from collections.abc import Collection as Names
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from unface.data.arrow import TABLE, rows_of_table
from unface.data.collection import Collection, of_counts, read_collection, sample_note, sampled_people
from unface.data.embeddings import Columns, EmbeddingSet, RawRows, as_text, row_numbers, rows_taken
from unface.data.files import kind_of, parquet_files, reason, short_name
from unface.data.parquet import parquet_people, read_parquet, read_parquet_directory
from unface.errors import MissingColumn, UnfaceError
from unface.memory import beyond_memory, number_in_use, require_memory

Arrays = dict[str, NDArray[np.generic]]
Reading = Callable[[str, Columns], AbstractContextManager[Collection]]
_STORES = ("postgresql", "postgres", "lancedb", "qdrant", "qdrant+http", "qdrant+https", "faiss", "npy")
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
    bad_rows: str = "fail",
    sample: int | None = None,
    seed: int = 0,
) -> EmbeddingSet:
    """A checked set from a file, a directory of Parquet files, a store's URL, a table, or (vectors, identities).

    ``vector``, ``identity`` and ``id`` name the columns; without an id column, rows are numbered. With
    ``identity=None`` none is looked for. ``context`` names a second column of vectors to keep as a label; other nested
    columns are left out.
    Bad rows (null, NaN, Inf, all zeros, no identity) are refused (``bad_rows="fail"``), or left out and counted in
    ``notes`` ("drop", or "null", which is the same here). With ``sample`` only so many people with at least two rows
    are read, drawn with ``seed``.
    A store is read and never changed: ``postgresql://host/db?table=faces``, ``lancedb:``, ``qdrant:``, ``faiss:``,
    ``npy:``; its URL names the column of vectors.
    """
    columns = Columns(vector=vector, identity=identity, id=id, context=context)
    if isinstance(source, EmbeddingSet):
        return source if sample is None else _sampled_set(source, sample, seed)
    if isinstance(source, tuple):
        if len(source) != 2:
            raise UnfaceError(f"arrays: a tuple of {len(source)} parts; expected (vectors, identities)")
        whole = EmbeddingSet.from_arrays(*source, bad_rows=bad_rows, columns=columns)
        return whole if sample is None else _sampled_set(whole, sample, seed)
    if isinstance(source, str) and is_store(source):
        raw = _rows_of_store(source, columns, sample, seed)
    elif isinstance(source, str | os.PathLike):
        raw = _rows_of_path(Path(source), columns, sample, seed)
    elif isinstance(source, ArrowTable):
        raw = _rows_of_stream(source, columns)
    else:
        raise UnfaceError(
            f"{type(source).__name__} is not a source of embeddings; expected a path, an Arrow table, a data frame,"
            " or (vectors, identities)"
        )
    if sample is not None:
        raw = _sampled(raw, sample, seed)
    return EmbeddingSet.from_raw(raw, bad_rows=bad_rows)


def is_store(source: str) -> bool:
    """Whether a text is the URL of a store."""
    scheme, colon, _ = source.partition(":")
    scheme = scheme.lower()
    return bool(colon) and (scheme in _STORES or scheme in entry_points(group="unface.stores").names)


def _rows_of_store(url: str, columns: Columns, sample: int | None, seed: int) -> RawRows:
    # By name: stores know of data, and not the other way round.
    reading: Reading = import_module("unface.stores").open_collection
    with reading(url, columns) as collection:
        return read_collection(collection, sample, seed)


def _sampled(raw: RawRows, number: int, seed: int) -> RawRows:
    """The rows of a sample, which some readers have drawn already."""
    if raw.columns.identity is None:
        raise UnfaceError(f"{raw.source}: --sample draws people, and no identities are read here; leave it out")
    people = sampled_people(of_counts(raw.identities), number, seed, raw.source)
    keep = np.array([name in people for name in raw.identities], dtype=bool)
    note = sample_note(number, len(people), seed)
    return replace(rows_taken(raw, keep), notes=(*raw.notes, note), sample=number)


def _sampled_set(whole: EmbeddingSet, number: int, seed: int) -> EmbeddingSet:
    names = np.array(whole.names, dtype=object)[whole.identities]
    people = sampled_people(of_counts(names), number, seed, whole.source)
    note = sample_note(number, len(people), seed)
    some = whole.take(np.array([name in people for name in names], dtype=bool))
    return replace(some, notes=(*whole.notes, note), sample=number)


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


def _rows_of_path(path: Path, columns: Columns, sample: int | None, seed: int) -> RawRows:
    kind = kind_of(path)
    if kind == "npz":
        return _read_npz(path, columns)
    people = None
    if sample is not None and columns.identity is not None:
        files = [path] if kind == "parquet" else parquet_files(path)
        people = sampled_people(partial(parquet_people, files, columns), sample, seed, short_name(path))
    if kind == "parquet":
        table, notes = read_parquet(path, columns, people=people)
    else:
        table, notes = read_parquet_directory(path, columns, people=people)
    return rows_of_table(table, columns, short_name(path), notes)


def _rows_of_stream(source: ArrowTable, columns: Columns) -> RawRows:
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnfaceError(f"table: cannot be read as Arrow ({reason(error)})") from None
    return rows_of_table(table, columns, TABLE)


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
    return count * (dtype.itemsize + (number_in_use() if dtype.kind in "fiu" else 0))


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


def _array_name(arrays: Names[str], asked: str, usual: str, source: str) -> str:
    """The name asked for; the usual one where that is a default and not there."""
    default = asked in (Columns.vector, Columns.identity, Columns.id)
    for name in (asked, usual) if default else (asked,):
        if name in arrays:
            return name
    there = ", ".join(repr(name) for name in arrays) or "no arrays"
    wanted = f"{asked!r} or {usual!r}" if default else repr(asked)
    raise MissingColumn(f"{source}: no array {wanted}; there is {there}", asked)
