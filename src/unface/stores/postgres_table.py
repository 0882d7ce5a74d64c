"""The vector column of a PostgreSQL table, as its catalogue tells; what cannot be sanitised is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from unface.errors import UnfaceError
from unface.stores.postgres_session import Session, literal, number

_MARK = "unface: erased with projection "

_COLUMN = """
SELECT to_jsonb(found) FROM (SELECT c.oid::int8 AS oid, format('%%I.%%I', n.nspname, c.relname) AS table,
    quote_ident(a.attname) AS column, format_type(a.atttypid, a.atttypmod) AS kind, t.typname = 'halfvec' AS half,
    a.atttypmod AS declared, col_description(c.oid, a.attnum) AS comment,
    CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'm' THEN 'MAIN' WHEN 'x' THEN 'EXTENDED' ELSE 'EXTERNAL' END AS storage,
    CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE 'default' END AS compression,
    format('%%I.unface_staged_%%s_%%s', n.nspname, c.oid, a.attnum) AS staged,
    format('%%I.unface_raw_%%s_%%s', n.nspname, c.oid, a.attnum) AS kept,
    quote_ident(n.nspname) AS schema, quote_ident(tn.nspname) AS kinds_in,
    CASE WHEN pg_is_in_recovery() THEN 'the server is a standby; go to its primary'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'not a table'
        WHEN t.typname NOT IN ('vector', 'halfvec')
            THEN format('column %%s is of type %%s; only vector and halfvec can be erased', a.attname,
                format_type(a.atttypid, a.atttypmod))
        WHEN a.attgenerated <> '' THEN format('column %%s is generated; sanitise what it is made from', a.attname)
        WHEN a.attinhcount > 0 OR c.relispartition THEN 'a part of another table; name that one, not the part'
        WHEN c.reloftype <> 0 THEN 'a typed table (OF); its columns cannot be rewritten'
        WHEN NOT pg_has_role(c.relowner, 'USAGE')
            THEN format('%%s does not own it; connect as %%s', current_user, pg_get_userbyid(c.relowner))
        WHEN NOT has_schema_privilege(n.oid, 'CREATE')
            THEN format('%%s may not create tables in schema %%s, beside it; grant that', current_user, n.nspname)
    END AS refused
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE c.oid = to_regclass(%(table)s) AND a.attname = %(column)s AND a.attnum > 0 AND NOT a.attisdropped) found
"""

# ALTER COLUMN TYPE makes indexes, constraints and statistics anew; whatever else names the column stops it.
_IN_THE_WAY = """
WITH RECURSIVE tree AS (
    SELECT %(oid)s::oid AS oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
), columns AS (
    SELECT a.attrelid, a.attnum, a.attstorage::text || a.attcompression::text AS stored, c.reltype, c.relkind, c.relam
    FROM tree JOIN pg_class c ON c.oid = tree.oid
        JOIN pg_attribute a ON a.attrelid = c.oid WHERE quote_ident(a.attname) = %(column)s
)
SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM pg_depend d JOIN columns ON d.refobjid = attrelid AND d.refobjsubid = attnum
WHERE d.refclassid = 'pg_class'::regclass AND CASE d.classid
    WHEN 'pg_class'::regclass THEN d.objsubid > 0
    WHEN 'pg_attrdef'::regclass THEN NOT EXISTS (
        SELECT FROM pg_attrdef f WHERE f.oid = d.objid AND (f.adrelid, f.adnum) = (attrelid, attnum))
    ELSE d.classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass) END
UNION SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM pg_depend d JOIN pg_type t ON t.oid = d.refobjid JOIN columns ON reltype IN (t.oid, t.typelem)
WHERE d.refclassid = 'pg_type'::regclass AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
UNION SELECT 'its part ' || attrelid::regclass FROM columns
WHERE relkind = 'f' OR relam NOT IN (0, (SELECT oid FROM pg_am WHERE amname = 'heap'))
    OR stored <> (SELECT stored FROM columns WHERE attrelid = %(oid)s)
ORDER BY 1
"""


@dataclass(frozen=True)
class VectorColumn:
    """Names are quoted for SQL, by the server."""

    oid: int
    table: str
    column: str
    kind: str
    """Its type in full, ``vector(512)``."""
    half: bool
    declared: int
    """Dimensions as the type says, or −1."""
    comment: str | None
    storage: str
    compression: str
    staged: str
    kept: str
    schema: str
    kinds_in: str
    """Schema of pgvector itself."""
    refused: str | None
    """Why it cannot be sanitised at all."""

    @property
    def filled(self) -> str:
        """Rows that have a vector, for a SELECT to go on with."""
        return f"FROM {self.table} WHERE {self.column} IS NOT NULL"

    @property
    def sanitised_with(self) -> str | None:
        """The mark is a line of the column's comment: it stays with the column through renames, dumps and restores."""
        lines = (self.comment or "").splitlines()
        return next((line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)), None)

    def comment_with(self, mark: str) -> str:
        """Whatever was said of the column before, then the mark."""
        return "\n".join([*(self.comment or "").splitlines(), _MARK + mark])


def vector_column(opened: Session, table: str, column: str, where: str) -> VectorColumn:
    """Changes nothing, and reads nothing but the catalogue."""
    if opened.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
        raise UnfaceError(
            f"{where}: no such table; write it as in SQL, schema.table where it is not on the search path"
        )
    found = opened.execute(_COLUMN, {"table": table, "column": column}).fetchone()
    if found is None:
        raise UnfaceError(f"{where}: no column {column}; it has {', '.join(_columns(opened, table))}")
    seen = VectorColumn(**cast("dict[str, Any]", found[0]))
    if seen.refused is not None:
        raise UnfaceError(f"{where}: {seen.refused}")
    in_the_way = opened.execute(_IN_THE_WAY, {"oid": seen.oid, "column": seen.column}).fetchall()
    # What was dropped for the rewriting may be back afterwards.
    if in_the_way and seen.sanitised_with is None:
        raise UnfaceError(
            f"{where}: column {column} cannot be rewritten under {_listed([str(each[0]) for each in in_the_way])};"
            " drop that first and create it again afterwards"
        )
    return seen


def rows_of(opened: Session, column: VectorColumn) -> int:
    """How many vectors are not NULL."""
    return number(opened, f"SELECT count({column.column}) FROM {column.table}")


def dim_of(opened: Session, column: VectorColumn, where: str) -> int:
    """Where the type does not say it, all vectors are looked at."""
    if column.declared != -1:
        return column.declared
    dims = f"{column.kinds_in}.vector_dims({column.column})"
    least, most = opened.execute(f"SELECT min({dims}), max({dims}) FROM {column.table}").fetchone() or (None, None)
    if least is None:
        raise UnfaceError(f"{where}: {column.column} holds no vector and its type names no dimension; nothing to do")
    if least != most:
        raise UnfaceError(f"{where}: vectors of {least} and of {most} dimensions; keep those of one dimension only")
    return int(str(least))


def exists(opened: Session, table: str) -> bool:
    return opened.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def comment_of(opened: Session, table: str) -> str | None:
    """None also where there is no such table."""
    (found,) = opened.execute("SELECT obj_description(to_regclass(%s), 'pg_class')", (table,)).fetchone() or (None,)
    return None if found is None else str(found)


def set_comment(opened: Session, what: str, text: str) -> None:
    """``what``: COLUMN or TABLE and its quoted name."""
    opened.execute(f"COMMENT ON {what} IS {literal(opened, text)}")


def key_columns(opened: Session, column: VectorColumn) -> str:
    """What tells rows apart for whoever wants raw vectors back: the primary key, or else every column."""
    query = """SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
        FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary
        WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND quote_ident(attname) <> %s
            AND (indrelid IS NULL OR attnum = ANY(indkey))"""
    (names,) = opened.execute(query, (column.oid, column.column)).fetchone() or (None,)
    return f"{names}, {column.column}" if names else column.column


def _columns(opened: Session, table: str) -> Sequence[str]:
    query = """SELECT attname FROM pg_attribute
        WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
    return [str(name) for (name,) in opened.execute(query, (table,)).fetchall()]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
