"""If these fail, an audit of a store measures other vectors than those in it, or leaves traces in it."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unface
from tests.kit.command import unface as command
from tests.refusals.table import refused
from tests.stores.postgres_server import Database, emptied, text
from unface.data import EmbeddingSet

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
