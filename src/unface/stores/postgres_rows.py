"""A pgvector column read for an audit or a fit: one read-only transaction, which no writer waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from unface.data.collection import Collection, Counts, People
from unface.data.embeddings import Columns
from unface.errors import MissingColumn, UnfaceError
from unface.stores.postgres_session import Connection, connect, count
from unface.stores.postgres_table import mark_of

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT a.attname::text, quote_ident(a.attname), t.typname::text, t.typtype = 'e', format_type(a.atttypid, a.atttypmod),
    a.atttypmod, col_description(c.oid, a.attnum),
    COALESCE((SELECT a.attnum = ANY(i.indkey) FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), false)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# What a column is cast to on the way, and its type in Arrow; others cannot be labels.
_LABELS: dict[str, tuple[str, pa.DataType]] = {
    **dict.fromkeys(("int2", "int4", "int8"), ("::int8", pa.int64())),
    **dict.fromkeys(("float4", "float8", "numeric"), ("::float8", pa.float64())),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid", "name"), ("::text", pa.string())),
    "bool": ("", pa.bool_()),
    "date": ("", pa.date32()),
    "timestamp": ("", pa.timestamp("us")),
    "timestamptz": (" AT TIME ZONE 'UTC'", pa.timestamp("us")),
}
_VECTORS = ("vector", "halfvec")
_ARRAYS = (*_VECTORS, "_float4", "_float8")
_NAMES_AT_ONCE = 10_000
_BATCH_BYTES = 16 << 20


@contextmanager
def postgres_rows(uri: str, table: str, column: str, where: str, asked: Columns) -> Iterator[Collection]:
    """The vectors of a table or a view with whatever else it says of each row; rows without a vector are left out."""
    with connect(uri, where) as connection:
        # One snapshot for people and vectors. The server itself refuses anything that would write.
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield _Table(connection, table, column, where, asked).collection()


class _Table:
    """What the catalogue says of it, and the queries for its rows."""

    def __init__(self, connection: Connection, table: str, column: str, where: str, asked: Columns) -> None:
        self._connection, self._where = connection, where
        found = connection.execute("SELECT to_regclass(%s)::text", (table,)).fetchone()
        if found is None or found[0] is None:
            raise UnfaceError(
                f"{where}: no such table; write it as in SQL, as schema.table if it is not on the search path"
            )
        self._table = str(found[0])
        rows: list[tuple[Any, ...]] = connection.execute(_COLUMNS, (table,)).fetchall()
        self._known = {
            name: _Known(quoted, kind, enum, shown, mod) for name, quoted, kind, enum, shown, mod, *_ in rows
        }
        self._vector = self._column(column)
        if self._vector.kind not in _VECTORS:
            raise UnfaceError(
                f"{where}: column {column} is of type {self._vector.type}; only vector and halfvec can be read"
            )
        self._half = self._vector.kind == "halfvec"
        self._mark = mark_of(next(comment for name, *_, comment, _ in rows if name == column))
        self._key = [quoted for _, quoted, *_, key in rows if key]
        advice = ": name yours with --identity-column"
        self._identity = None if asked.identity is None else self._column(asked.identity, advice)
        own_id = asked.id != Columns.id or (asked.id in self._known and not self._key)
        self._id = self._column(asked.id).quoted if own_id else None
        self._columns = Columns(column, asked.identity, asked.id, asked.context)
        taken = (column, asked.identity, asked.id, asked.context)
        others = {name: known for name, known in self._known.items() if name not in taken}
        self._labels = {name: known for name, known in others.items() if known.label is not None}
        self._notes = tuple(
            f"column {name!r} left out: {known.type} is not a label"
            for name, known in others.items()
            if known.label is None
        )
        if asked.context is not None and self._column(asked.context).kind not in _ARRAYS:
            raise UnfaceError(f"{where}: column {asked.context} is {self._column(asked.context).type}, not vectors")

    def collection(self) -> Collection:
        vector, table = self._vector.quoted, self._table
        found = self._connection.execute(f"SELECT count({vector}), count(*) - count({vector}) FROM {table}").fetchone()
        rows, missing = (int(str(number)) for number in found or (0, 0))
        # pgvector's functions may be in a schema that is not on the search path; its text form always works.
        text = f"SELECT string_to_array({vector}::text, ',') AS numbers FROM {table} WHERE {vector} IS NOT NULL LIMIT 1"
        dim = self._vector.mod
        if dim == -1:
            dim = count(self._connection, f"SELECT array_length(numbers, 1) FROM ({text}) first")
        notes = (f"not read, because the vector is NULL: {missing:,} of {rows + missing:,} rows",) if missing else ()
        return Collection(
            self._where, self._columns, rows, dim, self._people, self._batches, self._mark, (*notes, *self._notes)
        )

    def _people(self) -> Iterator[Counts]:
        if self._identity is None:
            raise UnfaceError(f"{self._where}: --sample draws people, and no identities are read here; leave it out")
        query = (
            f"SELECT {self._identity.quoted}::text, count(*) FROM {self._table}"
            f" WHERE {self._vector.quoted} IS NOT NULL AND {self._identity.quoted} IS NOT NULL GROUP BY 1"
        )
        for rows in self._fetched(query, (), _NAMES_AT_ONCE, "people"):
            yield {name: number for name, number in rows if name}

    def _batches(self, people: People | None) -> Iterator[pa.RecordBatch]:
        chosen: dict[str, tuple[str, pa.DataType]] = {}
        if self._identity is not None:
            chosen[str(self._columns.identity)] = (f"{self._identity.quoted}::text", pa.string())
        if self._id is not None or self._key:
            key = self._id or (self._key[0] if len(self._key) == 1 else f"concat_ws('/', {', '.join(self._key)})")
            chosen[self._columns.id] = (f"{key}::text", pa.string())
        if self._columns.context is not None:
            context = self._column(self._columns.context).quoted
            chosen[self._columns.context] = (f"{context}::real[]", pa.list_(pa.float32()))
        for name, known in self._labels.items():
            cast, kind = known.label or ("", pa.string())
            chosen[name] = (f"{known.quoted}{cast}", kind)
        selected = ", ".join([self._vector.quoted, *(expression for expression, _ in chosen.values())])
        query = f"SELECT {selected} FROM {self._table} WHERE {self._vector.quoted} IS NOT NULL"
        given: tuple[object, ...] = ()
        if people is not None and self._identity is not None:
            # Not the column as text: an index on it could not be used.
            query += f" AND {self._identity.quoted} = ANY(%s::text[]::{self._identity.type}[])"
            given = (sorted(people),)
        rows_at_once = max(1, _BATCH_BYTES // (4 * max(1, self._vector.mod if self._vector.mod > 0 else 2048)))
        for rows in self._fetched(query, given, rows_at_once, "rows"):
            vectors, *others = zip(*rows, strict=True)
            arrays = [self._arrow(vectors)]
            arrays += [pa.array(values, kind) for values, (_, kind) in zip(others, chosen.values(), strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, [self._columns.vector, *chosen])

    def _arrow(self, vectors: Sequence[bytes]) -> pa.Array:
        """From what the server sends: the dimension, two bytes of nothing, big-endian numbers."""
        number = np.dtype(">f2" if self._half else ">f4")
        dim = (len(vectors[0]) - 4) // number.itemsize
        if any(len(vector) != len(vectors[0]) for vector in vectors):
            raise UnfaceError(f"{self._where}: vectors of more than one dimension; keep those of one dimension only")
        layout = np.dtype([("head", "V4"), ("vector", number, (dim,))])
        numbers = np.frombuffer(b"".join(vectors), layout)["vector"]
        flat = numbers.astype(number.newbyteorder("=")).reshape(-1)
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), dim)

    def _fetched(self, query: str, given: Sequence[object], rows: int, name: str) -> Iterator[list[Any]]:
        """By a cursor on the server, so that no more than so many rows are here at a time."""
        cursor: psycopg.ServerCursor[tuple[Any, ...]]
        with self._connection.cursor(f"unface_{name}", binary=True) as cursor:
            cursor.execute(query.encode(), given)
            while found := cursor.fetchmany(rows):
                yield found

    def _column(self, name: str, advice: str = "") -> _Known:
        if name not in self._known:
            raise MissingColumn(f"{self._where}: no column {name}; it has {', '.join(self._known)}{advice}", name)
        return self._known[name]


class _Known:
    """A column of the table."""

    def __init__(self, quoted: str, kind: str, enum: bool, shown: str, mod: int) -> None:
        self.quoted, self.kind, self.type, self.mod = quoted, kind, shown, mod
        self.label = ("::text", pa.string()) if enum else _LABELS.get(kind)
