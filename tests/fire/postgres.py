"""PostgreSQL under fire: kill the client, end the server's process in order, or kill that process."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from tests.fire.held_run import Announce, HeldRun, Step
from tests.fire.target import Found
from tests.fire.traffic import Pool
from tests.stores.contract import DIM
from tests.stores.postgres_server import Server, clear, server, text


class PostgresSession:
    def __init__(self, uri: str) -> None:
        self._opened = psycopg.connect(uri, autocommit=True)

    def insert(self, row: int, version: int, vector: NDArray[np.float32]) -> None:
        self._opened.execute("INSERT INTO faces VALUES (%s, %s, 'new', %s)", (row, version, text(vector)))

    def update(self, row: int, version: int, vector: NDArray[np.float32]) -> None:
        with self._opened.transaction():
            self._opened.execute("SELECT FROM faces WHERE id = %s FOR UPDATE", (row,))
            self._opened.execute("UPDATE faces SET version = %s, seen = %s WHERE id = %s", (version, text(vector), row))

    def relabel(self, row: int) -> None:
        self._opened.execute("UPDATE faces SET label = label || '.' WHERE id = %s", (row,))

    def delete(self, row: int) -> None:
        self._opened.execute("DELETE FROM faces WHERE id = %s", (row,))

    def version_of(self, row: int) -> int | None:
        found = self._opened.execute("SELECT version FROM faces WHERE id = %s", (row,)).fetchone()
        return None if found is None else int(found[0])

    def close(self) -> None:
        self._opened.close()


def wrap(announce: Announce) -> None:
    """Every statement is a step. Rows go in batches of 250."""
    from unface.scale.receipt import Receipt
    from unface.stores import postgres_session
    from unface.stores.postgres import PostgresStore

    postgres_session._BATCH_BYTES = 250 * postgres_session.record_type(DIM, half=False).itemsize
    execute, copy = psycopg.Connection.execute, psycopg.Cursor.copy

    def executing(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        announce(str(query)[:60], self.info.backend_pid)
        return execute(self, query, *given, **more)

    def copying(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        announce(str(query)[:60], self.connection.info.backend_pid)
        return copy(self, query, *given, **more)

    psycopg.Connection.execute = executing  # type: ignore[method-assign]
    psycopg.Cursor.copy = copying  # type: ignore[method-assign,assignment]
    for name in ("swap", "erase_arrivals", "purge"):
        announce.around(PostgresStore, name)
    announce.around(Receipt, "save")


class PostgresTarget:
    """``how``: ``client`` kills the run itself, ``terminate`` and ``backend`` a process of the server."""

    rows, clients, pause = 2000, 3, 0.002
    wrap = staticmethod(wrap)

    def __init__(self, how: str) -> None:
        self.how = how
        self.server: Server = server()

    def url(self) -> str:
        return f"{self.server.uri}&table=faces&column=seen"

    def fill(self, pool: Pool) -> None:
        clear(self.server.uri)
        with self._session() as opened:
            for (path,) in opened.execute(_ORPHANS).fetchall():
                (self.server.folder / path).unlink(missing_ok=True)
            opened.execute(f"CREATE TABLE faces (id int PRIMARY KEY, version int, label text, seen vector({DIM}))")
            with opened.cursor().copy("COPY faces FROM STDIN") as stream:
                for row in range(self.rows):
                    stream.write_row((row, 0, "old", text(pool.raw(row, 0))))
            opened.execute(
                "CREATE INDEX ON faces USING hnsw (seen vector_cosine_ops) WITH (m = 4, ef_construction = 8)"
            )
            opened.execute("ANALYZE faces")

    def connect(self) -> PostgresSession:
        return PostgresSession(self.server.uri)

    def read(self) -> dict[int, Found]:
        with self._session() as opened:
            # Not through the index of the primary key: it must agree with the table.
            rows = opened.execute("SELECT id, version, seen::text FROM faces").fetchall()
        found = {int(row): Found(int(version), _vector(seen)) for row, version, seen in rows}
        assert len(found) == len(rows), "a row is there twice"
        return found

    def kept(self) -> dict[int, NDArray[np.float32]]:
        with self._session() as opened:
            ((name,),) = opened.execute(
                "SELECT relname FROM pg_class WHERE starts_with(relname, 'unface_raw') AND relkind = 'r'"
            ).fetchall()
            return {int(row): _vector(seen) for row, seen in opened.execute(f"SELECT id, seen::text FROM {name}")}

    def faults(self, purged: bool) -> list[str]:
        with self._session() as opened:
            left = [
                str(name)
                for (name,) in opened.execute("SELECT relname FROM pg_class WHERE starts_with(relname, 'unface')")
                if purged or not str(name).startswith("unface_raw")
            ]
            left += [str(name) for (name,) in opened.execute("SELECT proname FROM pg_proc WHERE proname ~ 'unface'")]
            broken = "SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid OR NOT indisready"
            left += [f"invalid {name}" for (name,) in opened.execute(broken)]
            opened.execute("SET enable_seqscan = off")
            plan = str(
                opened.execute(
                    "EXPLAIN SELECT id FROM faces ORDER BY seen <=> (SELECT seen FROM faces LIMIT 1) LIMIT 1"
                ).fetchall()
            )
        return [f"left over: {', '.join(left)}"] * bool(left) + ["no index"] * ("faces_seen_idx" not in plan)

    def files(self) -> Iterable[Path]:
        return [path for path in self.server.folder.rglob("*") if path.is_file()]

    def lists(self, notes: str, path: Path) -> bool:
        named = re.findall(r"(?:base|pg_tblspc)/[\w/]+", notes)
        place = path.relative_to(self.server.folder).as_posix()
        if any(place == each or place.startswith((f"{each}.", f"{each}_")) for each in named):
            return True
        with self._session() as opened:
            ((of_table,),) = opened.execute("SELECT pg_relation_filepath('faces')").fetchall()
        return "VACUUM FULL public.faces" in notes and place.startswith(of_table)

    def hit(self, run: HeldRun, step: Step, rng: np.random.Generator, pause: Callable[[], None]) -> None:
        if self.how == "client":
            pause()
            run.kill()
            return
        with self._session() as opened:
            ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'unface'"
            pids = [int(pid) for (pid,) in opened.execute(ours)]
            # Mostly the process that has the statement; sometimes one that only holds a lock.
            pid = step.pid if step.pid in pids and rng.random() < 0.75 else int(rng.choice(pids or [0]))
            if pid == 0:
                run.kill()
                return
            pause()
            if self.how == "terminate":
                opened.execute("SELECT pg_terminate_backend(%s)", (pid,))
                return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _session(self) -> "psycopg.Connection[Any]":
        """Waits for a server that recovers."""
        begun = time.monotonic()
        while True:
            try:
                return psycopg.connect(self.server.uri, autocommit=True)
            except psycopg.OperationalError:
                if time.monotonic() - begun > 60:
                    raise
                time.sleep(0.02)


def _vector(written: str) -> NDArray[np.float32]:
    return np.array(written[1:-1].split(","), np.float32)


_ORPHANS = """
SELECT path FROM (SELECT 'base/' || d.oid || '/' || name AS path, substring(name FROM '^[0-9]+') AS number
    FROM pg_database d, pg_ls_dir('base/' || d.oid) name
    WHERE datname = current_database() AND name ~ '^[0-9]+([._]|$)') files
WHERE pg_filenode_relation(0, number::oid) IS NULL
"""
