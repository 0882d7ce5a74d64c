"""Raw vectors removed from a PostgreSQL server's own files: kept copy, statistics, and the write-ahead log."""

from __future__ import annotations

from unface.stores.postgres_session import Session
from unface.stores.postgres_table import VectorColumn, exists

# ANALYZE keeps whole values of up to 1 KB in here; what was deleted leaves with VACUUM FULL only.
_STATISTICS = ("pg_catalog.pg_statistic", "pg_catalog.pg_statistic_ext_data")


def purge_raw(opened: Session, column: VectorColumn) -> list[str]:
    """The kept table, emptied first, goes last: a purge that was cut off is still to be seen."""
    if exists(opened, column.kept):
        with opened.transaction():
            opened.execute(f"TRUNCATE {column.kept}")
            # With the column go its statistics.
            opened.execute(f"ALTER TABLE {column.kept} DROP COLUMN IF EXISTS {column.column}")
    notes = _clear_statistics(opened) + _advance_log(opened)
    opened.execute(f"DROP TABLE IF EXISTS {column.kept}")
    return notes + _out_of_reach(opened, column)


def _clear_statistics(opened: Session) -> list[str]:
    refusals: list[str] = []
    # VACUUM of what one may not touch is a warning, not an error.
    opened.add_notice_handler(lambda said: refusals.append(str(said.message_primary)))
    for table in _STATISTICS:
        opened.execute(f"VACUUM (FULL) {table}")
    if not refusals:
        return []
    return [
        "the server's statistics may hold raw vectors of up to 250 dimensions until somebody who may runs"
        " VACUUM FULL pg_statistic"
    ]


def _advance_log(opened: Session) -> list[str]:
    """Files of dropped tables and old parts of the log leave at a checkpoint that begins in a new part."""
    from psycopg.errors import InsufficientPrivilege

    try:
        opened.execute("CHECKPOINT")
        opened.execute("SELECT pg_switch_wal()")
        opened.execute("CHECKPOINT")
    except InsufficientPrivilege:
        return [
            "the write-ahead log holds raw vectors until it is recycled and written over; somebody who may can hasten"
            " that with SELECT pg_switch_wal() and CHECKPOINT"
        ]
    return []


def _out_of_reach(opened: Session, column: VectorColumn) -> list[str]:
    """What one can know from here."""
    found = opened.execute(
        """SELECT current_setting('wal_recycle')::bool, current_setting('archive_mode') <> 'off',
            (SELECT count(*) FROM pg_stat_replication) + (SELECT count(*) FROM pg_replication_slots)
                + (SELECT setting::int FROM pg_settings WHERE name = 'wal_keep_size') > 0,
            (SELECT string_agg(DISTINCT pubname, ', ') FROM pg_publication_tables p
                WHERE format('%%I.%%I', schemaname, tablename)::regclass = ANY(
                    SELECT %(oid)s::oid UNION SELECT relid FROM pg_partition_tree(%(oid)s::oid)))""",
        {"oid": column.oid},
    ).fetchone()
    recycles, archives, replicates, publications = found or (True, True, True, None)
    notes = ["backups and dumps that were made before hold raw vectors"]
    if recycles:
        notes.append("wal_recycle is on: files of the write-ahead log hold raw vectors until they are written over")
    if archives:
        notes.append("archived parts of the write-ahead log hold raw vectors")
    if replicates:
        notes.append("the write-ahead log is kept for replicas, and holds raw vectors until they have caught up")
    if publications:
        notes.append(
            f"subscribers of {publications} keep raw vectors: a rewritten table is not sent; sanitise them too"
        )
    return notes
