"""Parquet files as Arrow tables, whole or in batches of rows, and never another exception than ours."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unface.data.arrow import chosen_columns, left_out
from unface.data.files import kind_of, parquet_files, reason, short_name
from unface.data.raw import Columns
from unface.data.space import METADATA_KEY, require_same_space, space_from_json
from unface.errors import UnfaceError

# Far above what a real footer holds, far below what a corrupt one can claim.
_LONGEST_STRING = 64 << 20
_LONGEST_LIST = 8 << 20
# Without one (and with pre_buffer) pyarrow reads all of a row group, gigabytes of vectors, before its first row.
_BUFFER = 1 << 20


def read_parquet(path: Path, columns: Columns) -> tuple[pa.Table, tuple[str, ...]]:
    """One file as a table; columns that cannot be labels are not even read, and named in the notes beside it."""
    source = short_name(path)
    table, schema = _checked(path, lambda schema: chosen_columns(schema, columns, source))
    return table, left_out(schema, table.column_names)


@contextmanager
def opened_parquet(file: Path | pa.NativeFile, source: str, *, buffer: int = _BUFFER) -> Iterator[pq.ParquetFile]:
    """A file whose footer was read; what fails while it is open is told as a file that cannot be read."""
    try:
        with pq.ParquetFile(
            file,
            buffer_size=buffer,
            pre_buffer=False,
            thrift_string_size_limit=_LONGEST_STRING,
            thrift_container_size_limit=_LONGEST_LIST,
            page_checksum_verification=True,
        ) as opened:
            _require_agreement(opened.metadata, source)
            yield opened
    except UnfaceError:
        raise
    # A corrupt file makes pyarrow raise nearly anything: OSError, ArrowException, MemoryError, OverflowError.
    except Exception as error:
        raise UnfaceError(f"{source}: not a readable Parquet file ({reason(error)}); write or copy it again") from None


def row_batches(
    file: pq.ParquetFile, source: str, rows: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """All rows in order, at most so many at a time and never a whole row group; some columns or all."""
    there = 0
    for batch in file.iter_batches(rows, columns=columns, use_threads=False):
        # Or a corrupt dictionary index would be followed out of its array.
        batch.validate(full=True)
        there += batch.num_rows
        yield batch
    _require_all_rows(there, file.metadata.num_rows, source)


def _checked(path: Path, choose: Callable[[pa.Schema], list[str]]) -> tuple[pa.Table, pa.Schema]:
    source = short_name(path)
    # Without a buffer, since with one a corrupt page may claim a gigabyte and get it.
    with opened_parquet(path, source, buffer=0) as file:
        schema = file.schema_arrow
        table = file.read(columns=choose(schema))
        _require_all_rows(table.num_rows, file.metadata.num_rows, source)
        table.validate(full=True)
    return table.replace_schema_metadata(schema.metadata), schema


def read_parquet_directory(directory: Path, columns: Columns) -> tuple[pa.Table, tuple[str, ...]]:
    """Every Parquet file of a directory, in sorted name order, as one table; they must agree in schema and space."""
    paths = parquet_files(directory)
    tables: list[pa.Table] = []
    notes: dict[str, None] = {}
    for path in paths:
        if kind_of(path) != "parquet":
            raise UnfaceError(
                f"{short_name(path)}: not a Parquet file by its first bytes; move it out of the directory"
            )
        table, skipped = read_parquet(path, columns)
        tables.append(table)
        notes.update(dict.fromkeys(skipped))
    first = tables[0]
    for path, table in zip(paths[1:], tables[1:], strict=True):
        _require_same(first.schema, table.schema, short_name(paths[0]), short_name(path))
    # By name: the order of columns and whether they may be null do not matter to us.
    names = first.column_names
    alike = [pa.Table.from_arrays([table.column(name) for name in names], names=names) for table in tables]
    return pa.concat_tables(alike).replace_schema_metadata(first.schema.metadata), tuple(notes)


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


def _require_all_rows(there: int, promised: int, source: str) -> None:
    # Where fewer values are there than promised, pyarrow gives those and says nothing.
    if there != promised:
        raise UnfaceError(f"{source}: the footer promises {promised} rows, {there} are there; copy it again")
