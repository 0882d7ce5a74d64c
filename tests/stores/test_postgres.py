"""If these fail, sanitising a pgvector column breaks the table around it, or mixes up, loses or leaves raw vectors."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.contract import DIM, projection, raw_vectors
from tests.stores.postgres_server import Database, text
from unface import UnfaceError
from unface.progress import Silent
from unface.scale import released_vectors
from unface.stores import sanitise_store
from unface.stores.postgres import PostgresStore

PROJECTION = projection()
MARK = PROJECTION.sha256
ROWS = 40


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
    with pytest.raises(UnfaceError, match="rows came, went or changed since vectors were staged"):
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
            for _ in range(500):
                if database.ask("SELECT pid FROM pg_locks WHERE NOT granted"):
                    break
                sleep(0.02)
            assert not swapping.done()
        with pytest.raises(UnfaceError, match="1 rows came, went or changed"):
            swapping.result(30)
    assert database.vectors() == pytest.approx(np.vstack([raw, raw[2]]), abs=1e-7)


def test_staging_again_erases_only_what_is_new(database: Database, store: PostgresStore) -> None:
    database.faces()
    seen: list[int] = []

    def counted(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
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
    with pytest.raises(UnfaceError, match="vectors of 3 and of 32 dimensions"):
        store.inspect()
    database.run("DELETE FROM faces")
    with pytest.raises(UnfaceError, match="holds no vector and its type names no dimension"):
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
    with pytest.raises(UnfaceError, match="a part of another table; name that one"):
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
    monkeypatch.setattr("unface.stores.postgres.PATIENCE", "100ms")

    def meanwhile(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        with pytest.raises(UnfaceError, match="another run is at work on it"):
            PostgresStore(database.uri, "faces", "seen").stage(erase, MARK, Silent())
        return erase(vectors)

    store.stage(meanwhile, MARK, Silent())
    assert store.unmatched() == 0
