"""Arrow tables (pyarrow, pandas, polars, Parquet) as raw rows; vectors never pass through Python objects."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data.files import reason
from unface.data.identities import as_text, object_array, row_numbers
from unface.data.matrix import list_type, matrix_of
from unface.data.raw import Columns, RawRows
from unface.data.space import METADATA_KEY, space_from_json
from unface.errors import UnfaceError

# pandas hands its index over under this name; it is not a column of the user's.
_PANDAS_INDEX = "__index_level_"


def rows_of_table(table: pa.Table, columns: Columns, source: str, notes: tuple[str, ...] = ()) -> RawRows:
    """The vector, identity and id columns and all flat others; ids default to row numbers."""
    wanted = chosen_columns(table.schema, columns, source)
    described = (table.schema.metadata or {}).get(METADATA_KEY)
    if columns.id in wanted:
        ids = text_of(table.column(columns.id), f"{source}: {columns.id!r}")
    else:
        ids = row_numbers(table.num_rows)
    vectors, nulls = matrix_of(table.column(columns.vector), ids, source, columns.vector)
    labels = [name for name in wanted if name not in (columns.vector, columns.identity, columns.id)]
    return RawRows(
        source=source,
        columns=columns,
        vectors=vectors,
        identities=text_of(table.column(columns.identity), f"{source}: {columns.identity!r}"),
        ids=ids,
        labels={name: _label(table.column(name), ids, source, name) for name in labels},
        nulls=nulls,
        space=None if described is None else space_from_json(described, source),
        notes=(*notes, *left_out(table.schema, wanted)),
    )


def chosen_columns(schema: pa.Schema, columns: Columns, source: str) -> list[str]:
    """The names of the columns we read; says what there is when one is missing."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise UnfaceError(f"{source}: two columns are called {name!r}; rename one")
    asked = [columns.context] if columns.context else []
    asked += [columns.id] if columns.id != Columns.id else []  # without the usual id column rows are numbered
    for name in (columns.vector, columns.identity, *asked):
        if name not in schema.names:
            there = ", ".join(repr(known) for known in schema.names) or "no columns"
            raise UnfaceError(f"{source}: no column {name!r}; there is {there}")
    ours = (columns.vector, columns.identity, columns.id, columns.context)
    return [field.name for field in schema if field.name in ours or _is_label(field.name, field.type)]


def left_out(schema: pa.Schema, wanted: list[str]) -> tuple[str, ...]:
    """A note for each column that is not read: nested ones, pictures, and what else is not one plain value."""
    others = [field for field in schema if field.name not in wanted and not field.name.startswith(_PANDAS_INDEX)]
    return tuple(f"column {field.name!r} left out: {field.type} is not a label" for field in others)


def _label(column: pa.ChunkedArray, ids: NDArray[np.object_], source: str, name: str) -> NDArray[np.generic]:
    if not pa.types.is_nested(list_type(column.type)):
        return _values(column, f"{source}: {name!r}")
    vectors, nulls = matrix_of(column, ids, source, name)
    # An unknown context is a vector of zeros: it resembles no other.
    return vectors if nulls is None else np.where(nulls[:, None], 0, vectors)


def _is_label(name: str, kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    flat = (
        _is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
    )
    return flat and not name.startswith(_PANDAS_INDEX)


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def text_of(column: pa.ChunkedArray, what: str) -> NDArray[np.object_]:
    """A column of names or ids as str, None where missing; ``what`` begins the error."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (_is_string(kind) or pa.types.is_integer(kind)):
        raise UnfaceError(f"{what} holds {column.type}; expected text or integers")
    return as_text(_values(column, what), what)


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
