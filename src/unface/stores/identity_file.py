"""Whose the vectors of a store without payload are (FAISS, numpy): a Parquet or CSV file beside it, by id or row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from unface.data.arrow import chosen_columns
from unface.data.collection import Collection, Counts, People, counted, of_people
from unface.data.embeddings import Columns
from unface.data.files import PARQUET, first_bytes
from unface.data.parquet import opened_parquet, read_columns
from unface.errors import MissingColumn, UnfaceError, reason, short_name
from unface.memory import beyond_memory, one_step

Batches = Callable[[], Iterator[tuple[NDArray[np.int64], NDArray[np.floating]]]]
"""Ids and vectors (n, d), piece by piece."""


@dataclass(frozen=True)
class IdentityFile:
    """``table`` has what is known of each vector, in the order of ``ids``; None where nobody asks whose they are."""

    columns: Columns
    where: str
    name: str
    table: pa.Table | None
    ids: NDArray[np.int64] | None
    """None: its rows are those of the store."""

    @classmethod
    def of(cls, path: str | None, columns: Columns, where: str) -> "IdentityFile":
        """Refuses a file without the columns asked for."""
        if path is None:
            if columns.identity is None:
                return cls(columns, where, "", None, None)
            raise MissingColumn(
                f"{where}: holds vectors and no identities; add ?identities=FILE to its URL, a Parquet or CSV file with"
                " columns id and identity",
                columns.identity,
            )
        table, name = _read(Path(path)), short_name(Path(path))
        if columns.identity is not None and columns.identity not in table.column_names:
            there = ", ".join(map(repr, table.column_names))
            raise MissingColumn(f"{name}: no column {columns.identity!r}; there is {there}", columns.identity)
        if columns.id not in table.column_names:
            return cls(columns, where, name, table, None)
        ids = table.column(columns.id)
        if not pa.types.is_integer(ids.type) or ids.null_count:
            raise UnfaceError(
                f"{name}: {columns.id!r} holds {ids.type}; expected the whole numbers that the store uses"
            )
        numbers = ids.to_numpy().astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        if (np.diff(numbers[order]) == 0).any():
            raise UnfaceError(f"{name}: an id occurs more than once in {columns.id!r}; keep one row for each vector")
        return cls(columns, where, name, table.take(pa.array(order)), numbers[order])

    def collection(self, rows: int, dim: int, batches: Batches, erased_with: str | None) -> Collection:
        """The store's vectors with what this file says of them."""
        columns, table = self.columns, self.table
        if table is not None and self.ids is None and table.num_rows != rows:
            raise UnfaceError(
                f"{self.name}: {table.num_rows:,} rows for {rows:,} vectors of {self.where}; give one for each, or a"
                f" column {columns.id!r}"
            )
        what = f"{self.name}: {columns.identity!r}"

        def people() -> Iterator[Counts]:
            if table is None:
                raise UnfaceError(f"{self.where}: --sample draws people, and no identities are read here; leave it out")
            for chunk in table.column(columns.identity).chunks:
                yield counted(chunk, what)

        def pieces(chosen: People | None) -> Iterator[pa.RecordBatch]:
            met = False
            for ids, vectors in batches():
                met = met or self.ids is None or bool(np.isin(ids, self.ids).any())
                batch = self._batch(ids, vectors)
                yield batch if chosen is None else of_people(batch, str(columns.identity), chosen, what)
            if not met:
                raise UnfaceError(
                    f"{self.name}: none of its {columns.id!r} is the id of a vector of {self.where}, whose ids end with"
                    f" {ids[-1]}; give those that the store uses, or leave the column out to name vectors in order"
                )

        return Collection(self.where, columns, rows, dim, people, pieces, erased_with)

    def _batch(self, ids: NDArray[np.int64], vectors: NDArray[np.floating]) -> pa.RecordBatch:
        flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
        arrays = {
            self.columns.vector: pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
            self.columns.id: pa.array(ids),
        }
        if self.table is not None:
            rows = pa.array(ids)
            if self.ids is not None:
                at = np.minimum(np.searchsorted(self.ids, ids), max(0, len(self.ids) - 1))
                # A vector that the file does not know has no identity.
                known = self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), dtype=bool)
                rows = pa.array(at, mask=~known)
            schema = self.table.schema.append(pa.field(self.columns.vector, arrays[self.columns.vector].type))
            for name in chosen_columns(schema, self.columns, self.name):
                if name not in arrays:
                    arrays[name] = self.table.column(name).take(rows).combine_chunks()
        return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def _read(path: Path) -> pa.Table:
    name = short_name(path)
    if (start := first_bytes(path)) is None:
        raise UnfaceError(f"{name}: is a folder; identities are one Parquet or CSV file")
    if start.startswith(PARQUET):
        with opened_parquet(path, name) as file:
            flat = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        return read_columns(path, name, flat)
    try:
        with one_step():
            table = csv.read_csv(path)
    except MemoryError:
        raise beyond_memory(name) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnfaceError(f"{name}: neither Parquet nor CSV ({reason(error)})") from None
    # An empty cell is no name.
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table.column(at)
            table = table.set_column(at, field.name, pc.if_else(pc.equal(column, ""), None, column))
    return table
