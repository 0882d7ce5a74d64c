"""If these fail, a table is half rewritten before PostgreSQL refuses the rest, or a sentence gives a password away."""

import re
import sys

import pytest

from tests.stores.contract import projection
from tests.stores.postgres_server import Database
from unface import UnfaceError
from unface.stores import sanitise_store
from unface.stores.postgres import PostgresStore

PROJECTION = projection()


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
    "its part more": "CREATE TABLE more () INHERITS (faces); ALTER TABLE more ALTER COLUMN seen SET STORAGE PLAIN",
    "rule _RETURN on view s": "CREATE TABLE more () INHERITS (faces); CREATE VIEW s AS SELECT seen FROM more",
}


@pytest.mark.parametrize("named", IN_THE_WAY)
def test_what_cannot_be_carried_is_named_before_anything_is_written(
    database: Database, store: PostgresStore, named: str
) -> None:
    raw = database.faces()
    database.run(IN_THE_WAY[named])
    with pytest.raises(UnfaceError, match=re.escape(f"cannot be rewritten under {named};")) as refused:
        sanitise_store(PROJECTION, store, purge=True)
    assert "drop that first and create it again afterwards" in str(refused.value)
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
        ("SELECT", "faces: no such table"),
        ("CREATE TABLE faces (id int, face vector(32))", "no column seen; it has id, face"),
        ("CREATE TABLE faces (seen sparsevec(32))", r"is of type sparsevec\(32\); only vector and halfvec"),
        ("CREATE TABLE faces (seen bit(32))", r"is of type bit\(32\); only vector and halfvec"),
        ("CREATE TABLE faces (seen vector(32)[])", r"is of type vector\(32\)\[\]; only vector and halfvec"),
        ("CREATE VIEW faces AS SELECT '[1]'::vector AS seen", "faces: not a table"),
        ("CREATE TABLE faces (a real[], seen vector(2) GENERATED ALWAYS AS (a::vector) STORED)", "seen is generated"),
        ("CREATE TYPE face AS (seen vector(2)); CREATE TABLE faces OF face", "a typed table"),
        (
            "CREATE ROLE nobody; GRANT USAGE ON SCHEMA public TO nobody; CREATE TABLE faces (seen vector(2))",
            "connect as postgres",
        ),
    ],
)
def test_what_is_no_column_of_vectors_to_rewrite_is_refused(database: Database, statement: str, said: str) -> None:
    database.run(statement)
    try:
        uri = database.uri + ("&options=-c%20role%3Dnobody" if "nobody" in statement else "")
        with pytest.raises(UnfaceError, match=said):
            PostgresStore(uri, "faces", "seen").inspect()
    finally:
        if "nobody" in statement:
            database.run("DROP OWNED BY nobody; DROP ROLE nobody")


def test_rows_hidden_by_a_policy_are_an_error_and_not_left_out(database: Database) -> None:
    database.faces()
    database.run("CREATE ROLE owner; GRANT ALL ON SCHEMA public TO owner; ALTER TABLE faces OWNER TO owner")
    database.run("ALTER TABLE faces ENABLE ROW LEVEL SECURITY; ALTER TABLE faces FORCE ROW LEVEL SECURITY")
    try:
        with pytest.raises(UnfaceError, match="row-level security policy"):
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
    with pytest.raises(UnfaceError) as refused:
        PostgresStore(address, "faces", "seen").inspect()
    assert "s3cret" not in str(refused.value)
    assert "faces" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_password_that_is_a_name_too_is_taken_out_of_what_the_server_says(database: Database) -> None:
    with pytest.raises(UnfaceError, match='role "…" does not exist'):
        PostgresStore(database.uri.replace("postgres:@", "s3cret:s3cret@"), "faces", "seen").inspect()


def test_a_missing_driver_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnfaceError, match=r"pip install 'unface\[stores\]'"):
        PostgresStore("postgresql://localhost/db", "faces", "seen")
