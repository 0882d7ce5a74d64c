"""A column of lists as one (n, d) array: a view of Arrow's memory when it is in one piece, one copy otherwise."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unface.errors import UnfaceError


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
