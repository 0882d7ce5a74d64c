"""Erased vectors on their way into a PostgreSQL table: staged beside it, matched with its rows, put in their place."""

from __future__ import annotations

from unface.stores.postgres_copy import ROW_VERSION, VERSION, VERSION_TYPES
from unface.stores.postgres_session import Session, literal, number
from unface.stores.postgres_table import VectorColumn, comment_of, key_columns, set_comment


def begin(opened: Session, column: VectorColumn, mark: str) -> None:
    """Staged vectors of this mark and of rows as they are now, or none."""
    with opened.transaction():
        if comment_of(opened, column.staged) != mark:
            opened.execute(f"DROP TABLE IF EXISTS {column.staged}")
            # Unlogged, since a crash of the server costs no more than staging again; never analysed, since statistics
            # are another place in which vectors would lie.
            opened.execute(
                f"CREATE UNLOGGED TABLE {column.staged} ({VERSION_TYPES}, vector {column.kind} NOT NULL)"
                " WITH (autovacuum_enabled = false)"
            )
            set_comment(opened, f"TABLE {column.staged}", mark)
            _hide(opened, column.staged)
            return
        opened.execute(f"DROP INDEX IF EXISTS {column.staged}_part_at_idx")
        now = f"SELECT {VERSION} {column.filled}"
        same = " AND ".join(f"raw.{each} = s.{each}" for each in ROW_VERSION.split(", "))
        opened.execute(f"DELETE FROM {column.staged} s WHERE NOT EXISTS (SELECT FROM ({now}) raw WHERE {same})")


def rows_staged(opened: Session, column: VectorColumn) -> int:
    return number(opened, f"SELECT count(*) FROM {column.staged}")


def keep_raw(opened: Session, column: VectorColumn) -> None:
    """A copy of raw vectors, for those who want them back, until it is purged."""
    with opened.transaction():
        opened.execute(f"DROP TABLE IF EXISTS {column.kept}")
        opened.execute(
            f"CREATE TABLE {column.kept} WITH (autovacuum_enabled = false) AS"
            f" SELECT {key_columns(opened, column)} {column.filled}"
        )
        set_comment(opened, f"TABLE {column.kept}", f"raw vectors of {column.table}, kept by unface until purged")
        _hide(opened, column.kept)


def _hide(opened: Session, table: str) -> None:
    """From all but its owner: hosted servers let everybody into new tables by default."""
    opened.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def count_unmatched(opened: Session, column: VectorColumn) -> int:
    query = f"""
        SELECT count(*) FROM (SELECT {VERSION} {column.filled}) raw
        FULL JOIN {column.staged} s USING ({ROW_VERSION}) WHERE raw.born IS NULL OR s.vector IS NULL"""
    return number(opened, query)


def rewrite(opened: Session, column: VectorColumn) -> None:
    """Every row's vector replaced; all indexes made anew once the rows are there."""
    finder = f"{column.schema}.unface_erased(oid, tid)"
    body = f"""DECLARE found {column.kind}; BEGIN
        SELECT vector INTO STRICT found FROM {column.staged} WHERE part = $1 AND at = $2; RETURN found; END"""
    opened.execute(f"CREATE FUNCTION {finder} RETURNS {column.kind} LANGUAGE plpgsql STABLE AS {literal(opened, body)}")
    opened.execute(
        f"ALTER TABLE {column.table} ALTER COLUMN {column.column} TYPE {column.kind} USING CASE"
        f" WHEN {column.column} IS NOT NULL THEN {column.schema}.unface_erased(tableoid, ctid) END,"
        # A column is else stored as is usual for its type from there on, whatever was set.
        f" ALTER COLUMN {column.column} SET STORAGE {column.storage},"
        f" ALTER COLUMN {column.column} SET COMPRESSION {column.compression}"
    )
    opened.execute(f"DROP FUNCTION {finder}")
