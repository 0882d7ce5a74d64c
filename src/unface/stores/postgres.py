"""A pgvector column: erased vectors staged by COPY beside their table, which is then rewritten in one transaction.

The table keeps everything but its vectors: ALTER COLUMN … TYPE … USING puts new values into a column that stays in
place, so that keys, grants, policies, triggers, views of other columns, sequences and publications stay too, and makes
every index anew from its own definition. Vectors that are NULL stay NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.progress import Progress
from unface.stores.ports import Erase, Holding
from unface.stores.postgres_copy import ROW_VERSION, VERSION, read_records, record_type, vectors_of, write_records
from unface.stores.postgres_purge import purge_raw
from unface.stores.postgres_session import Session, place, session
from unface.stores.postgres_staging import begin, count_unmatched, keep_raw, rewrite, rows_staged
from unface.stores.postgres_table import (
    VectorColumn,
    comment_of,
    dim_of,
    exists,
    rows_of,
    set_comment,
    vector_column,
)

PATIENCE = "30s"
"""How long a run waits for another one on the same column, which may be dead already without its server knowing."""


class PostgresStore:
    """``table`` as in SQL (``faces``, ``media.faces``), ``column`` of type vector or halfvec.

    Reads and writes go on while vectors are staged. ``swap`` locks the table while it is rewritten, and refuses if a
    row came, went or changed since.
    """

    def __init__(self, uri: str, table: str, column: str) -> None:
        self._uri, self._table, self._column = uri, table, column
        self._where = place(uri, table)

    def inspect(self) -> Holding:
        with self._session() as opened:
            column = self._look(opened)
            kept = exists(opened, column.kept)
            # Raw vectors are kept before the swap, which takes the staged ones away and sets the mark.
            if kept and column.sanitised_with is None and not exists(opened, column.staged):
                raise UnfaceError(
                    f"{self._where}: raw vectors of an earlier run lie in {column.kept}, but the comment on column"
                    f" {column.column} that says with what it was erased is gone; put it or the raw vectors back"
                )
            rows, dim = rows_of(opened, column), dim_of(opened, column, self._where)
        return Holding(self._where, rows, dim, column.sanitised_with, kept and column.sanitised_with is not None)

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        with self._session() as source, self._session() as target:
            self._alone(target)
            column = self._look(source)
            begin(target, column, mark)
            progress.start("stage", rows_of(target, column))
            progress.advance("stage", rows_staged(target, column))
            query = f"SELECT {VERSION}, {column.column} {column.filled}"
            missing = f"SELECT raw.* FROM ({query}) raw LEFT JOIN {column.staged} s USING ({ROW_VERSION})"
            missing += " WHERE s.part IS NULL"
            for records in read_records(source, missing, self._layout(source, column), self._where):
                records["vector"] = erase(vectors_of(records))
                write_records(target, column.staged, records)
                progress.advance("stage", len(records))
            target.execute(f"CREATE UNIQUE INDEX ON {column.staged} (part, at)")
            # Made after staging: if no row has changed by the swap, none had here.
            keep_raw(target, column)

    def staged(self) -> Iterator[NDArray[np.floating]]:
        with self._session() as opened:
            column = self._look(opened)
            query = f"SELECT {ROW_VERSION}, vector FROM {column.staged}"
            if column.sanitised_with is not None:
                query = f"SELECT {VERSION}, {column.column} {column.filled}"
            for records in read_records(opened, query, self._layout(opened, column), self._where):
                yield vectors_of(records)

    def unmatched(self) -> int:
        with self._session() as opened:
            return count_unmatched(opened, self._look(opened))

    def swap(self, mark: str) -> None:
        with self._session() as opened:
            self._alone(opened)
            column = self._look(opened)
            with opened.transaction():
                opened.execute(f"LOCK TABLE {column.table} IN ACCESS EXCLUSIVE MODE")
                column = self._look(opened)
                if column.sanitised_with is not None or comment_of(opened, column.staged) != mark:
                    raise UnfaceError(f"{self._where}: another run came between; run it again")
                apart = count_unmatched(opened, column)
                if apart:
                    raise UnfaceError(
                        f"{self._where}: {apart:,} rows came, went or changed since vectors were staged;"
                        " stop writers and run it again"
                    )
                rewrite(opened, column)
                set_comment(opened, f"COLUMN {column.table}.{column.column}", column.comment_with(mark))
                opened.execute(f"DROP TABLE {column.staged}")
            # Rewritten rows are not yet marked as visible to all, which index-only scans want.
            opened.execute(f"VACUUM (ANALYZE) {column.table}")

    def purge(self) -> list[str]:
        with self._session() as opened:
            self._alone(opened)
            return purge_raw(opened, self._look(opened))

    def _session(self) -> AbstractContextManager[Session]:
        return session(self._uri, self._where)

    def _look(self, opened: Session) -> VectorColumn:
        return vector_column(opened, self._table, self._column, self._where)

    def _layout(self, opened: Session, column: VectorColumn) -> np.dtype[np.void]:
        return record_type(dim_of(opened, column, self._where), half=column.half)

    def _alone(self, opened: Session) -> None:
        """One run at a time: two would stage every row twice."""
        from psycopg.errors import LockNotAvailable

        opened.execute(f"SET lock_timeout = '{PATIENCE}'")
        lock = "SELECT pg_advisory_lock(hashtext('unface'), hashtext(to_regclass(%s)::oid::text))"
        try:
            opened.execute(lock, (self._table,))
        except LockNotAvailable:
            raise UnfaceError(f"{self._where}: another run is at work on it; wait for its end") from None
        opened.execute("RESET lock_timeout")
