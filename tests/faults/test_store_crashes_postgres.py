"""If these fail, a run that dies half way costs a pgvector table its vectors, its index, or the way back to the end."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit.processes import PROCESSES
from tests.refusals.table import refused
from tests.stores.contract import DIM, projection, raw_vectors
from tests.stores.postgres_server import Database, emptied, own_server
from unface.scale import released_vectors
from unface.stores import sanitise_store
from unface.stores.postgres import PostgresStore

if TYPE_CHECKING:
    import psycopg

PROJECTION = projection()
ROWS = 200
# Statements before which the process kills itself, and at which time that one comes.
STAGING = [("COPY public.unface_staged", 2), ("CREATE UNIQUE INDEX", 1)]
SWAPPING = [
    ("LOCK TABLE", 2),
    ("CREATE TABLE public.unface_raw", 1),
    ("ALTER TABLE public.faces", 1),
    ("DROP TABLE public.unface_staged", 1),
]
SWAPPED = [("VACUUM (ANALYZE)", 1), ("TRUNCATE", 1), ("ALTER TABLE public.unface_raw", 2)]
PURGED = [("SELECT pg_switch_wal", 1), ("DROP TABLE IF EXISTS public.unface_raw", 1)]


@pytest.fixture
def database() -> Iterator[Database]:
    """Faces under an index; while ``slow`` has a row, each of them takes its time to be rewritten."""
    with emptied() as made:
        made.run(
            "CREATE TABLE slow ()",
            "CREATE FUNCTION awaited(vector) RETURNS bool LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(0.02) FROM slow; RETURN true; END'",
        )
        made.faces(ROWS, more=" CHECK (awaited(seen))")
        made.run("CREATE INDEX ON faces USING hnsw (seen vector_cosine_ops)")
        yield made


def sanitise(uri: str, dies_before: str, time: int) -> None:
    """In a process of its own; rows go in batches of 50."""
    import psycopg

    from unface.stores import postgres_session

    postgres_session._BATCH_BYTES = 50 * postgres_session.record_type(DIM, half=False).itemsize
    left = time

    def watch(statement: object) -> None:
        nonlocal left
        left -= str(statement).startswith(dies_before)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    execute, copy = psycopg.Connection.execute, psycopg.Cursor.copy
    psycopg.Connection.execute = lambda self, query, *a, **k: watch(query) or execute(self, query, *a, **k)  # type: ignore
    psycopg.Cursor.copy = lambda self, query, *a, **k: watch(query) or copy(self, query, *a, **k)  # type: ignore
    sanitise_store(PROJECTION, PostgresStore(uri, "faces", "seen"), purge=True)


def started(database: Database, dies_before: str = "nothing", time: int = 1) -> BaseProcess:
    process = PROCESSES.Process(target=sanitise, args=(database.uri, dies_before, time))
    process.start()
    return process


def rewriting(database: Database) -> int:
    """The server's process that rewrites the table, once it does."""
    for _ in range(6000):
        found = database.ask(
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND starts_with(query, 'ALTER TABLE public.faces')"
        )
        if found:
            return int(str(found[0][0]))
        sleep(0.02)
    raise AssertionError("the table is not being rewritten")


def is_searchable(database: Database, vectors: NDArray[np.float32]) -> bool:
    """All there, and each found through the index by itself."""
    database.run("SET enable_seqscan = off")
    query = "SELECT id FROM faces ORDER BY seen <=> %s::vector LIMIT 1"
    asked = [(str(vector.astype(np.float64).tolist()),) for vector in vectors[:20]]
    assert "Index Scan using faces_seen_idx" in str(database.ask(f"EXPLAIN {query}", asked[0]))
    there = database.vectors()
    found = [database.ask(query, each)[0][0] for each in asked]
    return there.shape == vectors.shape and np.allclose(there, vectors, atol=1e-6) and found == list(range(1, 21))


def ends_right(database: Database) -> bool:
    """By the same call again."""
    sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen"), purge=True)
    return is_searchable(database, ERASED) and database.leftovers() == []


RAW = raw_vectors(ROWS)
ERASED = released_vectors(PROJECTION, RAW, "here")


@pytest.mark.parametrize(("statement", "time"), STAGING + SWAPPING)
def test_killed_before_the_swap_is_done_the_table_is_as_it_was(database: Database, statement: str, time: int) -> None:
    process = started(database, statement, time)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert is_searchable(database, RAW)
    assert ends_right(database)


@pytest.mark.parametrize(("statement", "time"), SWAPPED + PURGED)
def test_killed_after_the_swap_the_same_call_purges(database: Database, statement: str, time: int) -> None:
    process = started(database, statement, time)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert is_searchable(database, ERASED)
    assert PostgresStore(database.uri, "faces", "seen").inspect().raw_kept
    assert ends_right(database)


def test_what_was_staged_before_the_kill_is_not_staged_again(database: Database) -> None:
    started(database, "COPY public.unface_staged", 2).join(120)
    (staged,) = database.leftovers()
    assert database.ask(f"SELECT count(*) FROM {staged}") == [(50,)]
    assert ends_right(database)


def test_killed_while_the_table_is_being_rewritten_it_stays_as_it_was(database: Database) -> None:
    """The server's process goes on for a moment, with its lock; the next run waits for it."""
    database.run("INSERT INTO slow DEFAULT VALUES")
    process = started(database)
    rewriting(database)
    process.kill()
    process.join(120)
    database.run("DELETE FROM slow")
    assert is_searchable(database, RAW)
    assert ends_right(database)


def test_a_server_process_ended_while_it_rewrites_leaves_the_table_as_it_was(database: Database) -> None:
    database.run("INSERT INTO slow DEFAULT VALUES")
    process = started(database)
    database.ask("SELECT pg_terminate_backend(%s)", (rewriting(database),))
    process.join(120)
    assert process.exitcode == 1
    database.run("DELETE FROM slow")
    assert is_searchable(database, RAW)
    assert ends_right(database)


@pytest.mark.parametrize("step", ["reading", "swap"])
def test_ctrl_c_is_one_line_without_warnings_of_the_driver(database: Database, tmp_path: Path, step: str) -> None:
    """Pressed while the server works on a statement, which the driver then cannot roll back."""
    PROJECTION.save(tmp_path / "p.safetensors")
    held_up = "ACCESS EXCLUSIVE" if step == "reading" else "ACCESS SHARE"
    with database.opened.transaction():
        database.run(f"LOCK TABLE faces IN {held_up} MODE")
        store = f"{database.uri}&table=faces&column=seen"
        command = [sys.executable, "-m", "unface", "apply", str(tmp_path / "p.safetensors"), "--store", store]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        waiting = "SELECT FROM pg_locks WHERE relation = 'faces'::regclass AND NOT granted"
        while not database.ask(waiting):
            assert process.poll() is None
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
    assert (process.returncode, printed) == (130, "")
    assert errors == "unface: interrupted; no file was left half-written\n"
    assert ends_right(database)


def test_a_server_that_crashed_after_staging_has_vectors_staged_again(database: Database) -> None:
    """Staged ones are not in the write-ahead log: after a crash their table is there, and empty."""
    store = PostgresStore(database.uri, "faces", "seen")
    started(database, "LOCK TABLE", 2).join(120)
    staged = next(name for name in database.leftovers() if name.startswith("unface_staged_") and "idx" not in name)
    database.run(f"TRUNCATE {staged}")
    assert store.unmatched() == ROWS
    with refused("store", "localhost/postgres/faces"):
        store.swap(PROJECTION.sha256)
    assert is_searchable(database, RAW)
    assert ends_right(database)


@pytest.fixture
def crashed() -> Iterator[Database]:
    """A server of this test's own: what a crash leaves in its files is nothing for other tests to find."""
    with own_server() as database:
        database.faces(ROWS)
        yield database


def test_a_file_that_a_killed_server_process_left_is_named_in_the_receipt(crashed: Database) -> None:
    """Killed inside CREATE TABLE … AS, before the commit: the server recovers, and the file stays without a table."""
    import psycopg

    killed = psycopg.connect(crashed.uri)
    killed.execute("CREATE TABLE copied AS SELECT * FROM faces")
    ((path,),) = killed.execute("SELECT pg_relation_filepath('copied')").fetchall()
    crashed.run("CHECKPOINT")
    os.kill(killed.info.backend_pid, signal.SIGKILL)
    killed.close()
    # The server ends every session before it recovers: while one still answers, it has not noticed yet.
    while answers(crashed.opened):
        sleep(0.02)
    while not connects(crashed.uri):
        sleep(0.02)
    receipt = sanitise_store(PROJECTION, PostgresStore(crashed.uri, "faces", "seen"), purge=True)
    assert crashed.in_files(RAW[7])
    (note,) = (note for note in receipt.notes if "belong to no table" in note)
    named = re.findall(r"base/\d+/\d+", note)
    for each in named:  # its TOAST table's too
        (crashed.folder / each).unlink()
    assert path in named
    assert not crashed.in_files(RAW[7])


def answers(session: "psycopg.Connection") -> bool:
    import psycopg

    try:
        session.execute("SELECT")
    except psycopg.OperationalError:
        return False
    return True


def connects(uri: str) -> bool:
    import psycopg

    try:
        psycopg.connect(uri).close()
    except psycopg.OperationalError:
        return False
    return True
