"""Vectors in PostgreSQL's binary COPY stream, as numpy records: nothing is made for each value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.stores.postgres_session import Session

Records = NDArray[np.void]

# Which version of a row a vector is of: table, its file, place in the file, transaction. An update, VACUUM FULL, …
# changes at least one of the four, so that equal ones mean an equal row.
ROW_VERSION = "part, file, at, born"
VERSION_TYPES = "part oid, file oid, at tid, born xid"
VERSION = "tableoid AS part, pg_relation_filenode(tableoid) AS file, ctid AS at, xmin AS born"

_BATCH_BYTES = 16 << 20
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_END = b"\xff\xff"


def record_type(dim: int, *, half: bool) -> np.dtype[np.void]:
    """One row of ``ROW_VERSION, vector`` on the wire; no field is NULL, so that all rows are of one length."""
    return np.dtype(
        [
            ("fields", ">i2"),
            ("version", f"V{8 + 8 + 10 + 8}"),  # a length of four bytes goes before each value
            ("length", ">i4"),
            ("dim", ">i2"),
            ("unused", ">i2"),
            ("vector", ">f2" if half else ">f4", (dim,)),
        ]
    )


def read_records(opened: Session, query: str, layout: np.dtype[np.void], where: str) -> Iterator[Records]:
    """Batches of what a query of ``ROW_VERSION, vector`` finds; may be changed in place."""
    pending = bytearray()
    head = len(_SIGNATURE) + 8
    batch = max(1, _BATCH_BYTES // layout.itemsize) * layout.itemsize
    with opened.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as rows:
        for row in rows:
            pending += row
            if len(pending) >= head + batch:
                yield _records(pending[head : head + batch], layout, where)
                # The signature stays in front for as long as the stream lasts.
                del pending[head : head + batch]
    rest = pending[head : len(pending) - len(_END)]
    if rest:
        yield _records(rest, layout, where)


def write_records(opened: Session, table: str, records: Records) -> None:
    """All of them or, where that fails, none."""
    with opened.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as rows:
        rows.write(_SIGNATURE + bytes(8))
        rows.write(records.tobytes())
        rows.write(_END)


def vectors_of(records: Records) -> NDArray[np.floating]:
    """(n, d) as stored, float16 or float32."""
    stored: NDArray[np.floating] = records["vector"]
    return stored.astype(stored.dtype.newbyteorder("="))


def _records(raw: bytearray, layout: np.dtype[np.void], where: str) -> Records:
    dim = layout["vector"].shape[0]
    whole = len(raw) // layout.itemsize
    records = np.frombuffer(raw, layout, count=whole)
    if len(raw) != whole * layout.itemsize or (records["dim"] != dim).any() or (records["fields"] != 5).any():
        raise UnfaceError(f"{where}: a vector that is not of {dim} dimensions; keep vectors of one dimension only")
    return records
