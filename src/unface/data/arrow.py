"""Arrow tables (pyarrow, pandas, polars, Parquet) as raw rows; vectors never pass through Python objects."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unface.data.embeddings import (
    ERASED_KEY,
    METADATA_KEY,
    Columns,
    RawRows,
    as_text,
    object_array,
    row_numbers,
    space_from_json,
)
from unface.data.files import reason
from unface.errors import MissingColumn, UnfaceError

_LONGEST_LABEL = 1 << 16
"""Bytes of a text: longer ones are documents."""
# pandas hands its index over under this name; it is not a column of the user's.
_PANDAS_INDEX = "__index_level_"


TABLE = "table"
"""The name of a table in memory."""


def rows_of_table(table: pa.Table, columns: Columns, source: str, notes: tuple[str, ...] = ()) -> RawRows:
    """The vector, identity and id columns and all flat others; ids default to row numbers."""
    wanted = chosen_columns(table.schema, columns, source)
    described = (table.schema.metadata or {}).get(METADATA_KEY)
    if columns.id in wanted:
        ids = text_of(table.column(columns.id), f"{source}: {columns.id!r}")
    else:
        ids = row_numbers(table.num_rows)
    vectors, nulls = matrix_of(table.column(columns.vector), ids, source, columns.vector)
    others = [name for name in wanted if name not in (columns.vector, columns.identity, columns.id)]
    labels = [name for name in others if _longest(table.column(name)) <= _LONGEST_LABEL]
    long = tuple(
        f"column {name!r} left out: its texts are too long for labels" for name in others if name not in labels
    )
    return RawRows(
        source=source,
        columns=columns,
        vectors=vectors,
        identities=(
            row_numbers(table.num_rows)
            if columns.identity is None
            else text_of(table.column(columns.identity), f"{source}: {columns.identity!r}")
        ),
        ids=ids,
        labels={name: _label(table.column(name), ids, source, name) for name in labels},
        nulls=nulls,
        space=None if described is None else space_from_json(described, source),
        notes=(*notes, *left_out(table.schema, wanted), *long),
        erased=(table.schema.metadata or {}).get(ERASED_KEY, b"").decode(errors="replace") or None,
    )


def chosen_columns(schema: pa.Schema, columns: Columns, source: str) -> list[str]:
    """The names of the columns we read; says what there is when one is missing."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise UnfaceError(f"{source}: two columns are called {name!r}; rename one")
    asked = {"--vector-column": columns.vector, "--context": columns.context}
    asked["--id-column"] = columns.id if columns.id != Columns.id else None  # without the usual one rows are numbered
    asked["--identity-column"] = columns.identity
    missing = {option: name for option, name in asked.items() if name is not None and name not in schema.names}
    if missing:
        there = ", ".join(repr(known) for known in schema.names) or "no columns"
        names, options = " or ".join(map(repr, missing.values())), " and ".join(missing)
        if source == TABLE:  # from Python, where there are no options
            given = ", ".join(f"{option.removeprefix('--').removesuffix('-column')}=…" for option in missing)
            options = f"read_embeddings(table, {given})"
        text = f"{source}: no column {names}; there is {there}: name yours with {options}"
        raise MissingColumn(text, next(iter(missing.values())))
    ours = (columns.vector, columns.identity, columns.id, columns.context)
    return [field.name for field in schema if field.name in ours or _is_label(field.name, field.type)]


def left_out(schema: pa.Schema, wanted: list[str]) -> tuple[str, ...]:
    """A note for each column that is not read: nested ones, pictures, and what else is not one plain value."""
    others = [field for field in schema if field.name not in wanted and not field.name.startswith(_PANDAS_INDEX)]
    return tuple(f"column {field.name!r} left out: {field.type} is not a label" for field in others)


def matrix_of(
    column: pa.ChunkedArray, ids: NDArray[np.object_], source: str, name: str
) -> tuple[NDArray[np.generic], NDArray[np.bool_] | None]:
    """(n, d) of the column's own number type, and which rows are null or hold a null (their numbers mean nothing)."""
    if _is_tensor(column.type):
        if len(column.type.shape) != 1:
            shape = tuple(column.type.shape)
            raise UnfaceError(f"{source}: {name!r} holds tensors of shape {shape}; flatten them to one dimension")
        column = pa.chunked_array([lists_of(chunk) for chunk in column.chunks], list_type(column.type))
    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not lists or not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
        raise UnfaceError(f"{source}: {name!r} holds {kind}; expected lists of numbers, one for each row")
    dim = kind.list_size if pa.types.is_fixed_size_list(kind) else _common_length(column, ids, source, name)
    if len(column.chunks) == 1 and column.null_count == 0:
        vectors, nulls = _dense(column.chunk(0), dim)
        return vectors, nulls if nulls.any() else None
    vectors = np.zeros((len(column), dim), dtype=kind.value_type.to_pandas_dtype())
    nulls = np.zeros(len(column), dtype=bool)
    start = 0
    for chunk in column.chunks:
        present = np.asarray(chunk.is_valid())
        rows = start + np.flatnonzero(present)
        nulls[start : start + len(chunk)] = ~present
        # The usual chunk has no null row: a slice then copies faster than a list of row numbers.
        where = slice(start, start + len(chunk)) if len(rows) == len(chunk) else rows
        vectors[where], nulls[where] = _dense(chunk.drop_null() if chunk.null_count else chunk, dim)
        start += len(chunk)
    return vectors, nulls if nulls.any() else None


def list_type(kind: pa.DataType) -> pa.DataType:
    """The list that a tensor of one dimension is stored as; any other type as it is."""
    return kind.storage_type if _is_tensor(kind) and len(kind.shape) == 1 else kind


def lists_of(array: pa.Array) -> pa.Array:
    """The same for its values."""
    return array if list_type(array.type) == array.type else array.storage


def _is_tensor(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.FixedShapeTensorType)


def _common_length(column: pa.ChunkedArray, ids: NDArray[np.object_], source: str, name: str) -> int:
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column).cast(pa.int64()), -1))
    rows = np.flatnonzero(lengths >= 0)
    if len(rows) == 0:
        return 0
    first = rows[0]
    different = rows[lengths[rows] != lengths[first]]
    if len(different):
        row = different[0]
        raise UnfaceError(
            f"{source}: row {row} (id {ids[row]!r}) has {lengths[row]} numbers in {name!r},"
            f" row {first} has {lengths[first]}; every row needs the same length"
        )
    return int(lengths[first])


def _dense(chunk: pa.Array, dim: int) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """A chunk without null rows as (n, dim), and the rows that hold a null number."""
    flat = chunk.flatten()
    holes: NDArray[np.bool_] = np.zeros(len(chunk), dtype=bool)
    if flat.null_count:
        holes = np.any(np.asarray(flat.is_null()).reshape(len(chunk), dim), axis=1)
        # Without the validity bitmap: otherwise integers with nulls would come as floats.
        flat = pa.Array.from_buffers(flat.type, len(flat), [None, flat.buffers()[1]], offset=flat.offset)
    return flat.to_numpy(zero_copy_only=False).reshape(len(chunk), dim), holes


def text_of(column: pa.ChunkedArray, what: str) -> NDArray[np.object_]:
    """A column of names or ids as str, None where missing; ``what`` begins the error."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise UnfaceError(f"{what} holds {column.type}; expected text or integers")
    return as_text(_values(column, what), what)


def _label(column: pa.ChunkedArray, ids: NDArray[np.object_], source: str, name: str) -> NDArray[np.generic]:
    if not pa.types.is_nested(list_type(column.type)):
        return _values(column, f"{source}: {name!r}")
    vectors, nulls = matrix_of(column, ids, source, name)
    # An unknown context is a vector of zeros: it resembles no other.
    return vectors if nulls is None else np.where(nulls[:, None], 0, vectors)


def _longest(column: pa.ChunkedArray) -> int:
    """Bytes of the longest text, 0 of other columns."""
    return max((pc.max(pc.binary_length(words_of(chunk))).as_py() or 0 for chunk in column.chunks), default=0)


def words_of(column: pa.Array) -> pa.Array:
    """The texts of a column, each once where it has a dictionary; none of other columns."""
    words = column.dictionary if pa.types.is_dictionary(column.type) else column
    if pa.types.is_string_view(words.type):  # most functions do not know it
        return words.cast(pa.large_string())
    return words if is_text(words.type) else pa.array([], pa.string())


def _is_label(name: str, kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    flat = (
        is_text(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
    )
    return flat and not name.startswith(_PANDAS_INDEX)


def is_text(kind: pa.DataType) -> bool:
    """Whether its values are texts, however they are laid out."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _values(column: pa.ChunkedArray, what: str) -> NDArray[np.generic]:
    """A flat column as numpy; integers and booleans with nulls as objects with None, never as floats."""
    with_none = column.null_count > 0 and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
    try:
        parts = [object_array(chunk.to_pylist()) if with_none else _chunk_values(chunk) for chunk in column.chunks]
    except (pa.ArrowException, ValueError) as error:
        raise UnfaceError(f"{what} cannot be read ({reason(error)})") from None
    return np.concatenate(parts) if parts else np.empty(0, dtype=object)


def _chunk_values(chunk: pa.Array) -> NDArray[np.generic]:
    if pa.types.is_dictionary(chunk.type):
        # Not by casting: Arrow cannot decode a dictionary of string views, which is what polars hands over.
        words = object_array([*chunk.dictionary.to_pylist(), None])
        decoded: NDArray[np.generic] = words[chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy()]
        return decoded
    values: NDArray[np.generic] = chunk.to_numpy(zero_copy_only=False)
    return values
