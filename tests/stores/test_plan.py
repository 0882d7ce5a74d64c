"""If these fail, a dry run changes a store, or does not say what a run does to it."""

from pathlib import Path

import numpy as np
import pytest

import unface
from tests.kit.command import unface as command
from tests.refusals.table import refused
from tests.stores.contract import DIM, projection, raw_vectors, shorter
from tests.stores.postgres_server import emptied
from tests.stores.test_reading import MAKERS, PEOPLE, bytes_of
from unface.stores import open_store, plan_store, sanitise_store

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
