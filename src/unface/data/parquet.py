"""Parquet files as Arrow tables, whole or in batches of rows, and embeddings written as Parquet."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data.arrow import chosen_columns, is_text, left_out, list_type, lists_of, words_of
from unface.data.collection import People, counted, of_people
from unface.data.embeddings import ERASED_KEY, METADATA_KEY, Columns, EmbeddingSet, require_same_space, space_from_json
from unface.data.files import kind_of, parquet_files, reason, short_name, written_whole
from unface.errors import UnfaceError
from unface.memory import beyond_memory, number_in_use, one_step, require_memory

# Far above what a real footer holds, far below what a corrupt one can claim.
_LONGEST_STRING = 64 << 20
_LONGEST_LIST = 8 << 20
# Without one (and with pre_buffer) pyarrow reads all of a row group, gigabytes of vectors, before its first row.
_BUFFER = 1 << 20
_ROW_GROUP_BYTES = 64 << 20
_ROWS_AT_ONCE = 1 << 16
_BATCH_BYTES = 64 << 20
_ROWS_OF_ANY_LENGTH = 1 << 12
_OBJECT_BYTES = 16


def read_parquet(
    path: Path, columns: Columns, held: int = 0, people: People | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """One file as a table; columns that cannot be labels are not even read, and named in the notes beside it.

    Refused once it needs more than the memory budget, of which ``held`` bytes are taken already. Of ``people`` alone,
    if they are given.
    """
    source = short_name(path)
    with opened_parquet(path, source) as file:
        schema = file.schema_arrow
        rows: int = file.metadata.num_rows
    wanted = chosen_columns(schema, columns, source)
    kind = list_type(schema.field(columns.vector).type)
    at_once = _ROWS_OF_ANY_LENGTH
    if pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        at_once = min(_ROWS_AT_ONCE, max(1, 8 * _BATCH_BYTES // max(1, kind.list_size * kind.value_type.bit_width)))
    if people is None and pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        _require_room(held + rows * kind.list_size * (kind.value_type.bit_width // 8 + number_in_use()), source)
    # As codes: a name that a million rows share is then held once, however long it is.
    names = [name for name in wanted if name != columns.id and is_text(schema.field(name).type)]

    def table_of(as_codes: Sequence[str]) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        there = held
        # Without a buffer, since with one a corrupt page may claim a gigabyte and get it.
        with opened_parquet(path, source, buffer=0, as_codes=as_codes) as file:
            for read in row_batches(file, source, at_once, wanted):
                columns_used = [_coded(read.column(name)) if name in names else read.column(name) for name in wanted]
                batch = pa.RecordBatch.from_arrays(columns_used, wanted)
                if people is not None and columns.identity is not None:
                    batch = of_people(batch, columns.identity, people, f"{source}: {columns.identity!r}")
                there += sum(_bytes_in_use(column) for column in batch.columns)
                _require_room(there, source)
                batches.append(batch)
            return pa.Table.from_batches(batches, batches[0].schema) if batches else file.read(columns=wanted)

    table = _in_codes_or_as_it_is(table_of, names)
    return table.replace_schema_metadata(schema.metadata), left_out(schema, table.column_names)


def parquet_people(paths: Sequence[Path], columns: Columns) -> Iterator[Counter[str]]:
    """The identities of some files with their rows, piece by piece; no vectors are read."""
    for path in paths:
        source = short_name(path)
        with opened_parquet(path, source) as file:
            chosen_columns(file.schema_arrow, columns, source)
            for batch in row_batches(file, source, _ROWS_AT_ONCE, [columns.identity or ""]):
                yield counted(batch.column(0), f"{source}: {columns.identity!r}")


def read_parquet_directory(
    directory: Path, columns: Columns, people: People | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """Every Parquet file of a directory, in sorted name order, as one table; they must agree in schema and space."""
    paths = parquet_files(directory)
    tables: list[pa.Table] = []
    notes: dict[str, None] = {}
    held = 0
    for path in paths:
        if kind_of(path) != "parquet":
            raise UnfaceError(
                f"{short_name(path)}: not a Parquet file by its first bytes; move it out of the directory"
            )
        table, skipped = read_parquet(path, columns, held, people)
        held += sum(_bytes_in_use(chunk) for column in table.columns for chunk in column.chunks)
        tables.append(table)
        notes.update(dict.fromkeys(skipped))
    first = tables[0]
    for path, table in zip(paths[1:], tables[1:], strict=True):
        _require_same(first.schema, table.schema, short_name(paths[0]), short_name(path))
    # By name: the order of columns and whether they may be null do not matter to us.
    names = first.column_names
    alike = [pa.Table.from_arrays([table.column(name) for name in names], names=names) for table in tables]
    return pa.concat_tables(alike).replace_schema_metadata(first.schema.metadata), tuple(notes)


@contextmanager
def opened_parquet(
    file: Path | pa.NativeFile, source: str, *, buffer: int = _BUFFER, as_codes: Sequence[str] = ()
) -> Iterator[pq.ParquetFile]:
    """A file whose footer was read; what fails while it is open is reported as a file that cannot be read.

    Columns of text in ``as_codes`` are read as dictionaries, so that a text that many rows share is held once.
    """
    try:
        with pq.ParquetFile(
            file,
            buffer_size=buffer,
            pre_buffer=False,
            thrift_string_size_limit=_LONGEST_STRING,
            thrift_container_size_limit=_LONGEST_LIST,
            page_checksum_verification=True,
            read_dictionary=list(as_codes) or None,
        ) as opened:
            _require_agreement(opened.metadata, source)
            yield opened
    except UnfaceError:
        raise
    except MemoryError:
        raise beyond_memory(source) from None
    # A corrupt file makes pyarrow raise nearly anything: OSError, ArrowException, MemoryError, OverflowError.
    except Exception as error:
        told = f"{source}: not a readable Parquet file ({reason(error)}); write or copy it again"
        raise _Unreadable(told) from None


class _Unreadable(UnfaceError):
    """Pyarrow could not decode it, or not in the way it was asked to."""


def _in_codes_or_as_it_is(read: Callable[[Sequence[str]], pa.Table], texts: Sequence[str]) -> pa.Table:
    """``read`` with columns of text as codes, or else as they are.

    Pyarrow cannot read texts as codes that are stored as differences, and says so only when it meets one: to ask the
    footer for the way they are stored would end the process where a footer is damaged.
    """
    try:
        return read(texts)
    except _Unreadable:
        return read(())


def row_batches(
    file: pq.ParquetFile,
    source: str,
    rows: int,
    columns: Sequence[str] | None = None,
    *,
    group: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """All rows in order, or those of one row group: at most so many at a time, some columns or all."""
    coming = file.iter_batches(rows, row_groups=None if group is None else [group], columns=columns, use_threads=False)
    there = 0
    while (batch := _decoded(coming)) is not None:
        there += batch.num_rows
        yield batch
        del batch  # a long one, before the next is decoded
    promised = file.metadata.num_rows if group is None else file.metadata.row_group(group).num_rows
    # Where fewer values are there than promised, pyarrow gives those and says nothing.
    if there != promised:
        raise UnfaceError(f"{source}: the footer promises {promised} rows, {there} are there; copy it again")


def read_columns(path: Path, source: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of all rows, texts as codes, refused once they need more than the memory budget."""
    with opened_parquet(path, source) as file:
        schema = file.schema_arrow

    def table_of(as_codes: Sequence[str]) -> pa.Table:
        batches, held = [], 0
        with opened_parquet(path, source, as_codes=as_codes) as file:
            for read in row_batches(file, source, _ROWS_AT_ONCE, columns):
                batch = pa.RecordBatch.from_arrays([_coded(column) for column in read.columns], read.schema.names)
                held += sum(_bytes_in_use(column) for column in batch.columns)
                _require_room(held, source)
                batches.append(batch)
            return pa.Table.from_batches(batches) if batches else file.read(columns=list(columns))

    return _in_codes_or_as_it_is(table_of, [name for name in columns if is_text(schema.field(name).type)])


def _decoded(coming: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    """The next rows: of texts, no header says beforehand how long they are."""
    with one_step():
        batch = next(coming, None)
        if batch is not None:
            # Or a corrupt dictionary index would be followed out of its array.
            batch.validate(full=True)
    return batch


def write_embeddings(
    embeddings: EmbeddingSet,
    path: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "float16"] = "float32",
    private: bool = False,
) -> None:
    """Columns id, identity, vector and the labels; replaces what is there, by a rename once all is written.

    A ``private`` file is readable by its owner alone.
    """
    target = Path(path)
    name = short_name(target)
    table = _table(embeddings, dtype, name)
    row_bytes = embeddings.vectors.shape[1] * np.dtype(dtype).itemsize
    try:
        with written_whole(target, private=private) as unfinished:
            pq.write_table(
                table,
                unfinished,
                row_group_size=max(1, _ROW_GROUP_BYTES // max(1, row_bytes)),
                # Vectors and ids do not repeat: a dictionary of them would only cost.
                use_dictionary=["identity", *(name for name, column in embeddings.labels.items() if column.ndim == 1)],
                write_statistics=["identity"],
                write_page_checksum=True,
            )
    except pa.ArrowException as error:
        raise UnfaceError(f"{name}: cannot be written ({reason(error)})") from None


def _require_same(a: pa.Schema, b: pa.Schema, a_name: str, b_name: str) -> None:
    here, there = ({(field.name, str(field.type)) for field in schema} for schema in (a, b))
    if here != there:
        name = min(here ^ there)[0]
        raise UnfaceError(f"{a_name} and {b_name} differ in column {name!r}; files of a directory need one schema")
    spaces = [(schema.metadata or {}).get(METADATA_KEY) for schema in (a, b)]
    if spaces[0] is not None and spaces[1] is not None:
        require_same_space(space_from_json(spaces[0], a_name), space_from_json(spaces[1], b_name))
    elif spaces[0] != spaces[1]:
        known, unknown = (a_name, b_name) if spaces[1] is None else (b_name, a_name)
        raise UnfaceError(f"{known} says which space it is in, {unknown} does not; two embedding spaces never mix")


def _require_agreement(metadata: pq.FileMetaData, source: str) -> None:
    """A flipped bit in the footer can promise 2^31 rows, for which pyarrow would reserve gigabytes before reading one.

    Never ask a row group for its ``column(…)`` here: on a corrupt footer pyarrow (26.0.1) then aborts the process.
    """
    groups = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    if groups != metadata.num_rows:
        raise UnfaceError(
            f"{source}: the footer promises {metadata.num_rows} rows, its row groups {groups}; copy it again"
        )


def _require_room(needed: int, source: str) -> None:
    require_memory(needed, source, "give fewer rows")


def _coded(column: pa.Array) -> pa.Array:
    """Texts as codes, with the words of these rows alone: pyarrow hands over those of all rows before them too."""
    if is_text(column.type) and not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return column
    codes = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(codes.indices, column.dictionary.take(codes.dictionary))


def _bytes_in_use(column: pa.Array) -> int:
    """As it is stored, and what is made of it: numbers in single precision, texts and codes as objects."""
    kind = list_type(column.type)
    if pa.types.is_nested(kind):
        return int(column.nbytes) + number_in_use() * len(lists_of(column).flatten())
    words = words_of(column)
    # As Python's texts, and joined and encoded for a hash: one letter beyond ASCII makes each take four bytes.
    copies = 9 if pc.all(pc.string_is_ascii(words)).as_py() is False else 3
    return int(column.nbytes) + copies * int(words.nbytes) + _OBJECT_BYTES * len(column)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _table(embeddings: EmbeddingSet, dtype: Literal["float32", "float16"], name: str) -> pa.Table:
    vectors = _narrowed(embeddings.vectors, name) if dtype == "float16" else embeddings.vectors
    codes = pa.array(embeddings.identities.astype(np.int32))
    columns = {
        "id": pa.array(embeddings.ids, type=pa.string()),
        "identity": pa.DictionaryArray.from_arrays(
            codes, pa.array(embeddings.names, type=pa.string())
        ).dictionary_decode(),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    for label, values in embeddings.labels.items():
        if label in columns:
            raise UnfaceError(f"{name}: a label is called {label!r}, which is a column of its own; rename it")
        try:
            flat = pa.array(values.reshape(-1))
            columns[label] = flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UnfaceError(f"{name}: label {label!r} cannot be written ({reason(error)})") from None
    described = {METADATA_KEY: embeddings.space.to_json()}
    if embeddings.erased is not None:
        described[ERASED_KEY] = embeddings.erased
    return pa.table(columns).replace_schema_metadata(described)


def _narrowed(vectors: NDArray[np.float32], name: str) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):
        narrow = vectors.astype(np.float16)
    if not np.isfinite(narrow).all():
        raise UnfaceError(f"{name}: float16 ends at 65504, a vector has {np.abs(vectors).max():.6g}; write float32")
    if not narrow.any(axis=1).all():
        row = int(np.flatnonzero(~narrow.any(axis=1))[0])
        raise UnfaceError(f"{name}: row {row} would be all zeros in float16; write float32")
    return narrow
