"""The connection to a PostgreSQL server: one-line errors without passwords, a lock for one run, vectors by COPY."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unface.errors import UNESCAPED, UnfaceError, is_unescaped, reason, redact

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"
Records = NDArray[np.void]

LOCK_TIMEOUT = "30s"
"""How long a run waits for another one on the same column; that one may be dead without its server knowing yet."""

# The version of the row that a vector belongs to: table, its file, place in the file, transaction. An update, VACUUM
# FULL, … changes at least one of the four, so equal versions mean that the row has not changed.
ROW_VERSION = "part, file, at, born"
ROW_VERSION_TYPES = "part oid, file oid, at tid, born xid"
SELECT_ROW_VERSION = "tableoid AS part, pg_relation_filenode(tableoid) AS file, ctid AS at, xmin AS born"

_SETTINGS = {
    # Rows that a policy hides must be an error, never left out.
    "row_security": "off",
    # Hosted servers cancel statements after minutes; a table is rewritten in one statement.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # The connection that holds the lock of a run is idle for as long as the run takes.
    "idle_session_timeout": "0",
    # Otherwise the server holds the locks of a killed client until the statement ends.
    "client_connection_check_interval": "1s",
}
# Where nobody has set up logging, Python prints warnings; with this handler it does not.
_UNPRINTED = logging.NullHandler()
_BATCH_BYTES = 16 << 20
_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_COPY_END = b"\xff\xff"


@contextmanager
def connect(uri: str, where: str) -> Iterator[Connection]:
    """A connection in autocommit mode; errors of the server become UnfaceError."""
    require_driver()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    # After Ctrl-C the driver logs that it could not roll back; closing the connection does that anyway.
    logging.getLogger("psycopg").addHandler(_UNPRINTED)
    try:
        with psycopg.connect(uri, autocommit=True, client_encoding="utf8", application_name="unface") as connection:
            # Older servers do not know all of the settings; the join leaves those out.
            connection.execute(
                "SELECT set_config(name, value, false)"
                " FROM pg_settings JOIN unnest(%s::text[], %s::text[]) wanted(name, value) USING (name)",
                (list(_SETTINGS), list(_SETTINGS.values())),
            )
            yield connection
    except psycopg.Error as error:
        # The rest of the error quotes the statement, which is ours and not the user's.
        options = conninfo_to_dict(uri)
        secrets = [str(options.get(name) or "") for name in ("password", "sslpassword")]
        message = redact(error.diag.message_primary or reason(error), *secrets, os.environ.get("PGPASSWORD"))
        raise UnfaceError(f"{where}: PostgreSQL reported: {message}") from None


def require_driver() -> None:
    """Refuse if psycopg is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UnfaceError("PostgreSQL needs psycopg, which is not installed: pip install 'unface[stores]'") from None


def name_of(uri: str, table: str) -> str:
    """``host/database/table``, as messages name it."""
    require_driver()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if "://" in uri and is_unescaped(uri):
        raise UnfaceError(f"{table}: {UNESCAPED}; better leave the password out and set PGPASSWORD or PGSERVICE")
    try:
        options = conninfo_to_dict(uri)
    except psycopg.Error:
        # The driver's own message quotes the address, password included.
        raise UnfaceError(
            f"{table}: the database address cannot be parsed; write postgresql://user@host:port/database"
            "?table=TABLE&column=COLUMN, followed only by options that libpq knows; the password comes from PGPASSWORD"
        ) from None
    host = str(options.get("host") or os.environ.get("PGHOST") or "localhost")
    database = options.get("dbname") or os.environ.get("PGDATABASE") or options.get("user") or "default database"
    return f"{'localhost' if host.startswith(('/', '@')) else host}/{database}/{table}"


def lock_out_other_runs(connection: Connection, table: str, where: str) -> None:
    """Hold an advisory lock until the connection closes: two runs would stage every row twice.

    The lock ends with its connection, so steps that replace or remove anything also read the mark under a lock of the
    table.
    """
    from psycopg.errors import LockNotAvailable

    connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    lock = "SELECT pg_advisory_lock(hashtext('unface'), hashtext(to_regclass(%s)::oid::text))"
    try:
        connection.execute(lock, (table,))
    except LockNotAvailable:
        raise UnfaceError(f"{where}: another run is working on it; wait for it to finish") from None
    connection.execute("RESET lock_timeout")


def count(connection: Connection, query: str) -> int:
    """The one number that a query returns."""
    (value,) = connection.execute(query).fetchone() or (0,)
    return int(str(value))


def literal(connection: Connection, text: str) -> str:
    """A text quoted for SQL, for statements that take no parameters."""
    (quoted,) = connection.execute("SELECT quote_literal(%s)", (text,)).fetchone() or ("",)
    return str(quoted)


def record_type(dim: int, *, half: bool) -> np.dtype[np.void]:
    """One row of ``ROW_VERSION, vector`` in a binary COPY stream; no field is NULL, so all rows have one length."""
    return np.dtype(
        [
            ("fields", ">i2"),
            ("version", f"V{8 + 8 + 10 + 8}"),  # each value comes after its length, of four bytes
            ("length", ">i4"),
            ("dim", ">i2"),
            ("unused", ">i2"),
            ("vector", ">f2" if half else ">f4", (dim,)),
        ]
    )


def read_records(connection: Connection, query: str, layout: np.dtype[np.void], where: str) -> Iterator[Records]:
    """Batches of the rows of a query for ``ROW_VERSION, vector``; the caller may change them in place."""
    pending = bytearray()
    head = len(_COPY_SIGNATURE) + 8
    batch = max(1, _BATCH_BYTES // layout.itemsize) * layout.itemsize
    import psycopg

    read_on = True
    try:
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as chunks:
            for chunk in chunks:
                pending += chunk
                if len(pending) >= head + batch:
                    read_on = False
                    yield _parse(pending[head : head + batch], layout, where)
                    read_on = True
                    # The signature stays in front until the stream ends.
                    del pending[head : head + batch]
    except psycopg.Error:
        # The caller has failed and does not read on; what ending the stream early reports would be printed.
        if read_on:
            raise
        return
    rest = pending[head : len(pending) - len(_COPY_END)]
    if rest:
        yield _parse(rest, layout, where)


def write_records(connection: Connection, table: str, records: Records) -> None:
    """Append all of them or, if that fails, none."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as stream:
        stream.write(_COPY_SIGNATURE + bytes(8))
        stream.write(records.tobytes())
        stream.write(_COPY_END)


def with_vectors(records: Records, vectors: NDArray[np.floating]) -> Records:
    """The same rows with other vectors (n, k), in the type that they are stored in."""
    dim, number = vectors.shape[1], records.dtype["vector"].base
    layout = record_type(dim, half=number.itemsize == 2)
    made = np.empty(len(records), layout)
    for field in ("fields", "version", "unused"):
        made[field] = records[field]
    made["length"], made["dim"], made["vector"] = 4 + dim * number.itemsize, dim, vectors
    return made


def vectors_of(records: Records) -> NDArray[np.floating]:
    """(n, d) as stored, float16 or float32, in native byte order."""
    stored: NDArray[np.floating] = records["vector"]
    return stored.astype(stored.dtype.newbyteorder("="))


def row_ids(records: Records) -> NDArray[np.int64]:
    """A number for each row, by the table it is in and its place there; ``row_id`` gives the same."""
    version = np.ascontiguousarray(records["version"]).view(np.uint8).reshape(len(records), -1)
    table, block = (version[:, start : start + 4].copy().view(">u4")[:, 0].astype(np.int64) for start in (4, 20))
    place = version[:, 24:26].copy().view(">u2")[:, 0].astype(np.int64)
    return (table % 2**15) * 2**48 + block * 2**16 + place


def row_id(table: int, at: str) -> int:
    """Of a row's ``tableoid`` and ``ctid``, as ``(block,place)``."""
    block, place = at.strip("()").split(",")
    return int((table % 2**15) * 2**48 + int(block) * 2**16 + int(place))


def _parse(raw: bytearray, layout: np.dtype[np.void], where: str) -> Records:
    dim = layout["vector"].shape[0]
    rows = len(raw) // layout.itemsize
    records = np.frombuffer(raw, layout, count=rows)
    if len(raw) != rows * layout.itemsize or (records["dim"] != dim).any() or (records["fields"] != 5).any():
        raise UnfaceError(f"{where}: a vector does not have {dim} dimensions; keep vectors of one dimension only")
    return records
