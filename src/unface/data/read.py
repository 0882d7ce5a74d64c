"""read_embeddings: one door for files, directories, tables and arrays."""

import os
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
from numpy.typing import ArrayLike

from unface.data.arrow import rows_of_table
from unface.data.embeddings import EmbeddingSet
from unface.data.files import kind_of, reason, short_name
from unface.data.npz import read_npz
from unface.data.parquet import read_parquet, read_parquet_directory
from unface.data.raw import Columns, RawRows
from unface.errors import UnfaceError


@runtime_checkable
class ArrowTable(Protocol):
    """Anything that streams Arrow: pyarrow, pandas and polars do, and none of the latter is imported."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = str | os.PathLike[str] | ArrowTable | tuple[ArrayLike, ArrayLike] | EmbeddingSet


def read_embeddings(
    source: Source,
    *,
    vector: str = "vector",
    identity: str = "identity",
    id: str = "id",
    context: str | None = None,
    skip_bad_rows: bool = False,
) -> EmbeddingSet:
    """A checked set from a Parquet or .npz file, a directory of Parquet files, a table, or (vectors, identities).

    ``vector``, ``identity`` and ``id`` name the columns; without an id column, rows are numbered. ``context`` names
    a second column of vectors to keep as a label; other nested columns are left out.
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


def _rows_of_path(path: Path, columns: Columns) -> RawRows:
    kind = kind_of(path)
    if kind == "npz":
        return read_npz(path, columns)
    table, notes = read_parquet(path, columns) if kind == "parquet" else read_parquet_directory(path, columns)
    return rows_of_table(table, columns, short_name(path), notes)


def _rows_of_stream(source: ArrowTable, columns: Columns) -> RawRows:
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnfaceError(f"table: cannot be read as Arrow ({reason(error)})") from None
    return rows_of_table(table, columns, "table")
