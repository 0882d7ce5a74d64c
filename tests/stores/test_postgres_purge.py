"""If these fail, raw vectors stay in a PostgreSQL server after a purge, or are lost or open to others before it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.contract import projection
from tests.stores.postgres_server import Database
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


def test_rows_written_raw_after_the_swap_stop_a_purge_and_its_receipt(database: Database, store: PostgresStore) -> None:
    database.faces()
    sanitise_store(PROJECTION, store)
    (kept,) = database.leftovers()
    database.run(f"UPDATE faces SET seen = raw.seen FROM {kept} raw WHERE raw.id = faces.id AND raw.id = 7")
    with pytest.raises(UnfaceError, match="not erased; were some added since"):
        sanitise_store(PROJECTION, store, purge=True)
    assert database.leftovers() == [kept]


def test_a_column_whose_mark_was_taken_away_is_not_erased_over_its_kept_raw_vectors(
    database: Database, store: PostgresStore
) -> None:
    raw = database.faces()
    sanitise_store(PROJECTION, store)
    database.run("COMMENT ON COLUMN faces.seen IS NULL")
    with pytest.raises(
        UnfaceError, match=r"raw vectors of an earlier run lie in public.unface_raw_\d+_2, but the comm"
    ):
        sanitise_store(PROJECTION, store)
    (kept,) = database.leftovers()
    assert database.vectors(kept) == pytest.approx(raw, abs=1e-7)


def test_kept_and_staged_vectors_are_hidden_even_where_new_tables_are_open_to_all(
    database: Database, store: PostgresStore
) -> None:
    database.faces()
    database.run("CREATE ROLE anon; GRANT USAGE ON SCHEMA public TO anon; GRANT SELECT ON faces TO anon")
    database.run("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO anon")
    try:
        store.stage(erase, MARK, Silent())
        tables = [name for name in database.leftovers() if not name.endswith("idx")]
        assert len(tables) == 2
        for table, visible in [("faces", ROWS), *((name, 0) for name in tables)]:
            assert database.ask(f"SELECT count(*) FROM {table}") == [(ROWS,)]
            database.run("SET ROLE anon")
            assert database.ask(f"SELECT count(*) FROM {table}") == [(visible,)]
            database.run("RESET ROLE")
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
    assert receipt.notes == ["backups and dumps that were made before hold raw vectors"]


def test_parts_of_the_log_that_are_used_again_are_told(database: Database, store: PostgresStore) -> None:
    database.faces()
    database.run("ALTER SYSTEM RESET wal_recycle", "SELECT pg_reload_conf()")
    try:
        notes = sanitise_store(PROJECTION, store, purge=True).notes
    finally:
        database.run("ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()")
    assert any(note.startswith("wal_recycle is on") for note in notes)


def test_an_owner_with_no_other_right_is_told_what_is_left_to_others(database: Database) -> None:
    raw = database.faces()
    database.run("CREATE ROLE owner; GRANT ALL ON SCHEMA public TO owner; ALTER TABLE faces OWNER TO owner")
    try:
        owned = PostgresStore(database.uri + "&options=-c%20role%3Downer", "faces", "seen")
        notes = " ".join(sanitise_store(PROJECTION, owned, purge=True).notes)
        assert "until somebody who may runs VACUUM FULL pg_statistic" in notes
        assert "the write-ahead log holds raw vectors until it is recycled" in notes
        assert database.vectors() == pytest.approx(erase(raw), abs=1e-6)
        assert database.leftovers() == []
    finally:
        database.run("DROP OWNED BY owner CASCADE; DROP ROLE owner")
