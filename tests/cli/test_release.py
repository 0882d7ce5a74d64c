"""If these fail, ``unface release`` decides on something else than it was given, or leaves half a result behind."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import people, write_zip
from tests.encode.tiny import write_onnx
from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.refusals.table import require_refusal
from tests.release.made import sets
from unface.data import write_embeddings

QUICK = ("--far", "1e-2,1e-3", "--k", "1")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """synthetic, clean, training and holdout as Parquet."""
    given = sets(20)
    for name in ("synthetic", "training", "holdout"):
        write_embeddings(getattr(given, name), tmp_path / f"{name}.parquet")
    write_embeddings(sets(0).synthetic, tmp_path / "clean.parquet")
    return tmp_path


def release(folder: Path, synthetic: str = "synthetic.parquet", *options: object) -> Done:
    sides = ("--training", folder / "training.parquet", "--holdout", folder / "holdout.parquet")
    return run("release", folder / synthetic, *sides, "--out", folder / "out", *QUICK, *options)


def test_files_table_and_list_of_exposed_people(made: Path) -> None:
    done = release(made)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Do not publish this set as it is: it exposes")
    assert sorted(path.name for path in (made / "out").iterdir()) == ["exposed.csv", "release.html", "release.json"]
    assert (made / "out" / "exposed.csv").stat().st_mode & 0o777 == 0o600
    listed = (made / "out" / "exposed.csv").read_text(encoding="utf-8").splitlines()
    assert listed[0] == "person,view,p,score,pictures,synthetic"
    found = json.loads((made / "out" / "release.json").read_text(encoding="utf-8"))
    assert found["schema"] == "unface.release/1"
    assert found["views"][0]["exposure"]["exposed"]["numerator"] == len(listed) - 1
    page = (made / "out" / "release.html").read_text(encoding="utf-8")
    assert not any(row.split(",")[0] in page for row in listed[1:]), "no exposed person is named on the page"
    again = release(made)
    require_refusal(again, "output", str(made / "out" / "release.json"), "--force")
    drawn = run("report", made / "out", "--out", made / "again.html")
    assert (drawn.code, (made / "again.html").read_text(encoding="utf-8")) == (0, page)


def test_the_policy_decides_the_exit_code(made: Path) -> None:
    policy = made / "policy.toml"
    policy.write_text("[[require]]\nexposed_max = 0.1\n[[require]]\ncopies_max = 0.2\nfar = 1e-3\n", encoding="utf-8")
    assert release(made, "synthetic.parquet", "--policy", policy).code == 3
    assert run("gate", made / "out", "--policy", policy).code == 3
    assert release(made, "clean.parquet", "--policy", policy, "--force", "--quiet").code == 0
    gated = run("gate", made / "out" / "release.json", "--policy", policy, "--json")
    assert (gated.code, json.loads(gated.out)["verdict"]) == (0, "passed")
    assert not (made / "out" / "exposed.csv").exists()


def test_json_and_schema(made: Path) -> None:
    done = release(made, "clean.parquet", "--json")
    found = json.loads(done.out)
    assert found == json.loads((made / "out" / "release.json").read_text(encoding="utf-8"))
    schema = json.loads(run("schema", "release").out)
    assert set(found) <= set(schema["properties"])


def test_traits_are_views_of_their_own_and_the_papers_score_comes_with_its_controls(made: Path) -> None:
    eyes = ",".join(str(made / f"{side}.parquet") for side in ("synthetic", "training", "holdout"))
    done = release(made, "synthetic.parquet", "--trait", f"eyes={eyes}", "--paper")
    assert (done.code, done.err) == (0, "")
    found = json.loads((made / "out" / "release.json").read_text(encoding="utf-8"))
    assert [view["name"] for view in found["views"]][1:] == ["eyes"]
    assert found["fused"] is not None
    assert [one["trait"] for one in found["paper"]] == [found["views"][0]["name"], "eyes", "fusion"]
    assert found["paper"][0]["fresh_auc"] == pytest.approx(0.5, abs=0.15)
    assert "Trait privacy score (Leyva et al.)" in done.out
    assert max(len(line) for line in done.out.splitlines() if str(made) not in line) <= 80
    assert 'id="paper"' in (made / "out" / "release.html").read_text(encoding="utf-8")


def test_without_identity_columns_people_are_clustered(made: Path) -> None:
    given = sets(20)
    for name in ("training", "holdout"):
        side = getattr(given, name)
        np.savez(made / f"{name}.npz", vectors=side.vectors)
        (made / f"{name}.npz").rename(made / f"{name}.parquet")
    done = release(made)
    assert (done.code, done.err) == (0, "")
    found = json.loads((made / "out" / "release.json").read_text(encoding="utf-8"))
    assert found["training"]["clustered"]
    assert "people were clustered" in " ".join(done.out.split())


def test_several_columns_are_several_views(made: Path) -> None:
    given = sets(20)
    for name in ("synthetic", "training", "holdout"):
        side = getattr(given, name)
        names = np.array([side.names[code] for code in side.identities])
        columns = {
            "vectors": side.vectors,
            "eyes": side.vectors[:, :40],
            "identities": names,
            "ids": side.ids.astype(str),
        }
        np.savez(made / f"{name}.npz", **columns)
        (made / f"{name}.npz").rename(made / f"{name}.parquet")
    done = release(made, "synthetic.parquet", "--vector-column", "vector,eyes")
    assert (done.code, done.err) == (0, "")
    found = json.loads((made / "out" / "release.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in found["views"]] == ["face", "eyes"]
    assert found["fused"]["exposed"]["numerator"] >= 20
    assert "all together" in done.out


def test_pictures_are_encoded_on_the_way_and_faces_shown_only_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    file = write_onnx(tmp_path / "tiny.onnx")
    run("models", "add", file, "--name", "tiny", "--mean", 127.5, "--std", 128, "--licence", "of-my-own")
    everyone = people(36, 3)
    names = sorted({path.split("/")[0] for path in everyone})
    parts = {"training": names[:12], "holdout": names[12:24], "synthetic": names[24:]}
    for role, chosen in parts.items():
        inside = {path: data for path, data in everyone.items() if path.split("/")[0] in chosen}
        if role == "synthetic":  # loose files, as generators leave them
            inside = {path.replace("/", "-"): data for path, data in inside.items()}
        write_zip(tmp_path / f"{role}.zip", inside)
    sides = ("--training", tmp_path / "training.zip", "--holdout", tmp_path / "holdout.zip")
    command = ("release", tmp_path / "synthetic.zip", *sides, "--encoder", "tiny", "--detector", "none", "--k", "1")
    done = run(*command, "--far", "1e-2", "--out", tmp_path / "out", "--show-faces")
    assert (done.code, done.err) == (0, "")
    page = tmp_path / "out" / "release.html"
    assert "data:image/jpeg" in page.read_text(encoding="utf-8")
    assert page.stat().st_mode & 0o777 == 0o600
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "embeddings").glob("*.parquet")}
    assert {path.name for path in kept} == {f"{role}-tiny.parquet" for role in parts}
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert (tmp_path / "out" / "embeddings").stat().st_mode & 0o777 == 0o700
    (tmp_path / "out" / "release.json").unlink()
    page.unlink()
    again = run(*command, "--far", "1e-2", "--out", tmp_path / "out")
    assert (again.code, again.err) == (0, "")
    assert "data:image" not in page.read_text(encoding="utf-8")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was encoded is not encoded again"
    write_zip(tmp_path / "training.zip", {"a/1.jpg": b"", "b/1.jpg": b""})
    first = ("release", tmp_path / "training.zip", *sides, "--encoder", "tiny", "--detector", "none")
    failed = run(*first, "--out", tmp_path / "refused")
    require_refusal(failed, "encoder", "training.zip", "2 empty")
    assert not (tmp_path / "refused").exists()
    write_zip(tmp_path / "training.zip", {"a/1.jpg": b"", "a/2.jpg": b""})
    failed = run(*command, "--out", tmp_path / "refused")
    require_refusal(failed, "settings", "training.zip", "one person")
    assert not (tmp_path / "refused").exists()


def test_a_synthetic_set_needs_no_identities_under_any_column_name(made: Path) -> None:
    for name in ("synthetic", "training", "holdout"):
        table = pq.read_table(made / f"{name}.parquet").replace_schema_metadata()
        table = table.rename_columns(["who" if column == "identity" else column for column in table.column_names])
        pq.write_table(table.drop_columns("who") if name == "synthetic" else table, made / f"{name}.parquet")
    done = release(made, "synthetic.parquet", "--identity-column", "who")
    assert (done.code, done.err) == (0, "")
    pq.write_table(pq.read_table(made / "holdout.parquet").drop_columns("who"), made / "holdout.parquet")
    refused = release(made, "synthetic.parquet", "--identity-column", "who", "--force")
    require_refusal(refused, "missing-column", "holdout.parquet", "'who'")


def test_synthetic_pictures_have_names_where_the_other_sets_have_none(made: Path) -> None:
    table = pq.read_table(made / "synthetic.parquet").replace_schema_metadata()
    table = table.rename_columns(["file" if column == "id" else column for column in table.column_names])
    pq.write_table(table, made / "synthetic.parquet")
    done = release(made, "synthetic.parquet", "--id-column", "file")
    assert (done.code, done.err) == (0, "")
    refused = release(made, "synthetic.parquet", "--id-column", "name", "--force")
    require_refusal(refused, "missing-column", "synthetic.parquet", "'name'")
