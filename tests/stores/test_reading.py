"""If these fail, an audit of a store measures other vectors than those in it, or leaves traces in it."""

from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unface
from tests.kit.command import unface as command
from tests.refusals.table import refused
from tests.stores.contract import DIM, projection, raw_vectors, shorter
from tests.stores.postgres_server import Database, emptied, text
from unface import UnfaceError
from unface.data import EmbeddingSet
from unface.stores import open_store, plan_store, sanitise_store

PEOPLE = unface.make_identities(30, 4, 8, rank=4, seed=1).unit()
NAMES = [PEOPLE.names[code] for code in PEOPLE.identities]
SHOOTS = [f"shoot {row // 2}" for row in range(len(PEOPLE))]


def make_faiss(folder: Path) -> str:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexIDMap(faiss.IndexFlatIP(8))
    index.add_with_ids(PEOPLE.vectors, np.arange(len(PEOPLE)) + 1000)
    faiss.write_index(index, str(folder / "faces.faiss"))
    rows = [f"{1000 + row},{name},{shoot}" for row, (name, shoot) in enumerate(zip(NAMES, SHOOTS, strict=True))]
    (folder / "who.csv").write_text("\n".join(["id,identity,shoot", *reversed(rows)]))
    return f"faiss:{folder}/faces.faiss?identities={folder}/who.csv"


def make_npy(folder: Path) -> str:
    np.save(folder / "faces.npy", PEOPLE.vectors)
    pq.write_table(pa.table({"identity": NAMES, "shoot": SHOOTS}), folder / "who.parquet")
    return f"npy:{folder}/faces.npy?identities={folder}/who.parquet"


def make_lance(folder: Path) -> str:
    lancedb = pytest.importorskip("lancedb")
    pytest.importorskip("lance")
    rows = zip(NAMES, SHOOTS, PEOPLE.vectors, strict=True)
    table = [{"id": row, "identity": name, "shoot": shoot, "vector": v} for row, (name, shoot, v) in enumerate(rows)]
    lancedb.connect(folder / "lance").create_table("faces", table)
    return f"lancedb:{folder}/lance?table=faces"


def make_qdrant(folder: Path) -> str:
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(path=str(folder / "qdrant"))
    models = qdrant.models
    client.create_collection("faces", models.VectorParams(size=8, distance=models.Distance.COSINE))
    rows = zip(NAMES, SHOOTS, PEOPLE.vectors, strict=True)
    points = [
        models.PointStruct(id=row, vector=vector.tolist(), payload={"identity": name, "shoot": shoot, "many": [1, 2]})
        for row, (name, shoot, vector) in enumerate(rows)
    ]
    client.upsert("faces", points)
    client.close()
    return f"qdrant:{folder}/qdrant?collection=faces"


MAKERS = [make_faiss, make_npy, make_lance, make_qdrant]


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def require_same(found: EmbeddingSet) -> None:
    order = np.argsort([int(row) % 1000 for row in found.ids], kind="stable")
    assert np.abs(found.vectors[order] - PEOPLE.vectors).max() < 1e-6
    assert [found.names[code] for code in found.identities[order]] == NAMES
    assert found.labels["shoot"][order].tolist() == SHOOTS


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[5:])
def test_a_store_is_read_as_it_is_and_left_as_it_was(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    url = make(tmp_path)
    before = bytes_of(tmp_path)
    require_same(unface.read_embeddings(url))
    some = unface.read_embeddings(url, sample=5, seed=1)
    assert some.names == unface.read_embeddings(PEOPLE, sample=5, seed=1).names
    assert len(some) == 20
    assert str(tmp_path) not in some.source
    assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[5:])
def test_a_sanitised_store_says_what_erased_it(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from unface.stores import open_store, sanitise_store

    url = make(tmp_path)
    projection = unface.ISP(3).fit(PEOPLE.vectors, PEOPLE.identities).projection_
    sanitise_store(projection, open_store(url))
    found = unface.read_embeddings(url)
    assert found.space.weights_sha256 == projection.sha256
    quick = unface.Protocol(far=0.05, k=2, probe="cosine", seeds=1, bootstraps=100)
    audited = unface.audit(found, eraser=(), parts=(), protocol=quick)
    assert audited.spaces[0].name == f"erased by projection {projection.sha256[:8]}"
    named = unface.audit(found, eraser=(), parts=(), projections=[projection], protocol=quick)
    assert named.spaces[0].name == "erased by isp 3"


@pytest.fixture
def database() -> Iterator[Database]:
    with emptied() as made:
        made.run("CREATE TYPE kind AS ENUM ('passport', 'party')")
        made.run(
            "CREATE TABLE faces (id bigint PRIMARY KEY, identity uuid, embedding vector(8), shoot text, kind kind,"
            " seen timestamptz DEFAULT now(), score numeric, extra jsonb, around vector(2) DEFAULT '[1,2]')"
        )
        for row, vector in enumerate(PEOPLE.vectors):
            given = (row, uuid_of(NAMES[row]), text(vector), SHOOTS[row])
            insert = "INSERT INTO faces (id, identity, embedding, shoot, kind, score)"
            made.ask(f"{insert} VALUES (%s, %s, %s, %s, 'party', 0.5) RETURNING 1", given)
        made.run(f"INSERT INTO faces (id, identity) VALUES (5000, '{uuid_of('nobody')}')")
        yield made


def uuid_of(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:32]


def url_of(made: Database, more: str = "") -> str:
    return f"{made.uri}&table=faces{more}"


def test_a_table_is_read_by_its_url(database: Database) -> None:
    found = unface.read_embeddings(url_of(database), context="around")
    assert np.array_equal(found.vectors, PEOPLE.vectors)
    assert [name.replace("-", "") for name in np.array(found.names)[found.identities]] == list(map(uuid_of, NAMES))
    assert found.ids.tolist() == [str(row) for row in range(len(PEOPLE))]
    assert sorted(found.labels) == ["around", "kind", "score", "seen", "shoot"]
    assert found.labels["shoot"].tolist() == SHOOTS
    assert found.labels["around"].tolist() == [[1, 2]] * len(PEOPLE)
    assert found.source == "postgresql:///postgres?table=faces"
    assert found.notes == (
        f"not read, because the vector is NULL: 1 of {len(PEOPLE) + 1} rows",
        "column 'extra' left out: jsonb is not a label",
    )
    some = unface.read_embeddings(url_of(database), sample=6)
    assert (len(some.names), len(some)) == (6, 24)
    assert "extra" not in unface.read_embeddings(url_of(database), identity="shoot").labels


def test_a_halfvec_column_a_view_and_a_key_of_two_columns_are_read(database: Database) -> None:
    database.run(
        "CREATE TABLE halves (a int, b int, person text, seen halfvec, PRIMARY KEY (a, b))",
        "INSERT INTO halves SELECT id, 7, shoot, embedding::halfvec FROM faces WHERE embedding IS NOT NULL",
        "CREATE VIEW shown AS SELECT * FROM halves",
    )
    half = unface.read_embeddings(f"{database.uri}&table=halves&column=seen", identity="person")
    assert half.ids[:2].tolist() == ["0/7", "1/7"]
    assert np.array_equal(half.vectors, PEOPLE.vectors.astype(np.float16).astype(np.float32))
    view = unface.read_embeddings(f"{database.uri}&table=shown&column=seen", identity="person", id="a")
    assert view.ids[:2].tolist() == ["0", "1"]
    assert np.array_equal(view.vectors, half.vectors)


def test_reading_a_table_is_read_only_and_no_writer_waits(database: Database) -> None:
    from unface.data.embeddings import Columns
    from unface.stores import open_collection

    before = database.ask("SELECT xmin::text, ctid::text, faces::text FROM faces ORDER BY id")
    with open_collection(url_of(database), Columns(context="around")) as rows:
        batches = rows.batches(None)
        first = next(batches)
        locks = "SELECT mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE relname = 'faces'"
        assert database.ask(locks) == [("AccessShareLock",)]
        state = "SELECT backend_xid FROM pg_stat_activity WHERE application_name = 'unface'"
        assert database.ask(state) == [(None,)], "the reader's transaction has written nothing"
        database.run_apart("SET lock_timeout = '1s'")
        database.run_apart("UPDATE faces SET shoot = shoot WHERE id = 3")  # would wait, or fail, under a lock
        seen = first.num_rows + sum(batch.num_rows for batch in batches)
    assert seen == len(PEOPLE), "the row that was rewritten meanwhile is there once"
    after = database.ask("SELECT xmin::text, ctid::text, faces::text FROM faces ORDER BY id")
    assert [row for row in after if row not in before] == [after[3]]
    assert database.leftovers() == []


REFUSED = [
    ("&table=absent", {}, "schema.table"),
    ("&table=faces&column=shoot", {}, "column shoot"),
    ("&table=faces&column=seen2", {}, "column seen2"),
    ("&table=faces", {"identity": "person"}, "column person"),
    ("&table=faces", {"identity": "person"}, "--identity-column"),
    ("&table=faces", {"context": "shoot"}, "column shoot"),
    ("&table=faces", {"vector": "seen"}, "column=, vector="),
    ("", {}, "?table=NAME"),
]


@pytest.mark.parametrize(("more", "options", "words"), REFUSED, ids=str)
def test_what_cannot_be_read_is_refused_in_one_line(
    database: Database, more: str, options: dict[str, str], words: str
) -> None:
    with refused(..., ..., words):
        unface.read_embeddings(f"{database.uri}{more}", **options)  # type: ignore[arg-type]


def test_no_password_is_printed_or_kept(database: Database, tmp_path: Path) -> None:
    url = url_of(database).replace("postgres:@", "postgres:hunter2@")
    found = unface.read_embeddings(url)
    assert "hunter2" not in found.source + repr(found)
    refused = command("fit", url.replace("table=faces", "table=absent"), "--out", tmp_path / "p.safetensors")
    assert refused.code == 1
    assert "hunter2" not in refused.out + refused.err


FILES = [
    ("faiss:faces.faiss", "faces.faiss"),
    ("faiss:faces.faiss?identities=absent.csv", "absent.csv"),
    ("faiss:faces.faiss?identities=short.csv", "short.csv"),
    ("faiss:faces.faiss?identities=nobody.csv", "nobody.csv"),
    ("faiss:faces.faiss?identities=words.csv", "words.csv"),
    ("faiss:faces.faiss?identities=twice.csv", "twice.csv"),
    ("faiss:faces.faiss?identities=others.csv", "others.csv"),
    ("faiss:faces.faiss?identities=who.csv&more=1", "faiss"),
    ("npy:faces.npy", "faces.npy"),
]


@pytest.mark.parametrize(("url", "where"), FILES)
def test_vectors_without_whose_they_are_are_refused(
    url: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_faiss(tmp_path), make_npy(tmp_path)
    (tmp_path / "short.csv").write_text("identity\nann\n")
    (tmp_path / "nobody.csv").write_text("id,name\n1,ann\n")
    (tmp_path / "words.csv").write_text("id,identity\nx,ann\n")
    (tmp_path / "others.csv").write_text("id,identity\n7000001,ann\n7000002,bob\n")
    (tmp_path / "twice.csv").write_text("id,identity\n1,ann\n1,bob\n")
    monkeypatch.chdir(tmp_path)
    with refused(..., where):
        unface.read_embeddings(url)


def test_a_vector_that_the_identities_do_not_know_is_a_bad_row(tmp_path: Path) -> None:
    url = make_faiss(tmp_path)
    lines = (tmp_path / "who.csv").read_text().splitlines()
    (tmp_path / "who.csv").write_text("\n".join(line for line in lines if not line.startswith("1003,")))
    with refused("vectors", "faiss:faces.faiss?identities=who.csv", "row 3", "'1003'", "'identity'"):
        unface.read_embeddings(url)
    found = unface.read_embeddings(url, bad_rows="drop")
    assert found.bad_rows is not None
    assert (found.bad_rows.rows, len(found)) == (1, 119)


def test_payload_without_identities_is_refused(tmp_path: Path) -> None:
    with refused("store", "Qdrant collection 'faces'", "'person'", "'identity'", "'many'", "'shoot'"):
        unface.read_embeddings(make_qdrant(tmp_path), identity="person")


def test_the_commands_read_stores(tmp_path: Path) -> None:
    url = make_lance(tmp_path)
    quick = ["--far", "0.05", "--k", "2", "--probe", "cosine", "--seeds", "1", "--bootstraps", "100", "--no-maps"]
    done = command("audit", url, "--out", tmp_path / "audit", "--no-sweep", "--album", "none", *quick, "--sample", "25")
    assert done.code == 0, done.err
    result = unface.AuditResult.load(tmp_path / "audit")
    assert (result.source.name, result.source.identities) == ("lancedb:lance?table=faces", 25)
    fitted = command("fit", url, "--out", tmp_path / "p.safetensors", "--rank", "3", "--sample", "20")
    assert fitted.code == 0, fitted.err
    assert "reading: a sample of 20 people with at least 2 rows each, drawn with seed 0" in fitted.out
    refused = command("audit", url, "--encoder", "sface", "--out", tmp_path / "other")
    assert refused.err == "unface: --encoder: is for pictures, and SRC is a store of vectors; leave it out\n"


EXPECTED = {
    "make_faiss": "IndexIDMap of 8 dimensions is built again, with its settings and ids",
    "make_npy": "the old file becomes faces.npy.raw, which stays until --purge",
    "make_lance": "Indices: none on this column, so none is rebuilt.",
    "make_qdrant": "'faces' is copied to 'faces__unface_raw' and deleted, and its name becomes an alias",
}


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[5:])
def test_a_dry_run_says_what_would_happen_and_changes_no_byte(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    by = unface.ISP(3).fit(PEOPLE.vectors, PEOPLE.identities).projection_
    by.save(tmp_path / "p.safetensors")
    url = make(tmp_path)
    before = bytes_of(tmp_path)
    done = command("apply", tmp_path / "p.safetensors", "--store", url, "--dry-run")
    shown = " ".join(done.out.split())
    assert (done.code, done.err) == (0, "")
    assert "120 vectors, 3 of 8 dimensions removed (isp); they keep 8 dimensions" in shown
    assert EXPECTED[make.__name__] in shown
    assert "to read, erase and check, from 120 vectors" in shown
    assert bytes_of(tmp_path) == before


def test_of_a_table_it_names_indexes_triggers_and_the_raw_copy() -> None:
    with emptied() as database:
        database.faces()
        database.run(
            "CREATE INDEX near ON faces USING hnsw (seen vector_cosine_ops)",
            "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "CREATE TRIGGER watch AFTER UPDATE ON faces FOR EACH ROW EXECUTE FUNCTION nothing()",
        )
        rows = "SELECT xmin::text, ctid::text, faces::text FROM faces ORDER BY id"
        before, schema = database.ask(rows), database.schema()
        url = f"{database.uri}&table=faces&column=seen&reject_raw=yes"
        steps = "\n".join(plan_store(projection(), open_store(url)).lines())
        assert "2 indexes are rebuilt: faces_pkey (btree), near (hnsw)" in steps
        assert "Triggers: watch: stay, and do not fire; unface_reject_raw is added" in steps
        assert "until --purge" in steps
        assert "32 dimensions become 12" in "\n".join(plan_store(shorter(), open_store(url)).lines())
        assert (database.ask(rows), database.schema(), database.leftovers()) == (before, schema, [])


def test_it_refuses_what_a_run_would_refuse(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", raw_vectors(20))
    np.save(tmp_path / "short.npy", raw_vectors(20)[:, :5])
    with refused("apply", "short.npy", "of 5", "for 32"):
        plan_store(projection(), open_store(f"npy:{tmp_path}/short.npy"))
    url = f"npy:{tmp_path}/x.npy"
    sanitise_store(projection(), open_store(url))
    with refused("store", "x.npy", "--purge"):
        plan_store(projection(), open_store(url))
    with refused("store", "x.npy", "another"):
        plan_store(projection(seed=1), open_store(url))
    (step,) = plan_store(projection(), open_store(url), purge=True).steps
    assert step.startswith("Purge:")
    sanitise_store(projection(), open_store(url), purge=True)
    with refused("store", "x.npy", "nothing"):
        plan_store(projection(), open_store(url), purge=True)


def test_a_dry_run_is_of_a_store_and_has_no_receipt(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", raw_vectors(20))
    projection(dim=DIM).save(tmp_path / "p.safetensors")
    to_store = ["apply", tmp_path / "p.safetensors", "--store", f"npy:{tmp_path}/x.npy"]
    assert "a dry run does nothing" in command(*to_store, "--dry-run", "--receipt", tmp_path / "r.json").err
    assert "--bad-rows drop: is for files" in command(*to_store, "--bad-rows", "drop").err
    files = ["apply", tmp_path / "p.safetensors", tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert "are about a store; name it with --store" in command(*files, "--dry-run").err


def test_a_relative_an_absolute_and_a_quoted_path_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("the faces.npy", np.ones((3, 4), np.float32))
    for url in ("npy:the%20faces.npy", f"npy:{tmp_path}/the faces.npy", f"npy://{tmp_path}/the%20faces.npy"):
        assert open_store(url).inspect().rows == 3


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pri@vate@localhost:1/db?table=faces",
        "postgresql://me:pri#vate@localhost:1/db?table=faces",
        "postgresql://me:pri/vate@localhost:1/db?table=faces",
        "postgresql://me:12/vate@localhost:1/db?table=faces",
        "postgresql://me:pri?vate@localhost:1/db?table=faces",
        "postgresql://me:12?vate@localhost:1/db?table=faces",
        "postgresql://me:pri[vate@localhost:1/db?table=faces",
        "postgresql://localhost:private/db?table=faces",
        "postgresql://one:1,two:private/db?table=faces",
        "postgresql://localhost:1/db?table=faces&pri@vate=1",
        "postgresql://localhost:1/db?table=faces&password=private&pasword=private",
        "qdrant+https://me:pri@vate@localhost:1?collection=faces",
        "qdrant+https://me:12?vate@localhost:1&collection=faces",
        "qdrant+https://localhost:1?collection=faces&vate@localhost=1",
        "qdrant+https://localhost:private?collection=faces",
    ],
)
def test_no_part_of_a_password_is_printed_however_it_is_written(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UnfaceError) as raised:
        open_store(url)
    assert not {part for part in ("pri", "vate") if part in str(raised.value)}


def test_several_hosts_and_addresses_of_version_6_are_no_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    for hosts in ("one:5432,two:5433", "[::1]:5432", "me:pass%40word@one,two"):
        open_store(f"postgresql://{hosts}/db?table=faces")
    assert len(seen) == 3


def test_lossy_codes_are_allowed_only_where_there_are_any() -> None:
    with refused("store", "--lossy-ok"):
        open_store("npy:faces.npy", lossy_ok=True)


def test_the_driver_gets_its_own_options_as_libpq_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    open_store("postgresql://me@host/db?table=media.faces&column=v&sslmode=require&options=-c%20lock_timeout%3D10s")
    assert seen == [("postgresql://me@host/db?sslmode=require&options=-c%20lock_timeout%3D10s", "media.faces", "v")]


def test_a_host_that_is_not_named_stays_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    open_store("postgresql:///db?host=/run/postgresql&table=faces")
    open_store("postgresql:///db?table=faces")
    assert [uri for uri, *_ in seen] == ["postgresql:///db?host=%2Frun%2Fpostgresql", "postgresql:///db"]


def test_another_package_brings_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = EntryPoint("milvus", "tests.stores.test_reading:opened", "unface.stores")

    def registered(*, group: str, name: str) -> EntryPoints:
        return EntryPoints([own]).select(group=group, name=name)

    monkeypatch.setattr("unface.functions.entry_points", registered)
    found: object = open_store("milvus://host/faces")
    assert found == "opened milvus://host/faces"
    with refused("store", "--lossy-ok"):
        open_store("milvus://host/faces", lossy_ok=True)


def opened(url: str) -> str:
    return f"opened {url}"
