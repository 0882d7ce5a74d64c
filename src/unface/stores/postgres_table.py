"""The vector column of a PostgreSQL table, as the catalogue describes it; refuses what cannot be rewritten.

And a trigger that rejects raw vectors: it measures what ``Check`` measures, in SQL, for every row that is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.scale.receipt import Check
from unface.stores.postgres_session import Connection, count, literal

_MARK = "unface: erased with projection "

_COLUMN = """
SELECT to_jsonb(described) FROM (SELECT c.oid::int8 AS oid, format('%%I.%%I', n.nspname, c.relname) AS table,
    quote_ident(a.attname) AS column, format_type(a.atttypid, a.atttypmod) AS type, t.typname = 'halfvec' AS half,
    a.atttypmod AS declared_dim, col_description(c.oid, a.attnum) AS comment,
    CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'm' THEN 'MAIN' WHEN 'x' THEN 'EXTENDED' ELSE 'EXTERNAL' END AS storage,
    CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE 'default' END AS compression,
    format('%%I.unface_staged_%%s_%%s', n.nspname, c.oid, a.attnum) AS staged,
    format('%%I.unface_raw_%%s_%%s', n.nspname, c.oid, a.attnum) AS raw_copy,
    format('%%I.unface_reject_%%s_%%s', n.nspname, c.oid, a.attnum) AS rejecting,
    quote_ident(n.nspname) AS schema, quote_ident(tn.nspname) AS pgvector_schema,
    CASE WHEN pg_is_in_recovery() THEN 'the server is a standby; connect to its primary'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'not a table'
        WHEN t.typname NOT IN ('vector', 'halfvec')
            THEN format('column %%s is of type %%s; only vector and halfvec can be erased', a.attname,
                format_type(a.atttypid, a.atttypmod))
        WHEN a.attgenerated <> ''
            THEN format('column %%s is generated; sanitise the column it is computed from', a.attname)
        WHEN a.attinhcount > 0 OR c.relispartition THEN 'a partition or child of another table; name the parent table'
        WHEN c.reloftype <> 0 THEN 'a typed table (OF); its columns cannot be rewritten'
        WHEN NOT pg_has_role(c.relowner, 'USAGE')
            THEN format('%%s does not own it; connect as %%s', current_user, pg_get_userbyid(c.relowner))
        WHEN NOT has_schema_privilege(n.oid, 'CREATE')
            THEN format('%%s may not create tables in schema %%s; grant CREATE on it', current_user, n.nspname)
    END AS refusal
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE c.oid = to_regclass(%(table)s) AND a.attname = %(column)s AND a.attnum > 0 AND NOT a.attisdropped) described
"""

# ALTER COLUMN TYPE rebuilds indexes, constraints and statistics; any other object that refers to the column blocks it.
_BLOCKING = """
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
UNION SELECT 'child table ' || attrelid::regclass FROM columns
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
    type: str
    """In full: ``vector(512)``."""
    half: bool
    declared_dim: int
    """Dimensions in the column's type, or −1."""
    comment: str | None
    storage: str
    compression: str
    staged: str
    """Table beside this one for erased vectors, until the swap."""
    raw_copy: str
    """Table beside this one for raw vectors, until the purge."""
    rejecting: str
    """Function of the trigger that rejects raw vectors, if there is one."""
    schema: str
    pgvector_schema: str
    refusal: str | None
    """Why it cannot be sanitised at all."""

    @property
    def from_filled(self) -> str:
        """The end of a SELECT over all rows that have a vector."""
        return f"FROM {self.table} WHERE {self.column} IS NOT NULL"

    def type_of(self, dim: int) -> str:
        """The column's type for vectors of so many dimensions; as it is where it names none."""
        return self.type if self.declared_dim == -1 else self.type.replace(f"({self.declared_dim})", f"({dim})")

    @property
    def sanitised_with(self) -> str | None:
        """The mark is a line of the column's comment: it stays with the column through renames, dumps and restores."""
        return mark_of(self.comment)

    def comment_with(self, mark: str) -> str:
        """The comment that the column has, then the mark."""
        return "\n".join([*(self.comment or "").splitlines(), _MARK + mark])


def mark_of(comment: str | None) -> str | None:
    """The mark in a column's comment."""
    lines = (comment or "").splitlines()
    return next((line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)), None)


def vector_column(connection: Connection, table: str, column: str, where: str) -> VectorColumn:
    """Changes nothing, and reads nothing but the catalogue."""
    if not exists(connection, table):
        raise UnfaceError(
            f"{where}: no such table; write it as in SQL, as schema.table if it is not on the search path"
        )
    row = connection.execute(_COLUMN, {"table": table, "column": column}).fetchone()
    if row is None:
        raise UnfaceError(f"{where}: no column {column}; it has {', '.join(_column_names(connection, table))}")
    described = VectorColumn(**cast("dict[str, Any]", row[0]))
    if described.refusal is not None:
        raise UnfaceError(f"{where}: {described.refusal}")
    blocking = connection.execute(_BLOCKING, {"oid": described.oid, "column": described.column}).fetchall()
    # After the swap, users may have created again what they dropped for it.
    if blocking and described.sanitised_with is None:
        names = [str(name) for (name,) in blocking]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise UnfaceError(
            f"{where}: column {column} cannot be rewritten because of {listed};"
            " drop that first and create it again afterwards"
        )
    return described


def count_vectors(connection: Connection, column: VectorColumn) -> int:
    """How many are not NULL."""
    return count(connection, f"SELECT count({column.column}) FROM {column.table}")


def dim_of(connection: Connection, column: VectorColumn, where: str) -> int:
    """The declared dimension, or else that of all vectors, which must be one."""
    if column.declared_dim != -1:
        return column.declared_dim
    dims = f"{column.pgvector_schema}.vector_dims({column.column})"
    query = f"SELECT min({dims}), max({dims}) FROM {column.table}"
    least, most = connection.execute(query).fetchone() or (None, None)
    if least is None:
        raise UnfaceError(f"{where}: {column.column} holds no vector and its type names no dimension; nothing to do")
    if least != most:
        raise UnfaceError(f"{where}: vectors of {least} and of {most} dimensions; keep those of one dimension only")
    return int(str(least))


def staged_dim(connection: Connection, column: VectorColumn) -> int:
    """That of the staged vectors by their declared type, or −1."""
    query = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'vector'"
    (dim,) = connection.execute(query, (column.staged,)).fetchone() or (-1,)
    return int(str(dim))


def exists(connection: Connection, table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def comment_of(connection: Connection, table: str) -> str | None:
    """None also if there is no such table."""
    query = "SELECT obj_description(to_regclass(%s), 'pg_class')"
    (comment,) = connection.execute(query, (table,)).fetchone() or (None,)
    return None if comment is None else str(comment)


def set_comment(connection: Connection, target: str, text: str) -> None:
    """``target``: COLUMN or TABLE and its quoted name."""
    connection.execute(f"COMMENT ON {target} IS {literal(connection, text)}")


def key_columns(connection: Connection, column: VectorColumn) -> str:
    """The vector column after those that identify its row: the primary key, or else every other column."""
    names = primary_key(connection, column)
    if not names:
        query = """SELECT quote_ident(attname) FROM pg_attribute
            WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND quote_ident(attname) <> %s ORDER BY attnum"""
        names = [str(name) for (name,) in connection.execute(query, (column.oid, column.column)).fetchall()]
    return ", ".join([*names, column.column])


def primary_key(connection: Connection, column: VectorColumn) -> list[str]:
    """Quoted names, in the table's order."""
    query = """SELECT quote_ident(attname) FROM pg_attribute JOIN pg_index ON indrelid = attrelid AND indisprimary
        WHERE attrelid = %s AND attnum = ANY(indkey) AND quote_ident(attname) <> %s ORDER BY attnum"""
    return [str(name) for (name,) in connection.execute(query, (column.oid, column.column)).fetchall()]


def tables_of(connection: Connection, column: VectorColumn) -> list[str]:
    """The table, its partitions and its children, as far as they hold rows; quoted."""
    query = """WITH RECURSIVE tree AS (
            SELECT %s::oid AS oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid)
        SELECT format('%%I.%%I', nspname, relname) FROM tree JOIN pg_class c USING (oid)
            JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' ORDER BY 1"""
    return [str(name) for (name,) in connection.execute(query, (column.oid,)).fetchall()]


def indexes_of(connection: Connection, column: VectorColumn) -> list[str]:
    """Every index of the table: rewriting it rebuilds all of them."""
    query = """SELECT c.relname::text || ' (' || m.amname || ')' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am m ON m.oid = c.relam WHERE i.indrelid = %s ORDER BY 1"""
    return [str(name) for (name,) in connection.execute(query, (column.oid,)).fetchall()]


def searched_by(connection: Connection, column: VectorColumn) -> str | None:
    """The metric (l2, ip, cosine) of the first HNSW or IVFFlat index over all vectors as they are; None without one."""
    query = """SELECT substring(o.opcname FROM '_(l2|ip|cosine)_ops$') FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
        JOIN pg_opclass o ON o.oid = i.indclass[0]
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = %s AND m.amname IN ('hnsw', 'ivfflat') AND i.indpred IS NULL AND i.indisvalid
            AND quote_ident(a.attname) = %s AND o.opcname ~ '_(l2|ip|cosine)_ops$' ORDER BY c.relname LIMIT 1"""
    (metric,) = connection.execute(query, (column.oid, column.column)).fetchone() or (None,)
    return None if metric is None else str(metric)


def triggers_of(connection: Connection, column: VectorColumn) -> list[str]:
    """Those that users made."""
    query = "SELECT tgname::text FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal ORDER BY 1"
    return [str(name) for (name,) in connection.execute(query, (column.oid,)).fetchall()]


def _column_names(connection: Connection, table: str) -> list[str]:
    query = """SELECT attname FROM pg_attribute
        WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
    return [str(name) for (name,) in connection.execute(query, (table,)).fetchall()]


TRIGGER = "unface_reject_raw"

# Of a vector of length one. Wider than the rounding that Check allows: pgvector adds up in float32. Raw vectors have
# some hundred times that along a removed direction.
_ALLOWED = {"vector": 1e-4, "halfvec": 1e-2}


def rejecting_function(connection: Connection, column: VectorColumn, check: Check) -> str:
    """The statement that creates it."""
    basis, mean = check.readers()
    allowed = _ALLOWED["halfvec" if column.half else "vector"]
    vector = f"{column.pgvector_schema}.vector"
    scaled, fixed = np.zeros(basis.shape[1]), np.zeros(basis.shape[1])
    if mean is not None and not check.projection.normalise:
        fixed = mean
    elif mean is not None and mean.any():
        scaled = mean / np.linalg.norm(mean)
    gate = check.projection.gate
    # What the gate does not take for a face may be written as it is.
    is_no_face = (
        "false"
        if gate is None
        else f"-(written OPERATOR({column.pgvector_schema}.<#>) '[{_listed(gate.weights)}]'::{vector})"
        f" + {gate.offset:.9g} * length <= {allowed} * length"
    )
    readers = ", ".join(f"'[{_listed(each)}]'" for each in basis.T)
    body = f"""DECLARE
        readers {vector}[] := ARRAY[{readers}]::{vector}[];
        scaled float8[] := ARRAY[{_listed(scaled)}]::float8[];
        fixed float8[] := ARRAY[{_listed(fixed)}]::float8[];
        written {vector} := NEW.{column.column};
        length float8 := {column.pgvector_schema}.vector_norm(written);
        read float8[];
        along float8 := 0;
    BEGIN
        IF {is_no_face} THEN
            RETURN NEW;
        END IF;
        FOR i IN 1 .. {basis.shape[1]} LOOP
            read[i] := -(written OPERATOR({column.pgvector_schema}.<#>) readers[i]);
            along := along + read[i] * scaled[i];
        END LOOP;
        FOR i IN 1 .. {basis.shape[1]} LOOP
            IF abs(read[i] - greatest(along, 0) * scaled[i] - fixed[i]) > {allowed} * length THEN
                RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE =
                    'a raw vector was written to a sanitised column; erase it with the projection first';
            END IF;
        END LOOP;
        RETURN NEW;
    END"""
    return (
        f"CREATE OR REPLACE FUNCTION {column.rejecting}() RETURNS trigger LANGUAGE plpgsql"
        f" AS {literal(connection, body)}"
    )


def _listed(numbers: NDArray[np.float64]) -> str:
    return ", ".join(f"{number:.9g}" for number in numbers)
