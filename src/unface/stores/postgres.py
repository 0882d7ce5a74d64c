"""A pgvector column: erased vectors are staged by COPY beside the table, which one transaction then rewrites.

The table keeps everything but its vectors: ALTER COLUMN … TYPE … USING gives the same column new values, so keys,
grants, policies, triggers, views of other columns, sequences and publications stay, and PostgreSQL rebuilds every index
from its own definition. Vectors that are NULL stay NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from numpy.typing import NDArray

from unface.data.collection import Collection
from unface.data.embeddings import Columns
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.scale.receipt import Check
from unface.stores.ports import Erase, Holding, IsErased, released_dim
from unface.stores.postgres_rows import postgres_rows
from unface.stores.postgres_session import (
    ROW_VERSION,
    ROW_VERSION_TYPES,
    SELECT_ROW_VERSION,
    Connection,
    connect,
    count,
    literal,
    lock_out_other_runs,
    name_of,
    read_records,
    record_type,
    row_id,
    row_ids,
    vectors_of,
    with_vectors,
    write_records,
)
from unface.stores.postgres_table import (
    TRIGGER,
    VectorColumn,
    comment_of,
    count_vectors,
    dim_of,
    exists,
    indexes_of,
    key_columns,
    primary_key,
    rejecting_function,
    searched_by,
    set_comment,
    staged_dim,
    tables_of,
    triggers_of,
    vector_column,
)
from unface.stores.recall import compared, index_recall

# Of pgvector, by metric.
_OPERATORS = {"l2": "<->", "ip": "<#>", "cosine": "<=>"}

# ANALYZE keeps whole values of up to 1 KB in these tables; only VACUUM FULL removes deleted ones from the files.
_STATISTICS = ("pg_catalog.pg_statistic", "pg_catalog.pg_statistic_ext_data")

# Ends the comment on a raw copy once rows of the table were updated: old versions of these are in the table's files.
_OVERWRITTEN = "; rows that arrived raw were overwritten"

# Files of this database, in all tablespaces, whose number is of no relation. Dropped tables leave an empty file until
# the next checkpoint.
_ORPHANED_FILES = """
WITH folders AS (
    SELECT s.oid AS space, 'base/' || d.oid AS folder FROM pg_tablespace s, pg_database d
    WHERE s.spcname = 'pg_default' AND d.datname = current_database()
    UNION ALL SELECT s.oid, format('pg_tblspc/%s/%s/%s', s.oid, version, d.oid)
    FROM pg_tablespace s, pg_database d, pg_ls_dir('pg_tblspc/' || s.oid, true, false) version
    WHERE s.spcname NOT IN ('pg_default', 'pg_global') AND d.datname = current_database()
), files AS (
    SELECT space, folder || '/' || name AS path, substring(name FROM '^[0-9]+') AS number
    FROM folders, pg_ls_dir(folder, true, false) name WHERE name ~ '^[0-9]+([._]|$)'
)
SELECT path FROM files WHERE pg_filenode_relation(space, number::oid) IS NULL
    AND (pg_stat_file(path, true)).size > 0 ORDER BY path
"""


class PostgresStore:
    """``table`` as in SQL (``faces``, ``media.faces``), ``column`` of type vector or halfvec.

    Reads and writes continue while vectors are staged. ``swap`` locks the table while it is rewritten, and refuses if
    a row was added, removed or changed since. The same transaction copies the raw vectors, so a raw copy and the mark
    always come together, and no step replaces a raw copy.
    """

    def __init__(self, uri: str, table: str, column: str, *, reject_raw: bool = False) -> None:
        self._uri, self._table, self._column, self._reject_raw = uri, table, column, reject_raw
        self._where = name_of(uri, table)
        self._lock: Connection | None = None
        """Holds the lock of a whole run, while there is one."""
        self._swapped_by: str | None = None
        """The transaction that all rows are of which nobody has written since; None if this run did not swap."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._connect() as connection:
            lock_out_other_runs(connection, self._table, self._where)
            self._lock = connection
            try:
                yield
            finally:
                self._lock = None

    def reading(self, columns: Columns) -> AbstractContextManager[Collection]:
        return postgres_rows(self._uri, self._table, self._column, self._where, columns)

    def inspect(self) -> Holding:
        with self._connect() as connection:
            column = self._look_up(connection)
            raw_kept = exists(connection, column.raw_copy)
            if raw_kept and column.sanitised_with is None:
                raise self._unmarked(column)
            rows, dim = count_vectors(connection, column), dim_of(connection, column, self._where)
        mark = column.sanitised_with
        # A column of any dimension would take raw vectors afterwards, too.
        resizable = column.declared_dim != -1
        return Holding(self._where, rows, dim, mark, raw_kept=raw_kept and mark is not None, resizable=resizable)

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        with self._connect() as connection:
            connection.execute("SET default_transaction_read_only = on")
            column = self._look_up(connection)
            indexes, triggers = indexes_of(connection, column), triggers_of(connection, column)
            size = count(connection, f"SELECT pg_total_relation_size({column.oid}::oid)")
        rebuilt = f"{len(indexes)} indexes are rebuilt: {', '.join(indexes)}" if indexes else "there is no index"
        fired = f"{', '.join(triggers)}: stay, and do not fire" if triggers else "the table has none"
        if self._reject_raw and released_dim == column.declared_dim:
            fired += f"; {TRIGGER} is added and rejects raw vectors from then on"
        raw = "removed from the server's files, statistics and log as far as this role may" if purge else "kept there"
        return [
            f"Stage: erased vectors in a new table {column.staged}; reads and writes continue.",
            "Read back: every erased vector is checked.",
            f"Swap: one transaction, in which reads and writes of {column.table} wait. Column {column.column} becomes"
            f" {column.type_of(released_dim)}, {rebuilt}. It needs up to {size / 1e6:,.0f} MB more disk meanwhile.",
            f"Triggers: {fired}.",
            f"Raw vectors: copied to {column.raw_copy} in the same transaction, {raw}"
            + ("." if purge else " until --purge."),
        ]

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        with self._connect() as source, self._connect_alone() as target:
            with target.transaction():
                column = self._lock_raw(target, "ACCESS SHARE")
                dim = released_dim(erase, dim_of(target, column, self._where))
                _prepare_staged_table(target, column, mark, dim)
            progress.start("stage", count_vectors(target, column))
            progress.advance("stage", count(target, f"SELECT count(*) FROM {column.staged}"))
            raw = f"SELECT {SELECT_ROW_VERSION}, {column.column} {column.from_filled}"
            missing = f"SELECT raw.* FROM ({raw}) raw LEFT JOIN {column.staged} s USING ({ROW_VERSION})"
            missing += " WHERE s.part IS NULL"
            for records in read_records(source, missing, self._layout(source, column), self._where):
                write_records(target, column.staged, with_vectors(records, erase(vectors_of(records))))
                progress.advance("stage", len(records))
            target.execute(f"CREATE UNIQUE INDEX ON {column.staged} (part, at)")

    def staged(self) -> Iterator[NDArray[np.floating]]:
        with self._connect() as connection:
            column = self._look_up(connection)
            query = f"SELECT {ROW_VERSION}, vector FROM {column.staged}"
            layout = self._layout(connection, column)
            if column.sanitised_with is not None:
                query = f"SELECT {SELECT_ROW_VERSION}, {column.column} {column.from_filled}"
            elif (dim := staged_dim(connection, column)) != -1:
                layout = record_type(dim, half=column.half)
            for records in read_records(connection, query, layout, self._where):
                yield vectors_of(records)

    def unmatched(self) -> int:
        with self._connect() as connection:
            return _count_unmatched(connection, self._look_up(connection))

    def recall(self) -> float | None:
        """Reads the column twice."""
        with self._connect() as connection:
            connection.execute("SET default_transaction_read_only = on")
            column = self._look_up(connection)
            metric = searched_by(connection, column)
            if metric is None:
                return None
            layout = self._layout(connection, column)

            def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
                query = f"SELECT {SELECT_ROW_VERSION}, {column.column} {column.from_filled}"
                for records in read_records(connection, query, layout, self._where):
                    yield row_ids(records), compared(vectors_of(records).astype(np.float32), metric)

            def search(queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
                connection.execute("SET enable_seqscan = off")
                connection.execute("SET enable_sort = off")  # nothing but the index is left to find the nearest
                schema, kind = column.pgvector_schema, "halfvec" if column.half else "vector"
                nearest = f"{column.column} OPERATOR({schema}.{_OPERATORS[metric]}) %s::{schema}.{kind}"
                near = f"SELECT tableoid::int8, ctid::text FROM {column.table} ORDER BY {nearest} LIMIT {k}"
                found = np.full((len(queries), k), -1, np.int64)
                for row, vector in enumerate(queries):
                    rows = connection.execute(near, (str(vector.tolist()),)).fetchall()
                    found[row, : len(rows)] = [row_id(int(str(table)), str(at)) for table, at in rows]
                return found

            return index_recall(batches, count_vectors(connection, column), search, l2=metric == "l2")

    def swap(self, mark: str) -> None:
        with self._connect_alone() as connection:
            with connection.transaction():
                column = self._lock_raw(connection, "ACCESS EXCLUSIVE")
                if comment_of(connection, column.staged) != mark:
                    raise self._changed_meanwhile()
                unmatched = _count_unmatched(connection, column)
                if unmatched:
                    raise UnfaceError(
                        f"{self._where}: rows were added, removed or changed since staging ({unmatched:,});"
                        " stop writers and run it again"
                    )
                _copy_raw_vectors(connection, column)
                _rewrite(connection, column)
                set_comment(connection, f"COLUMN {column.table}.{column.column}", column.comment_with(mark))
                connection.execute(f"DROP TABLE {column.staged}")
                transaction = count(connection, "SELECT pg_current_xact_id()::xid")
            self._swapped_by = str(transaction)
            # Rewritten rows are not yet marked as visible to all, which index-only scans need.
            connection.execute(f"VACUUM (ANALYZE) {column.table}")

    def reject_raw(self, check: Check) -> None:
        """By a trigger. What was written before it exists is for ``erase_arrivals`` to find."""
        # A column of fewer dimensions rejects them by itself.
        if self._reject_raw and check.projection.released_dim == check.projection.dim:
            with self._connect_alone() as connection, connection.transaction():
                column = self._look_up(connection)
                connection.execute(rejecting_function(connection, column, check))
                connection.execute(
                    f"CREATE OR REPLACE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OF {column.column} ON {column.table}"
                    f" FOR EACH ROW EXECUTE FUNCTION {column.rejecting}()"
                )

    def erase_arrivals(self, erase: Erase, is_erased: IsErased) -> int:
        """These rows are updated like any other, so that triggers fire; their raw vectors go to the raw copy."""
        with self._connect() as source, self._connect_alone() as target:
            column = self._look_up(source)
            with target.transaction():
                # Writers that waited for the swap come before this lock, which waits until they have committed.
                target.execute(f"LOCK TABLE {column.table} IN SHARE MODE")
            target.execute(f"DROP TABLE IF EXISTS {column.staged}")  # of a run that was killed while it replaced rows
            query = f"SELECT {SELECT_ROW_VERSION}, {column.column} {column.from_filled}"
            if self._swapped_by is not None:
                query += f" AND xmin <> '{self._swapped_by}'::xid"
            arrived = 0
            for records in read_records(source, query, self._layout(source, column), self._where):
                raw = records[~is_erased(vectors_of(records))]
                if len(raw) and not arrived:
                    _prepare_staged_table(target, column, "rows that arrived raw", column.declared_dim)
                if len(raw):
                    raw["vector"] = erase(vectors_of(raw))
                    write_records(target, column.staged, raw)
                arrived += len(raw)
            if arrived:
                with target.transaction():
                    _replace_arrivals(target, column)
            return arrived

    def purge(self) -> list[str]:
        with self._connect_alone() as connection:
            column = self._look_up(connection)
            overwritten = (comment_of(connection, column.raw_copy) or "").endswith(_OVERWRITTEN)
            # The copy is emptied first and dropped last, so an interrupted purge can be recognised.
            if exists(connection, column.raw_copy):
                with connection.transaction():
                    connection.execute(f"TRUNCATE {column.raw_copy}")
                    # This also drops the column's statistics.
                    connection.execute(f"ALTER TABLE {column.raw_copy} DROP COLUMN IF EXISTS {column.column}")
            notes = _remove_overwritten(connection, column) if overwritten else []
            if self._swapped_by is None:
                notes.append(
                    "raw vectors that others wrote since the swap and then changed or deleted may be in the table's"
                    f" files until VACUUM FULL {column.table}"
                )
            notes += _clear_statistics(connection) + _advance_write_ahead_log(connection)
            connection.execute(f"DROP TABLE IF EXISTS {column.raw_copy}")
            connection.execute(f"DROP TABLE IF EXISTS {column.staged}")
            return notes + _orphaned_files(connection) + _out_of_reach(connection, column)

    def _connect(self) -> AbstractContextManager[Connection]:
        return connect(self._uri, self._where)

    @contextmanager
    def _connect_alone(self) -> Iterator[Connection]:
        """For a step that writes: other runs are locked out, by the lock of the whole run if it is still held."""
        with self._connect() as connection:
            if self._lock is None:
                lock_out_other_runs(connection, self._table, self._where)
            else:
                self._lock.execute("SELECT")
            yield connection

    def _lock_raw(self, connection: Connection, mode: str) -> VectorColumn:
        """Lock the table until the transaction ends, and refuse if it was sanitised before it was locked."""
        connection.execute(f"LOCK TABLE {self._look_up(connection).table} IN {mode} MODE")
        column = self._look_up(connection)
        if column.sanitised_with is not None:
            raise self._changed_meanwhile()
        if exists(connection, column.raw_copy):
            raise self._unmarked(column)
        return column

    def _changed_meanwhile(self) -> UnfaceError:
        return UnfaceError(f"{self._where}: another run changed it in the meantime; run it again")

    def _unmarked(self, column: VectorColumn) -> UnfaceError:
        return UnfaceError(
            f"{self._where}: {column.raw_copy} holds raw vectors of an earlier run, but the comment on column"
            f" {column.column} that records the projection is missing; restore the comment, or restore the raw"
            " vectors and then drop that table"
        )

    def _look_up(self, connection: Connection) -> VectorColumn:
        return vector_column(connection, self._table, self._column, self._where)

    def _layout(self, connection: Connection, column: VectorColumn) -> np.dtype[np.void]:
        return record_type(dim_of(connection, column, self._where), half=column.half)


def _prepare_staged_table(connection: Connection, column: VectorColumn, mark: str, dim: int) -> None:
    """Afterwards the staged table holds only vectors of this mark whose rows have not changed, or none."""
    if comment_of(connection, column.staged) != mark:
        connection.execute(f"DROP TABLE IF EXISTS {column.staged}")
        # Unlogged: after a crash of the server, vectors are just staged again. Never analysed: statistics would be
        # another place that holds vectors.
        connection.execute(
            f"CREATE UNLOGGED TABLE {column.staged} ({ROW_VERSION_TYPES}, vector {column.type_of(dim)} NOT NULL)"
            " WITH (autovacuum_enabled = false)"
        )
        set_comment(connection, f"TABLE {column.staged}", mark)
        _hide(connection, column.staged)
        return
    connection.execute(f"DROP INDEX IF EXISTS {column.staged}_part_at_idx")
    now = f"SELECT {SELECT_ROW_VERSION} {column.from_filled}"
    same = " AND ".join(f"raw.{each} = s.{each}" for each in ROW_VERSION.split(", "))
    connection.execute(f"DELETE FROM {column.staged} s WHERE NOT EXISTS (SELECT FROM ({now}) raw WHERE {same})")


def _copy_raw_vectors(connection: Connection, column: VectorColumn) -> None:
    """Until they are purged, users can restore raw vectors from this copy. There must be none yet."""
    connection.execute(
        f"CREATE TABLE {column.raw_copy} WITH (autovacuum_enabled = false) AS"
        f" SELECT {key_columns(connection, column)} {column.from_filled}"
    )
    text = f"raw vectors of {column.table}, kept by unface until purged"
    set_comment(connection, f"TABLE {column.raw_copy}", text)
    _hide(connection, column.raw_copy)


def _replace_arrivals(connection: Connection, column: VectorColumn) -> None:
    """Update the rows whose erased vectors are staged, unless they have changed again, and keep their raw vectors."""
    names, key = key_columns(connection, column), primary_key(connection, column)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {column.raw_copy} WITH (autovacuum_enabled = false) AS"
        f" SELECT {names} FROM {column.table} WITH NO DATA"
    )
    _hide(connection, column.raw_copy)
    # An interrupted purge has removed it.
    connection.execute(f"ALTER TABLE {column.raw_copy} ADD COLUMN IF NOT EXISTS {column.column} {column.type}")
    text = f"raw vectors of {column.table}, kept by unface until purged{_OVERWRITTEN}"
    set_comment(connection, f"TABLE {column.raw_copy}", text)
    same = "arrived.tableoid = s.part AND arrived.ctid = s.at AND arrived.xmin = s.born"
    staged = f"EXISTS (SELECT FROM {column.staged} s WHERE {same})"
    rows = f"SELECT {names} FROM {column.table} arrived WHERE {staged} FOR UPDATE OF arrived"
    if key:
        # The application has replaced these raw vectors itself.
        matched = " AND ".join(f"kept.{name} = now.{name}" for name in key)
        connection.execute(f"WITH now AS ({rows}) DELETE FROM {column.raw_copy} kept USING now WHERE {matched}")
    connection.execute(f"INSERT INTO {column.raw_copy} ({names}) {rows}")
    connection.execute(
        f"UPDATE {column.table} arrived SET {column.column} = s.vector FROM {column.staged} s WHERE {same}"
    )
    connection.execute(f"DROP TABLE {column.staged}")


def _remove_overwritten(connection: Connection, column: VectorColumn) -> list[str]:
    """Rewrite the table without the old versions of updated rows, and its statistics."""
    for table in tables_of(connection, column):
        connection.execute(f"VACUUM (FULL, ANALYZE) {table}")
    # A partitioned table has statistics of its own.
    connection.execute(f"ANALYZE {column.table}")
    older = count(
        connection,
        """SELECT (NOT pg_has_role('pg_read_all_stats', 'USAGE'))::int + (SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid())""",
    )
    if not older:
        return []
    return [
        "transactions that began before the purge may keep raw vectors of rows that arrived late in the table's files;"
        f" run VACUUM FULL {column.table} after they have ended"
    ]


def _hide(connection: Connection, table: str) -> None:
    """From everybody but its owner: hosted servers give everybody access to new tables by default."""
    connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def _count_unmatched(connection: Connection, column: VectorColumn) -> int:
    query = f"""
        SELECT count(*) FROM (SELECT {SELECT_ROW_VERSION} {column.from_filled}) raw
        FULL JOIN {column.staged} s USING ({ROW_VERSION}) WHERE raw.born IS NULL OR s.vector IS NULL"""
    return count(connection, query)


def _rewrite(connection: Connection, column: VectorColumn) -> None:
    """Replace the vector of every row; PostgreSQL then rebuilds all indexes."""
    function = f"{column.schema}.unface_erased(oid, tid)"
    kind = column.type_of(staged_dim(connection, column))
    body = f"""DECLARE erased {kind}; BEGIN
        SELECT vector INTO STRICT erased FROM {column.staged} WHERE part = $1 AND at = $2; RETURN erased; END"""
    connection.execute(
        f"CREATE FUNCTION {function} RETURNS {kind} LANGUAGE plpgsql STABLE AS {literal(connection, body)}"
    )
    connection.execute(
        f"ALTER TABLE {column.table} ALTER COLUMN {column.column} TYPE {kind} USING CASE"
        f" WHEN {column.column} IS NOT NULL THEN {column.schema}.unface_erased(tableoid, ctid) END,"
        # Without these two, the column falls back to the storage settings of its type.
        f" ALTER COLUMN {column.column} SET STORAGE {column.storage},"
        f" ALTER COLUMN {column.column} SET COMPRESSION {column.compression}"
    )
    connection.execute(f"DROP FUNCTION {function}")


def _clear_statistics(connection: Connection) -> list[str]:
    refusals: list[str] = []
    # VACUUM of a table that one may not touch is a warning, not an error.
    connection.add_notice_handler(lambda notice: refusals.append(str(notice.message_primary)))
    for table in _STATISTICS:
        connection.execute(f"VACUUM (FULL) {table}")
    if not refusals:
        return []
    return [
        "the server's statistics may hold raw vectors of up to 250 dimensions until an administrator runs"
        " VACUUM FULL pg_statistic"
    ]


def _advance_write_ahead_log(connection: Connection) -> list[str]:
    """A checkpoint that begins in a new log file removes files of dropped tables and old log files."""
    from psycopg.errors import InsufficientPrivilege

    try:
        connection.execute("CHECKPOINT")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
    except InsufficientPrivilege:
        return [
            "the write-ahead log holds raw vectors until it is recycled and overwritten; an administrator can speed"
            " that up with SELECT pg_switch_wal() and CHECKPOINT"
        ]
    return []


def _orphaned_files(connection: Connection) -> list[str]:
    """Files that no table owns: a server that crashes while it writes a new table leaves them there for good."""
    from psycopg.errors import InsufficientPrivilege

    try:
        paths = [str(path) for (path,) in connection.execute(_ORPHANED_FILES).fetchall()]
    except InsufficientPrivilege:
        return [
            "files that a crash of the server left without a table were not looked for, because this role may not list"
            " the server's files; after a crash during an earlier run they may hold raw vectors"
        ]
    if not paths:
        return []
    listed = ", ".join(paths[:3]) + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")
    return [
        f"{len(paths):,} files of the server belong to no table ({listed}): a crash left them, or a transaction at work"
        " has just made them; they may hold raw vectors, and an administrator must check and remove them"
    ]


def _out_of_reach(connection: Connection, column: VectorColumn) -> list[str]:
    """Where raw vectors may still be, as far as the server knows."""
    row = connection.execute(
        """SELECT current_setting('wal_recycle')::bool, current_setting('archive_mode') <> 'off',
            (SELECT count(*) FROM pg_stat_replication) + (SELECT count(*) FROM pg_replication_slots)
                + (SELECT setting::int FROM pg_settings WHERE name = 'wal_keep_size') > 0,
            (SELECT string_agg(DISTINCT pubname, ', ') FROM pg_publication_tables p
                WHERE format('%%I.%%I', schemaname, tablename)::regclass = ANY(
                    SELECT %(oid)s::oid UNION SELECT relid FROM pg_partition_tree(%(oid)s::oid)))""",
        {"oid": column.oid},
    ).fetchone()
    recycles, archives, replicates, publications = row or (True, True, True, None)
    notes = ["backups and dumps made before this run hold raw vectors"]
    if recycles:
        notes.append("wal_recycle is on: files of the write-ahead log hold raw vectors until they are overwritten")
    if archives:
        notes.append("archived files of the write-ahead log hold raw vectors")
    if replicates:
        notes.append("the write-ahead log is kept for replicas, and holds raw vectors until they have caught up")
    if publications:
        notes.append(
            f"subscribers of {publications} keep raw vectors: replication does not send a rewritten table;"
            " sanitise them too"
        )
    return notes
