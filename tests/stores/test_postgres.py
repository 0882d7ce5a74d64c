"""If these fail, sanitising a pgvector column breaks its table, or loses, mixes up or keeps raw vectors.

Three parts: the table and its rows; raw vectors until and after the purge; refusals, before anything is written.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.stores.contract import DIM, projection, raw_vectors
from tests.stores.postgres_server import Database, emptied, text
from unface import Projection
from unface.data import Space
from unface.erase.gate import Gate
from unface.progress import Silent
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.scale import Receipt, released_vectors
from unface.scale.receipt import Check
from unface.stores import sanitise_store
from unface.stores.ports import Holding
from unface.stores.postgres import PostgresStore

PROJECTION = projection()
MARK = PROJECTION.sha256
ROWS = 40


@pytest.fixture
def database() -> Iterator[Database]:
    with emptied() as made:
        yield made


@pytest.fixture
def store(database: Database) -> PostgresStore:
    return PostgresStore(database.uri, "faces", "seen")


def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    return released_vectors(PROJECTION, vectors, "here")


LIVED_IN = """
CREATE TABLE people (id int PRIMARY KEY);
CREATE TABLE faces (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text DEFAULT 'none' NOT NULL,
    serial_no serial UNIQUE, person int REFERENCES people ON DELETE CASCADE, changed int NOT NULL DEFAULT 0,
    twice int GENERATED ALWAYS AS (changed * 2) STORED, seen vector(32) CHECK (vector_dims(seen) = 32), last date
) WITH (fillfactor = 70);
CREATE TABLE tags (face bigint REFERENCES faces, tag text);
CREATE INDEX by_cosine ON faces USING hnsw (seen vector_cosine_ops) WITH (m = 5, ef_construction = 33);
CREATE INDEX by_length ON faces USING ivfflat (seen vector_l2_ops) WITH (lists = 3) WHERE changed = 0;
CREATE INDEX by_bits ON faces USING hnsw ((binary_quantize(seen)::bit(32)) bit_hamming_ops);
CREATE INDEX by_note ON faces (note) INCLUDE (person);
COMMENT ON INDEX by_cosine IS 'the search';
COMMENT ON COLUMN faces.seen IS 'what the camera''s model saw';
COMMENT ON TABLE faces IS 'all faces';
ALTER TABLE faces ALTER COLUMN seen SET STORAGE MAIN, ALTER COLUMN seen SET STATISTICS 7,
    ALTER COLUMN seen SET (n_distinct = -0.5), ALTER COLUMN seen SET COMPRESSION pglz, REPLICA IDENTITY FULL;
ALTER TABLE faces CLUSTER ON by_note;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.changed := NEW.changed + 1; RETURN NEW; END';
CREATE TRIGGER touched BEFORE INSERT OR UPDATE ON faces FOR EACH ROW EXECUTE FUNCTION touch();
CREATE FUNCTION all_of() RETURNS SETOF faces LANGUAGE sql AS 'SELECT * FROM faces';
CREATE VIEW notes AS SELECT id, note FROM faces;
CREATE STATISTICS of_faces ON person, changed FROM faces;
CREATE ROLE reader; GRANT SELECT ON faces TO reader; GRANT UPDATE (seen) ON faces TO reader;
ALTER TABLE faces ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON faces TO reader USING (person = 1);
CREATE PUBLICATION news FOR TABLE faces;
INSERT INTO people SELECT generate_series(1, 3);
"""


def test_nothing_of_a_lived_in_table_changes_but_its_vectors(database: Database, store: PostgresStore) -> None:
    database.run(LIVED_IN)
    try:
        for row, vector in enumerate(raw_vectors(ROWS)):
            added = "INSERT INTO faces (note, person, seen, last) VALUES (%s, %s, %s, now()) RETURNING id"
            database.ask(added, (f"note {row}", 1 + row % 3, text(vector)))
        rest = "SELECT id, note, serial_no, person, changed, twice, last FROM faces ORDER BY id"
        before, schema = database.ask(rest), database.schema()
        receipt = sanitise_store(PROJECTION, store, purge=True)
        assert database.schema() == schema
        assert database.ask(rest) == before
        assert database.vectors() == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
        (comment,) = database.ask("SELECT col_description('faces'::regclass, 7)")
        assert comment == (f"what the camera's model saw\nunface: erased with projection {MARK}",)
        assert database.ask("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(0,)]
        assert any("subscribers of news keep raw vectors" in note for note in receipt.notes)
        added = "INSERT INTO faces (seen) SELECT seen FROM faces LIMIT 1 RETURNING id, serial_no, changed"
        assert database.ask(added) == [(ROWS + 1, ROWS + 1, 1)]
    finally:
        database.run("DROP PUBLICATION IF EXISTS news", "DROP TABLE faces CASCADE", "DROP ROLE IF EXISTS reader")


def test_a_search_goes_through_the_index_made_anew(database: Database, store: PostgresStore) -> None:
    raw = database.faces(300)
    database.run("CREATE INDEX ON faces USING hnsw (seen vector_cosine_ops)")
    sanitise_store(PROJECTION, store)
    database.run("SET enable_seqscan = off")
    query = "SELECT id FROM faces ORDER BY seen <=> %s::vector LIMIT 1"
    for row in (0, 150, 299):
        asked = (text(erase(raw[row : row + 1])[0]),)
        assert "Index Scan using faces_seen_idx" in str(database.ask(f"EXPLAIN {query}", asked))
        assert database.ask(query, asked) == [(row + 1,)]


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("INSERT INTO faces (seen) TABLE one", ROWS + 1),
        ("DELETE FROM faces WHERE id = 3", ROWS - 1),
        ("UPDATE faces SET seen = (TABLE one) WHERE id = 3", ROWS),
        ("UPDATE faces SET seen = NULL WHERE id = 3", ROWS - 1),
        # Rows lie elsewhere then; were they told apart by place alone, they would be mixed up.
        ("CREATE INDEX back ON faces ((-id)); CLUSTER faces USING back", ROWS),
        # The new row takes the place of the old one.
        ("DELETE FROM faces WHERE id = 3; VACUUM faces; INSERT INTO faces (seen) TABLE one", ROWS),
    ],
)
def test_what_is_written_after_staging_is_neither_lost_nor_left_raw(
    database: Database, store: PostgresStore, written: str, rows: int
) -> None:
    database.run(f"CREATE TABLE one (seen vector({DIM}))")
    database.ask("INSERT INTO one VALUES (%s) RETURNING 1", (text(raw_vectors(1, seed=9)[0]),))
    with database.opened.transaction():
        database.faces()  # in one transaction, so that it does not tell rows apart
    store.stage(erase, MARK, Silent())
    database.run(*written.split("; "))
    assert store.unmatched() > 0
    with refused("store", "localhost/postgres/faces", "added"):
        store.swap(MARK)
    kept = "SELECT id, seen::text FROM faces WHERE seen IS NOT NULL ORDER BY id"
    raw = np.array([str(seen)[1:-1].split(",") for _, seen in database.ask(kept)], np.float32)
    assert sanitise_store(PROJECTION, store).rows == rows == len(raw)
    found = np.array([str(seen)[1:-1].split(",") for _, seen in database.ask(kept)], np.float32)
    assert found == pytest.approx(erase(raw), abs=1e-6)


def test_a_write_in_flight_at_the_swap_is_waited_for_and_then_refused(database: Database, store: PostgresStore) -> None:
    raw = database.faces()
    store.stage(erase, MARK, Silent())
    with ThreadPoolExecutor(1) as pool:
        with database.opened.transaction():
            database.run("INSERT INTO faces (seen) SELECT seen FROM faces WHERE id = 3")
            swapping = pool.submit(store.swap, MARK)
            wait_until(lambda: database.ask("SELECT pid FROM pg_locks WHERE NOT granted"), "the swap never waited")
            assert not swapping.done()
        with refused("store", "localhost/postgres/faces", "1", "rows"):
            swapping.result(120)
    assert database.vectors() == pytest.approx(np.vstack([raw, raw[2]]), abs=1e-7)


def wait_for_locks(database: Database, mode: str, waiting: int) -> None:
    """Until so many sessions queue for a lock of that mode on the table."""
    query = "SELECT count(*) FROM pg_locks WHERE relation = 'faces'::regclass AND mode = %s AND NOT granted"
    said = f"{waiting} sessions never waited for {mode}"
    wait_until(lambda: database.ask(query, (mode,)) == [(waiting,)], said)


def wait_until(happened: Callable[[], object], otherwise: str) -> None:
    """However busy the machine is; a test whose moment never comes fails."""
    ends = monotonic() + 120
    while not happened():
        assert monotonic() < ends, otherwise
        sleep(0.02)


@pytest.mark.parametrize("kind", ["plain", "partitioned", "inherited"])
@pytest.mark.parametrize("purge", [True, False])
def test_rows_that_wait_for_the_swap_are_erased_too_and_counted(
    database: Database, store: PostgresStore, purge: bool, kind: str
) -> None:
    """Writers queue behind the swap, get the table after it, and write what they have: raw vectors."""
    parts = {
        "plain": "",
        "partitioned": " PARTITION BY RANGE (id)",
        "inherited": "; CREATE TABLE more () INHERITS (faces); INSERT INTO more VALUES (1000, NULL)",
    }
    database.run(
        f"CREATE TABLE faces (id int{'' if kind == 'inherited' else ' PRIMARY KEY'}, seen vector({DIM}))" + parts[kind]
    )
    if kind == "partitioned":
        database.run("CREATE TABLE old PARTITION OF faces FOR VALUES FROM (0) TO (42)")
        database.run("CREATE TABLE new PARTITION OF faces FOR VALUES FROM (42) TO (1000)")
    raw = raw_vectors(ROWS + 5)
    database.write(dict(enumerate(raw[:ROWS])))
    with ThreadPoolExecutor(6) as pool:
        with database.opened.transaction():
            database.ask("SELECT count(*) FROM faces")  # a reader holds up the swap
            run = pool.submit(sanitise_store, PROJECTION, store, purge=purge)
            wait_for_locks(database, "AccessExclusiveLock", 1)
            late = [pool.submit(Database.write_apart, database, {ROWS + row: raw[ROWS + row]}) for row in range(4)]
            change = "UPDATE faces SET seen = %s WHERE id = 3"
            late.append(pool.submit(Database.run_apart, database, change, (text(raw[ROWS + 4]),)))
            wait_for_locks(database, "RowExclusiveLock", 5)
        receipt = run.result(120)
        for each in late:
            each.result(120)
    written = np.vstack([raw[:3], raw[ROWS + 4], raw[4 : ROWS + 4]])
    found = database.ask("SELECT seen::text FROM faces WHERE seen IS NOT NULL ORDER BY id")
    assert np.array([str(seen)[1:-1].split(",") for (seen,) in found], np.float32) == pytest.approx(
        erase(written), abs=1e-6
    )
    assert (receipt.rows, receipt.arrived, receipt.raw_purged) == (ROWS, 5, purge)
    assert any(note.startswith("5 rows arrived with raw vectors") for note in receipt.notes)
    if purge:
        assert database.leftovers() == []
        assert not any(database.in_files(vector) for vector in raw[[0, 3, *range(ROWS, ROWS + 5)]])
    else:
        (kept,) = database.leftovers()
        keyed = f"SELECT DISTINCT ON (id) seen::text FROM {kept} ORDER BY id" + (
            ", seen = %s DESC" if kind == "inherited" else ""
        )
        back = database.ask(keyed, (text(raw[ROWS + 4]),) if kind == "inherited" else None)
        assert np.array([str(seen)[1:-1].split(",") for (seen,) in back], np.float32) == pytest.approx(
            written, abs=1e-7
        )


def test_rows_that_keep_arriving_raw_end_the_run_with_an_error(
    database: Database, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.faces()
    look = store.erase_arrivals

    def writing(*given: Any) -> int:
        database.add(raw_vectors(1, seed=8))
        return look(*given)

    monkeypatch.setattr(store, "erase_arrivals", writing)
    with refused("store", "localhost/postgres/faces", "arriving"):
        sanitise_store(PROJECTION, store, purge=True)
    monkeypatch.undo()
    assert store.inspect().raw_kept
    sanitise_store(PROJECTION, store, purge=True)
    assert database.leftovers() == []
    assert not database.in_files(raw_vectors(1, seed=8)[0])


@pytest.mark.parametrize("kind", ["vector", "halfvec"])
@pytest.mark.parametrize("mean", [None, "scaled", "fixed"])
def test_a_trigger_rejects_raw_vectors_from_then_on_if_asked(database: Database, kind: str, mean: str | None) -> None:
    import psycopg

    by = PROJECTION
    if mean is not None:
        directions = np.eye(DIM)[:, :3]
        space = Space(None, None, DIM, normalised=True)
        by = Projection(
            "leace",
            directions,
            np.ones(3),
            space,
            readers=directions.copy(),
            mean=np.full(DIM, 0.1),
            normalise=mean == "scaled",
        )
    database.faces(kind=f"{kind}({DIM})")
    guarded = PostgresStore(database.uri, "faces", "seen", reject_raw=True)
    sanitise_store(by, guarded, purge=True)
    more = raw_vectors(20, seed=5)
    for vector in more:
        with pytest.raises(psycopg.errors.CheckViolation, match="a raw vector was written to a sanitised column"):
            database.add(vector[None])
    database.add(by.apply(more))
    with pytest.raises(psycopg.errors.CheckViolation):
        database.ask("UPDATE faces SET seen = %s WHERE id = 3 RETURNING id", (text(more[0]),))
    database.run("UPDATE faces SET seen = NULL WHERE id = 3", "INSERT INTO faces (seen) VALUES (NULL)")
    assert len(database.ask("SELECT FROM faces")) == ROWS + 21


def test_the_trigger_of_a_gated_projection_lets_pass_what_the_gate_takes_for_no_face(database: Database) -> None:
    import psycopg

    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    by = replace(PROJECTION, gate=Gate(np.eye(DIM)[0], 0.0, certificate))
    raw = database.faces()
    receipt = sanitise_store(by, PostgresStore(database.uri, "faces", "seen", reject_raw=True), purge=True)
    assert receipt.not_faces == int((raw[:, 0] <= 0).sum())
    more = raw_vectors(30, seed=5)
    faces = more[:, 0] > 0.01
    others = more[:, 0] < -0.01
    assert min(faces.sum(), others.sum()) > 5
    database.add(more[others])
    database.add(by.apply(more[faces]))
    for vector in more[faces]:
        with pytest.raises(psycopg.errors.CheckViolation, match="a raw vector was written to a sanitised column"):
            database.add(vector[None])
    assert len(database.vectors()) == ROWS + others.sum() + faces.sum()


@pytest.mark.parametrize(("metric", "sign"), [("l2", "<->"), ("ip", "<#>"), ("cosine", "<=>")])
def test_the_receipt_says_what_its_index_finds_before_and_after(
    database: Database, store: PostgresStore, metric: str, sign: str
) -> None:
    """One list of 24 is searched; by hand, of the ten nearest of every third vector, with the index and without it."""
    database.faces(600)
    database.opened.prepare_threshold = None  # a prepared plan would not follow the settings
    database.run(f"CREATE INDEX ON faces USING ivfflat (seen vector_{metric}_ops) WITH (lists = 24)")

    def by_hand() -> float:
        shares = []
        for row, vector in list(enumerate(database.vectors(), 1))[::3]:
            near = f"SELECT id FROM faces ORDER BY seen {sign} %s::vector LIMIT 11"
            database.run("SET enable_seqscan = off", "SET enable_sort = off", "SET enable_indexscan = on")
            found = set(database.ask(near, (text(vector),)))
            database.run("SET enable_seqscan = on", "SET enable_sort = on", "SET enable_indexscan = off")
            exact = [one for one in database.ask(near, (text(vector),)) if one != (row,)][:10]
            shares.append(len(found & set(exact)) / 10)
        return float(np.mean(shares))

    before = by_hand()
    receipt = sanitise_store(PROJECTION, store)
    assert before < 0.9
    assert (receipt.recall_before, receipt.recall_after) == pytest.approx((before, by_hand()), abs=0.1)


def test_erased_rows_that_arrive_are_left_as_they_are(database: Database, store: PostgresStore) -> None:
    raw = database.faces()
    store.stage(erase, MARK, Silent())
    store.swap(MARK)
    database.add(erase(raw_vectors(2, seed=5)))
    database.run("UPDATE faces SET seen = seen WHERE id = 3")
    before = database.vectors()
    assert store.erase_arrivals(erase, Check(PROJECTION).is_erased) == 0
    assert np.array_equal(database.vectors(), before)
    assert len(before) == len(raw) + 2


def test_staging_again_erases_only_what_is_new(database: Database, store: PostgresStore) -> None:
    database.faces()
    seen: list[int] = []

    def counted(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        if len(vectors):  # no rows: a question about the dimension
            seen.append(len(vectors))
        return erase(vectors)

    store.stage(counted, MARK, Silent())
    database.add(raw_vectors(2, seed=5))
    database.run("DELETE FROM faces WHERE id = 1")
    store.stage(counted, MARK, Silent())
    assert seen == [ROWS, 2]
    assert store.unmatched() == 0


def test_reads_and_writes_go_on_while_vectors_are_staged(database: Database, store: PostgresStore) -> None:
    database.faces()
    database.run("SET lock_timeout = '1s'")

    def meanwhile(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        assert len(database.vectors()) == ROWS
        database.run("UPDATE faces SET seen = seen WHERE id = 1")
        return erase(vectors)

    store.stage(meanwhile, MARK, Silent())
    assert store.unmatched() == 2


def test_null_stays_null_and_is_no_row(database: Database, store: PostgresStore) -> None:
    database.faces()
    database.run("INSERT INTO faces (seen) VALUES (NULL), (NULL)")
    assert sanitise_store(PROJECTION, store, purge=True).rows == ROWS
    assert database.ask("SELECT id FROM faces WHERE seen IS NULL ORDER BY id") == [(ROWS + 1,), (ROWS + 2,)]


def test_a_column_that_names_no_dimension_is_taken_if_all_have_one(database: Database, store: PostgresStore) -> None:
    raw = database.faces(kind="vector")
    sanitise_store(PROJECTION, store)
    assert database.vectors() == pytest.approx(erase(raw), abs=1e-6)
    database.run("INSERT INTO faces (seen) VALUES ('[1,2,3]')")
    with refused("store", "localhost/postgres/faces", "of 3", "of 32"):
        store.inspect()
    database.run("DELETE FROM faces")
    with refused("store", "localhost/postgres/faces", "names"):
        store.inspect()


def test_all_parts_of_a_partitioned_table_are_sanitised(database: Database, store: PostgresStore) -> None:
    database.run(f"CREATE TABLE faces (id int PRIMARY KEY, seen vector({DIM})) PARTITION BY HASH (id)")
    for part in range(3):
        database.run(f"CREATE TABLE part{part} PARTITION OF faces FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
    database.run("CREATE INDEX ON faces USING hnsw (seen vector_l2_ops)")
    raw = raw_vectors(ROWS)
    for row, vector in enumerate(raw):
        database.ask("INSERT INTO faces VALUES (%s, %s) RETURNING id", (row, text(vector)))
    schema = database.schema()
    sanitise_store(PROJECTION, store, purge=True)
    assert database.vectors() == pytest.approx(erase(raw), abs=1e-6)
    assert database.schema() == schema
    with refused("store", "localhost/postgres/part1"):
        PostgresStore(database.uri, "part1", "seen").inspect()


def test_names_that_need_quotes_and_pgvector_in_a_schema_of_its_own(database: Database) -> None:
    database.run('CREATE SCHEMA "My ""faces"; CREATE SCHEMA ext; ALTER EXTENSION vector SET SCHEMA ext')
    try:
        name = '"My ""faces"."All $$ of % them"'
        database.run(f'CREATE TABLE {name} (id int, "Seen it" ext.vector({DIM}))')
        raw = raw_vectors(ROWS)
        for row, vector in enumerate(raw):
            database.ask(f"INSERT INTO {name.replace('%', '%%')} VALUES (%s, %s) RETURNING id", (row, text(vector)))
        sanitise_store(PROJECTION, PostgresStore(database.uri, name, "Seen it"), purge=True)
        assert database.vectors(name, '"Seen it"') == pytest.approx(erase(raw), abs=1e-6)
    finally:
        database.run('DROP SCHEMA "My ""faces" CASCADE; DROP SCHEMA ext CASCADE')


def test_a_second_run_at_the_same_time_is_refused(
    database: Database, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.faces()
    monkeypatch.setattr("unface.stores.postgres_session.LOCK_TIMEOUT", "100ms")

    def meanwhile(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        with refused("store", "localhost/postgres/faces", "working"):
            PostgresStore(database.uri, "faces", "seen").stage(erase, MARK, Silent())
        return erase(vectors)

    store.stage(meanwhile, MARK, Silent())
    assert store.unmatched() == 0


@pytest.mark.parametrize("seed", [0, 1], ids=["the same projection", "another projection"])
def test_a_second_run_begun_during_the_swap_leaves_the_kept_raw_vectors(
    database: Database, store: PostgresStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The second run reads the table as raw, is held until the first one has swapped, and then goes on."""
    raw = database.faces()
    inspected, swapped = Event(), Event()
    second = PostgresStore(database.uri, "faces", "seen")
    inspect, stage = second.inspect, second.stage

    def inspecting() -> Holding:
        held = inspect()
        inspected.set()
        return held

    def staging(*given: Any) -> None:
        assert swapped.wait(120)
        stage(*given)

    monkeypatch.setattr(second, "inspect", inspecting)
    monkeypatch.setattr(second, "stage", staging)
    swap = store.swap

    def swapping(mark: str) -> None:
        pool_runs.append(pool.submit(sanitise_store, projection(seed=seed), second))
        waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: inspected.is_set() or database.ask(waits), "the second run neither looked nor waited")
        swap(mark)
        swapped.set()

    monkeypatch.setattr(store, "swap", swapping)
    pool_runs: list[Future[Receipt]] = []
    with ThreadPoolExecutor(1) as pool:
        sanitise_store(PROJECTION, store)
        with refused("store", ..., "already"):
            pool_runs[0].result(120)
    kept = next(name for name in database.leftovers() if name.startswith("unface_raw_"))
    assert database.vectors(kept) == pytest.approx(raw, abs=1e-7)
    assert database.vectors() == pytest.approx(erase(raw), abs=1e-6)
    assert database.leftovers() == [kept]


def test_a_run_that_lost_its_lock_stages_nothing_over_a_sanitised_table(
    database: Database, store: PostgresStore
) -> None:
    """As after a cut connection: what decides is the mark, read under the table's own lock."""
    raw = database.faces()
    sanitise_store(PROJECTION, store)
    (kept,) = database.leftovers()
    for mark in (MARK, "another"):
        with refused("store", "localhost/postgres/faces", "meantime"):
            PostgresStore(database.uri, "faces", "seen").stage(erase, mark, Silent())
        with refused("store", "localhost/postgres/faces", "meantime"):
            PostgresStore(database.uri, "faces", "seen").swap(mark)
    assert database.leftovers() == [kept]
    assert database.vectors(kept) == pytest.approx(raw, abs=1e-7)


def test_no_other_run_gets_in_between_the_steps_of_one(
    database: Database, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.faces()
    monkeypatch.setattr("unface.stores.postgres_session.LOCK_TIMEOUT", "100ms")
    unmatched, refusals = store.unmatched, []

    def meanwhile() -> int:
        with refused("store", ..., "another run") as caught:
            sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen"))
        refusals.append(caught)
        return unmatched()

    monkeypatch.setattr(store, "unmatched", meanwhile)
    sanitise_store(PROJECTION, store)
    assert len(refusals) == 1


@pytest.mark.parametrize("keyed", [True, False])
def test_until_a_purge_raw_vectors_can_be_put_back_from_the_kept_table(
    database: Database, store: PostgresStore, keyed: bool
) -> None:
    raw = database.faces()
    if not keyed:
        database.run("ALTER TABLE faces DROP CONSTRAINT faces_pkey")
    sanitise_store(PROJECTION, store)
    assert database.vectors() != pytest.approx(raw, abs=1e-3)
    (kept,) = database.leftovers()
    assert kept.startswith("unface_raw_")
    database.run(f"UPDATE faces SET seen = raw.seen FROM {kept} raw WHERE raw.id = faces.id")
    assert database.vectors() == pytest.approx(raw, abs=1e-7)


@pytest.mark.parametrize("purge", [True, False])
@pytest.mark.parametrize("earlier", ["swapped", "finished", "purged"])
def test_rows_that_arrived_raw_before_an_earlier_run_ended_are_erased_by_the_same_call_and_listed(
    database: Database, store: PostgresStore, earlier: str, purge: bool
) -> None:
    """It was killed after its swap, or its last look was over: the table counts as sanitised and holds raw rows."""
    raw = database.faces()
    if earlier == "swapped":
        store.stage(erase, MARK, Silent())
        store.swap(MARK)
    else:
        sanitise_store(PROJECTION, store, purge=earlier == "purged")
    more = database.add(raw_vectors(3, seed=5))
    database.run("CREATE TABLE unface_staged_0 ()")
    ((staged,),) = database.ask("SELECT format('unface_staged_%s_2', 'faces'::regclass::oid)")
    database.run(f"ALTER TABLE unface_staged_0 RENAME TO {staged}")  # of a run killed while it replaced rows
    receipt = sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen"), purge=purge)
    assert (receipt.rows, receipt.arrived, receipt.raw_purged) == (ROWS + 3, 3, purge)
    assert receipt.notes[0].startswith("3 rows arrived with raw vectors")
    assert database.vectors() == pytest.approx(erase(np.concatenate([raw, more])), abs=1e-6)
    if purge:
        assert not database.in_files(more[1])
        assert database.leftovers() == []
    else:
        (kept,) = database.leftovers()
        assert database.vectors(kept)[-3:] == pytest.approx(more, abs=1e-7)
    with refused("store", "localhost/postgres/faces", "this"):
        sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen"))


def test_a_run_killed_before_it_created_its_trigger_gets_it_from_the_next(database: Database) -> None:
    database.faces()
    sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen"), purge=True)
    with refused("store", "localhost/postgres/faces", "nothing"):
        sanitise_store(PROJECTION, PostgresStore(database.uri, "faces", "seen", reject_raw=True))
    assert database.ask("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == [("unface_reject_raw",)]


def test_a_column_whose_mark_was_taken_away_is_not_erased_over_its_kept_raw_vectors(
    database: Database, store: PostgresStore
) -> None:
    raw = database.faces()
    sanitise_store(PROJECTION, store)
    database.run("COMMENT ON COLUMN faces.seen IS NULL")
    with refused("store", "localhost/postgres/faces", "_2"):
        sanitise_store(PROJECTION, store)
    (kept,) = database.leftovers()
    assert database.vectors(kept) == pytest.approx(raw, abs=1e-7)


def test_kept_and_staged_vectors_are_hidden_even_where_new_tables_are_open_to_all(
    database: Database, store: PostgresStore
) -> None:
    database.faces()
    database.run("CREATE ROLE anon; GRANT USAGE ON SCHEMA public TO anon; GRANT SELECT ON faces TO anon")
    database.run("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO anon")

    def hidden(table: str) -> None:
        for name, visible in [("faces", ROWS), (table, 0)]:
            assert database.ask(f"SELECT count(*) FROM {name}") == [(ROWS,)]
            database.run("SET ROLE anon")
            assert database.ask(f"SELECT count(*) FROM {name}") == [(visible,)]
            database.run("RESET ROLE")

    try:
        store.stage(erase, MARK, Silent())
        staged = next(name for name in database.leftovers() if not name.endswith("idx"))
        hidden(staged)
        store.swap(MARK)
        (kept,) = database.leftovers()
        hidden(kept)
    finally:
        database.run("RESET ROLE; DROP OWNED BY anon; DROP ROLE anon")


def test_statistics_and_later_checkpoints_bring_no_raw_vector_back(database: Database, store: PostgresStore) -> None:
    """Vectors of up to 1 KB lie whole in pg_statistic once their table was analysed."""
    raw = database.faces()
    database.run("ANALYZE faces")
    assert database.ask("SELECT histogram_bounds IS NOT NULL FROM pg_stats WHERE attname = 'seen'") == [(True,)]
    receipt = sanitise_store(PROJECTION, store, purge=True)
    assert not any(database.in_files(vector) for vector in raw[[0, 20, 39]])
    database.run("CHECKPOINT")
    assert not any(database.in_files(vector) for vector in raw[[0, 20, 39]])
    assert receipt.notes == ["backups and dumps made before this run hold raw vectors"]


def test_parts_of_the_log_that_are_used_again_are_told(database: Database, store: PostgresStore) -> None:
    database.faces()
    database.run("ALTER SYSTEM RESET wal_recycle", "SELECT pg_reload_conf()")
    try:
        notes = sanitise_store(PROJECTION, store, purge=True).notes
    finally:
        database.run("ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()")
    assert any(note.startswith("wal_recycle is on") for note in notes)


@pytest.mark.parametrize("fork", ["", ".1", "_fsm"])
def test_a_file_that_a_crash_left_without_a_table_is_named(database: Database, store: PostgresStore, fork: str) -> None:
    """As after a server process is killed while it creates a table: its file stays, and no catalogue lists it."""
    raw = database.faces()
    database.run("CHECKPOINT")
    ((path,),) = database.ask("SELECT pg_relation_filepath('faces')")
    orphan = (database.folder / str(path)).with_name(f"99999999{fork}")
    orphan.write_bytes((database.folder / str(path)).read_bytes())
    try:
        notes = sanitise_store(PROJECTION, store, purge=True).notes
        assert database.in_files(raw[7])
    finally:
        orphan.unlink()
    named = orphan.relative_to(database.folder).as_posix()
    assert [note for note in notes if named in note and "belong to no table" in note and "raw vectors" in note]


def test_an_owner_with_no_other_right_is_told_what_is_left_to_others(database: Database) -> None:
    raw = database.faces()
    database.run("CREATE ROLE owner; GRANT ALL ON SCHEMA public TO owner; ALTER TABLE faces OWNER TO owner")
    try:
        owned = PostgresStore(database.uri + "&options=-c%20role%3Downer", "faces", "seen")
        notes = " ".join(sanitise_store(PROJECTION, owned, purge=True).notes)
        assert "until an administrator runs VACUUM FULL pg_statistic" in notes
        assert "the write-ahead log holds raw vectors until it is recycled" in notes
        assert "files that a crash of the server left without a table were not looked for" in notes
        assert database.vectors() == pytest.approx(erase(raw), abs=1e-6)
        assert database.leftovers() == []
    finally:
        database.run("DROP OWNED BY owner CASCADE; DROP ROLE owner")


NO_TRIGGER = "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
IN_THE_WAY = {
    "rule _RETURN on view seen": "CREATE VIEW seen AS SELECT id, seen FROM faces",
    "rule _RETURN on materialized view seen": "CREATE MATERIALIZED VIEW seen AS SELECT seen FROM faces",
    "default value for column b of table faces": "ALTER TABLE faces"
    " ADD b bit(32) GENERATED ALWAYS AS (binary_quantize(seen)) STORED",
    "trigger t on table faces": NO_TRIGGER
    + "CREATE TRIGGER t BEFORE UPDATE OF seen ON faces FOR EACH ROW EXECUTE FUNCTION no()",
    "policy seen on table faces": "CREATE POLICY seen ON faces USING (seen IS NOT NULL)",
    "function f()": "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(seen) FROM faces; END",
    "column face of table old": "CREATE TABLE old (face faces)",
    "publication of table faces in publication p": "CREATE PUBLICATION p FOR TABLE faces (id, seen)",
    "child table more": "CREATE TABLE more () INHERITS (faces); ALTER TABLE more ALTER COLUMN seen SET STORAGE PLAIN",
    "rule _RETURN on view s": "CREATE TABLE more () INHERITS (faces); CREATE VIEW s AS SELECT seen FROM more",
}


@pytest.mark.parametrize("named", IN_THE_WAY)
def test_what_cannot_be_carried_is_named_before_anything_is_written(
    database: Database, store: PostgresStore, named: str
) -> None:
    raw = database.faces()
    database.run(IN_THE_WAY[named])
    with refused("store", ..., f"because of {named};"):
        sanitise_store(PROJECTION, store, purge=True)
    assert database.vectors() == pytest.approx(raw, abs=1e-7)
    assert database.leftovers() == []


def test_what_was_dropped_for_the_rewriting_may_be_back_when_raw_vectors_are_purged(
    database: Database, store: PostgresStore
) -> None:
    database.faces()
    sanitise_store(PROJECTION, store)
    database.run("CREATE VIEW seen AS SELECT id, seen FROM faces")
    assert sanitise_store(PROJECTION, store, purge=True).raw_purged


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT", "such"),
        ("CREATE TABLE faces (id int, face vector(32))", "no column"),
        ("CREATE TABLE faces (seen sparsevec(32))", "sparsevec"),
        ("CREATE TABLE faces (seen bit(32))", "type bit"),
        ("CREATE TABLE faces (seen vector(32)[])", "type vector"),
        ("CREATE VIEW faces AS SELECT '[1]'::vector AS seen", "table"),
        ("CREATE TABLE faces (a real[], seen vector(2) GENERATED ALWAYS AS (a::vector) STORED)", "generated"),
        ("CREATE TYPE face AS (seen vector(2)); CREATE TABLE faces OF face", "typed"),
        (
            "CREATE ROLE nobody; GRANT USAGE ON SCHEMA public TO nobody; CREATE TABLE faces (seen vector(2))",
            "connect",
        ),
    ],
)
def test_what_is_no_column_of_vectors_to_rewrite_is_refused(database: Database, statement: str, said: str) -> None:
    database.run(statement)
    try:
        uri = database.uri + ("&options=-c%20role%3Dnobody" if "nobody" in statement else "")
        with refused("store", "localhost/postgres/faces", said):
            PostgresStore(uri, "faces", "seen").inspect()
    finally:
        if "nobody" in statement:
            database.run("DROP OWNED BY nobody; DROP ROLE nobody")


def test_rows_hidden_by_a_policy_are_an_error_and_not_left_out(database: Database) -> None:
    database.faces()
    database.run("CREATE ROLE owner; GRANT ALL ON SCHEMA public TO owner; ALTER TABLE faces OWNER TO owner")
    database.run("ALTER TABLE faces ENABLE ROW LEVEL SECURITY; ALTER TABLE faces FORCE ROW LEVEL SECURITY")
    try:
        with refused("store", "localhost/postgres/faces", "row-level"):
            PostgresStore(database.uri + "&options=-c%20role%3Downer", "faces", "seen").inspect()
    finally:
        database.run("DROP OWNED BY owner CASCADE; DROP ROLE owner")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret%zz@host/db",
        "postgres//me:s3cret@host/db",
        "postgresql://me:s3cret@localhost:1/db?connect_timeout=2",
        "host=localhost port=1 password=s3cret dbname=db",
    ],
)
def test_no_password_is_in_any_sentence(address: str) -> None:
    pytest.importorskip("psycopg")
    with refused("store", ..., "faces") as caught:
        PostgresStore(address, "faces", "seen").inspect()
    assert "s3cret" not in str(caught.value)


def test_a_password_that_is_a_name_too_is_taken_out_of_what_the_server_says(database: Database) -> None:
    with refused("store", "localhost/postgres/faces", "role"):
        PostgresStore(database.uri.replace("postgres:@", "s3cret:s3cret@"), "faces", "seen").inspect()


def test_a_missing_driver_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with refused("store", None, "'unface[stores]'"):
        PostgresStore("postgresql://localhost/db", "faces", "seen")
