"""The one way Parquet is erased: pieces of some rows are read, erased and written, never a whole file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data import Space
from unface.data.arrow import list_type, lists_of, matrix_of
from unface.data.embeddings import ERASED_KEY, METADATA_KEY, OnBadRows, space_from_json
from unface.data.parquet import opened_parquet, row_batches
from unface.erase import Projection
from unface.erase.kernel import ErasedRows
from unface.errors import UnfaceError, reason
from unface.memory import beyond_memory, one_step
from unface.output.place import Sink
from unface.scale.executor import overlapped
from unface.scale.released import bad_rows, erased_by, is_named, released_space, require_dim, require_raw
from unface.threads import one_blas_thread

_BATCH_BYTES = 16 << 20
# Decoded: what is written as one row group, at most. Encoded it is a part of that, by which rows_at_once goes.
_GROUP_BYTES = 4 * _BATCH_BYTES
# What is read and erased at once. The memory of larger pieces goes back to the system each time, which clears it before
# it is lent out again: a seventh of all CPU time at 16 MB.
_PIECE_BYTES = 2 << 20
# A page is encoded, summed, hashed and written one after the other, and stays in a core's own cache meanwhile.
_PAGE_BYTES = 1 << 18
# Values at a time; what pyarrow takes by default are two vectors of 512.
_VALUES = 1 << 14
_ROWS_OF_ANY_LENGTH = 1 << 12
NO_IDS: NDArray[np.object_] = np.empty(0, object)
"""For matrix_of, which names ids in its errors: here lengths are checked before."""


@dataclass(frozen=True)
class Erased:
    """What was done; ``named`` is whether the file names the encoder it is from."""

    rows: int
    """Vectors that were erased."""
    degenerate: int
    named: bool
    not_faces: int = 0
    bad: int = 0
    """Rows whose vector is null, NaN or Inf: left out, or now without a vector."""


def erase_parquet(
    projection: Projection,
    file: Path | pa.NativeFile,
    source: str,
    sink: Sink,
    vector: str,
    threads: int,
    *,
    ahead: bool = True,
    on_bad: OnBadRows = "fail",
) -> Erased:
    """Every column, row and word of metadata of ``file`` into ``sink``, with the vectors erased.

    Bad rows are refused, left out, or written with a null in the place of their vector, as ``on_bad`` says.
    Not ``ahead``, one thread reads, erases and writes in turn, and what it takes and gives back stays in its cache.
    """
    with opened_parquet(file, source) as opened, one_blas_thread():
        schema = opened.schema_arrow
        space = checked_space(projection, schema, vector, source)
        released = _released_schema(projection, schema, vector, space, nulls=on_bad == "null")
        group = rows_at_once(opened, projection.dim)
        piece = min(group, max(1, _PIECE_BYTES // (4 * projection.dim)), _most_rows(schema, vector))
        given = row_batches(opened, source, piece)
        work = partial(_erased_batch, projection, released, vector, source, on_bad)
        numbered = _numbered(given)
        pieces = overlapped(numbered, work, threads, lambda one: is_large(one[1])) if ahead else map(work, numbered)
        rows = degenerate = not_faces = bad = first_bad = left = 0
        with row_groups(sink, released, vector, group, source) as groups:
            for batch, done, unusable in pieces:
                left += unusable
                if len(done.bad):
                    first_bad = first_bad if bad else rows + int(done.bad[0])
                    bad += len(done.bad)
                # After a bad row the others are only counted.
                if not bad:
                    groups.add(batch)
                del batch
                rows += len(done.vectors)
                degenerate += done.degenerate
                not_faces += done.not_faces
            if bad:
                raise bad_rows(source, first_bad, bad, "repair such rows, or pass --bad-rows drop or null")
    return Erased(rows, degenerate, is_named(space), not_faces, left)


def checked_space(projection: Projection, schema: pa.Schema, vector: str, source: str) -> Space | None:
    """The space that a file says it is in; refuses one that the projection is not for, from its schema alone."""
    if vector not in schema.names:
        raise UnfaceError(
            f"{source}: has no column {vector!r}; there are {', '.join(schema.names)}: name yours with --vector-column"
        )
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise UnfaceError(f"{source}: two columns are called {name!r}; rename one")
    text = (schema.metadata or {}).get(METADATA_KEY)
    space = None if text is None else space_from_json(text, source)
    require_raw(projection, space)
    kind = list_type(schema.field(vector).type)
    matrix_of(pa.chunked_array([], kind), NO_IDS, source, vector)
    if pa.types.is_fixed_size_list(kind):
        require_dim(projection, kind.list_size, source)
    return space


def batch_rows(dim: int) -> int:
    """Rows of a batch, so that its vectors are some tens of megabytes."""
    return max(1, _BATCH_BYTES // (4 * dim))


def rows_at_once(file: pq.ParquetFile, dim: int) -> int:
    """The same where all columns are read: fewer if there are pictures or pages of text beside the vectors."""
    groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
    row_bytes: int = sum(group.total_byte_size for group in groups) // max(1, file.metadata.num_rows)
    return max(1, min(batch_rows(dim), 2 * _BATCH_BYTES // max(1, row_bytes)))


def _most_rows(schema: pa.Schema, vector: str) -> int:
    """Rows of a piece: few where other columns may be of any length, as texts and pictures are.

    How long they are no footer says: a dictionary of one long text stands for a million rows in a few bytes.
    """
    others = (field.type for field in schema if field.name != vector)
    return _ROWS_OF_ANY_LENGTH if any(not _has_fixed_width(kind) for kind in others) else 1 << 20


def _has_fixed_width(kind: pa.DataType) -> bool:
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def batch_vectors(batch: pa.RecordBatch, vector: str, dim: int, source: str, first: int) -> NDArray[np.generic]:
    """(n, dim) of a batch whose first row is number ``first`` of its file; a view of Arrow's memory if it can be."""
    column = lists_of(batch.column(vector))
    require_length(column, vector, dim, source, first)
    vectors, nulls = matrix_of(pa.chunked_array([column]), NO_IDS, source, vector)
    if nulls is not None:
        row = first + int(np.argmax(nulls))
        raise UnfaceError(f"{source}: row {row} has no vector; fill such rows, or pass --bad-rows drop or null")
    # A batch of nothing has lists of no known length.
    return vectors.reshape(len(column), dim)


def usable(batch: pa.RecordBatch, vector: str, dim: int, source: str, first: int) -> NDArray[np.bool_]:
    """(n,) rows of a batch whose vector is there and finite."""
    column = lists_of(batch.column(vector))
    require_length(column, vector, dim, source, first)
    vectors, nulls = matrix_of(pa.chunked_array([column]), NO_IDS, source, vector)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = vectors.reshape(len(column), dim).astype(np.float32, copy=False)
        good: NDArray[np.bool_] = np.asarray(np.isfinite(numbers).all(axis=1))
    return good if nulls is None else good & ~nulls


def require_length(column: pa.Array, vector: str, dim: int, source: str, first: int) -> None:
    """Refuse lists of another length."""
    if pa.types.is_fixed_size_list(column.type) and column.type.list_size == dim:
        return
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column).cast(pa.int64()), dim))
    if (lengths != dim).any():
        row = int(np.argmax(lengths != dim))
        raise UnfaceError(f"{source}: row {first + row} has {lengths[row]} numbers in {vector!r}; expected {dim}")


def _erased_batch(
    projection: Projection,
    schema: pa.Schema,
    vector: str,
    source: str,
    on_bad: OnBadRows,
    given: tuple[int, pa.RecordBatch],
) -> tuple[pa.RecordBatch, ErasedRows, int]:
    """The batch as it is written, what became of its vectors, and how many of its rows are bad."""
    first, whole = given
    batch, good = whole, None
    if on_bad != "fail":
        good = usable(whole, vector, projection.dim, source, first)
        batch = whole if good.all() else whole.filter(pa.array(good))
    done = projection.kernel.rows(batch_vectors(batch, vector, projection.dim, source, first), threads=1)
    kind = schema.field(vector).type
    numbers = _narrowed(done, kind.value_type, source, first)
    bad = whole.num_rows - batch.num_rows
    if bad and on_bad == "null" and good is not None:
        batch, spread = whole, np.zeros((len(good), numbers.shape[1]), numbers.dtype)
        spread[good] = numbers
        column = pa.FixedSizeListArray.from_arrays(pa.array(spread.reshape(-1)), type=kind, mask=pa.array(~good))
    else:
        column = pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), type=kind)
    columns = [column if name == vector else batch.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema), done, bad


def _narrowed(done: ErasedRows, number: pa.DataType, source: str, first: int) -> NDArray[np.floating]:
    """In the type they are stored in. An oblique projection that does not normalise may lengthen vectors."""
    with np.errstate(over="ignore"):
        numbers = done.vectors.astype(number.to_pandas_dtype(), copy=False)
    if number == pa.float16() and not len(done.bad) and not (fits := np.isfinite(numbers).all(axis=1)).all():
        raise UnfaceError(
            f"{source}: row {first + int(np.argmin(fits))} no longer fits into half precision once it is erased; "
            "store the vectors in single precision"
        )
    return numbers


def _released_schema(
    projection: Projection, schema: pa.Schema, vector: str, space: Space | None, *, nulls: bool
) -> pa.Schema:
    """The same with vectors of one length, in half precision if they were, else in single."""
    index = schema.get_field_index(vector)
    field = schema.field(index)
    number = pa.float16() if field.type.value_type == pa.float16() else pa.float32()
    dim = projection.released_dim
    if not (
        pa.types.is_fixed_size_list(field.type) and field.type.value_type == number and field.type.list_size == dim
    ):
        field = field.with_type(pa.list_(number, dim))
    if nulls:
        field = field.with_nullable(True)
    metadata = {
        **(schema.metadata or {}),
        METADATA_KEY: released_space(projection, space).to_json(),
        ERASED_KEY: erased_by(projection),
    }
    return schema.set(index, field).with_metadata(metadata)


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for batch in batches:
        rows = batch.num_rows
        yield first, batch
        del batch
        first += rows


def is_large(batch: pa.RecordBatch) -> bool:
    """Its texts or pictures are so long that several batches like it would take much of the memory."""
    return bool(batch.nbytes > 2 * _BATCH_BYTES)


class RowGroups:
    """Batches in, row groups of at most so many rows and some tens of megabytes out; a single batch may be larger."""

    def __init__(self, writer: pq.ParquetWriter, rows: int) -> None:
        self._writer, self._rows = writer, rows
        self._waiting: list[pa.RecordBatch] = []
        self._held = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if self._held + batch.num_rows > self._rows or self._bytes + batch.nbytes > _GROUP_BYTES:
            self.flush()
        self._waiting.append(batch)
        self._held += batch.num_rows
        self._bytes += batch.nbytes
        if self._bytes > _GROUP_BYTES:
            del batch
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            with one_step():  # a dictionary that is too long is written out row by row
                self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._held, self._bytes = [], 0, 0


@contextmanager
def row_groups(sink: Sink, schema: pa.Schema, vector: str, rows: int, source: str) -> Iterator[RowGroups]:
    """To add batches to; all of them are in ``sink`` at the end."""
    try:
        # Vectors are noise: neither a dictionary nor compression finds anything in them, and both cost time.
        others = [path for path in _leaves(schema) if path != f"{vector}.list.element"]
        with pq.ParquetWriter(
            sink,
            schema,
            use_dictionary=others,
            compression=dict.fromkeys(others, "snappy"),
            write_statistics=others,
            write_page_checksum=True,
            write_batch_size=_VALUES,
            data_page_size=_PAGE_BYTES,
        ) as writer:
            groups = RowGroups(writer, rows)
            yield groups
            groups.flush()
    except MemoryError:
        raise beyond_memory(source) from None
    except pa.ArrowException as error:
        raise UnfaceError(f"{source}: its copy cannot be written ({reason(error)})") from None


def _leaves(schema: pa.Schema) -> list[str]:
    """What Parquet calls the columns that are written, which for nested ones only writing tells."""
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    written = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    return [written.column(number).path for number in range(len(written))]
