"""Sanitised batches as a Parquet file: several of them to a row group, each column in the encoding that suits it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.output.place import Sink

# A page is encoded, summed, hashed and written one after the other, and stays in a core's own cache meanwhile.
_PAGE_BYTES = 1 << 18
# Values at a time; what pyarrow takes by default are two vectors of 512.
_VALUES = 1 << 14


class RowGroups:
    """Batches in, row groups of at most so many rows out; a single batch may be larger."""

    def __init__(self, writer: pq.ParquetWriter, rows: int) -> None:
        self._writer, self._rows = writer, rows
        self._waiting: list[pa.RecordBatch] = []
        self._held = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if self._held + batch.num_rows > self._rows:
            self.flush()
        self._waiting.append(batch)
        self._held += batch.num_rows

    def flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._held = [], 0


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
    except pa.ArrowException as error:
        raise UnfaceError(f"{source}: its copy cannot be written ({reason(error)})") from None


def _leaves(schema: pa.Schema) -> list[str]:
    """What Parquet calls the columns that are written, which for nested ones only writing tells."""
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    written = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    return [written.column(number).path for number in range(len(written))]
