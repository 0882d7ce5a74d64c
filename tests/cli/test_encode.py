"""If this fails, ``unface encode`` leaves no file that ``unface audit`` reads, or says something else than it did."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.data.pictures import people, write_zip
from tests.encode.tiny import write_onnx
from tests.kit.command import unface as run
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import require_refusal
from unface.data import nobody, read_embeddings


@pytest.fixture
def faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip of pictures, and an encoder called tiny in a cache of its own."""
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    added = run("models", "add", write_onnx(tmp_path / "tiny.onnx"), "--name", "tiny", "--mean", 127.5, "--std", 128)
    assert (added.code, added.err) == (0, "")
    return write_zip(tmp_path / "faces.zip", {**people(4, 3), "ann0/empty.jpg": b""})


def test_pictures_become_a_file_that_says_where_its_vectors_live(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "emb.parquet"
    done = run("encode", faces, "--encoder", "tiny", "--detector", "none", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"{out}: 12 of 13 pictures, 8 dimensions",
        f"{out}.skipped.csv: left out 1 empty file",
    ]
    found = read_embeddings(out)
    assert found.space.encoder == "tiny"
    assert found.space.weights_sha256 is not None


def test_the_same_command_again_is_refused_and_force_replaces(tmp_path: Path, faces: Path) -> None:
    command = ("encode", faces, "--encoder", "tiny", "--detector", "none", "--out", tmp_path / "emb.parquet")
    assert run(*command, "--quiet") == run(*command, "--quiet", "--force")
    again = run(*command)
    require_refusal(again, "output", str(tmp_path / "emb.parquet"), "--force")


def test_parts_of_a_run_that_was_killed_after_its_last_rename_are_removed(tmp_path: Path, faces: Path) -> None:
    command = ("encode", faces, "--encoder", "tiny", "--detector", "none", "--out", tmp_path / "emb.parquet")
    assert run(*command).code == 0
    left = tmp_path / ".emb.parquet.parts" / "_unface"
    left.mkdir(parents=True)
    (left / "manifest.json").write_text("{}")
    again = run(*command)
    require_refusal(again, "output", str(tmp_path / "emb.parquet"), "--force")
    assert not left.parent.exists()


def test_json_says_what_was_done(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "emb.parquet"
    with zipfile.ZipFile(faces, "a") as archive:
        archive.writestr("a/notes.txt", "not a picture")
    done = run("encode", faces, "--encoder", "tiny", "--detector", "none", "--out", out, "--json", "--batch", 5)
    shown = json.loads(done.out)
    assert (shown["pictures"], shown["rows"], shown["dim"]) == (13, 12, 8)
    assert shown["skipped"] == {"empty file": 1}
    assert shown["licence"] == "not stated"
    (left_out,) = shown["left_out"]
    assert left_out.startswith("1 file")


@pytest.fixture
def two(tmp_path: Path, faces: Path) -> tuple[object, ...]:
    """The command that encodes by two encoders, tiny and small, into the folder ``vectors``."""
    added = run("models", "add", tmp_path / "tiny.onnx", "--name", "small", "--mean", 0, "--std", 255)
    assert (added.code, added.err) == (0, "")
    encoders = ("--encoder", "tiny", "--encoder", "small")
    return ("encode", faces, *encoders, "--detector", "none", "--out", tmp_path / "vectors")


def test_several_encoders_write_one_file_each(tmp_path: Path, faces: Path, two: tuple[object, ...]) -> None:
    done = run(*two)
    assert (done.code, done.err) == (0, "")
    out = tmp_path / "vectors"
    assert sorted(path.name for path in out.glob("*.parquet")) == ["small.parquet", "tiny.parquet"]
    assert [line.split(":")[0] for line in done.out.splitlines()[::2]] == [
        f"{out}/tiny.parquet",
        f"{out}/small.parquet",
    ]
    for name in ("tiny", "small"):
        alone = tmp_path / f"{name}.parquet"
        assert run("encode", faces, "--encoder", name, "--detector", "none", "--out", alone).code == 0
        assert read_embeddings(out / f"{name}.parquet").space.encoder == name
        assert (out / f"{name}.parquet").read_bytes() == alone.read_bytes()


def test_several_encoders_are_resumed_where_one_is_missing(tmp_path: Path, two: tuple[object, ...]) -> None:
    first = json.loads(run(*two, "--json").out)
    assert [shown["encoder"] for shown in first] == ["tiny", "small"]
    tiny, small = tmp_path / "vectors" / "tiny.parquet", tmp_path / "vectors" / "small.parquet"
    before, again = tiny.stat().st_ino, run(*two)  # a file made again is another one
    require_refusal(again, "settings", str(tmp_path / "vectors"), "--force")
    small.unlink()
    assert json.loads(run(*two, "--json").out) == first
    assert tiny.stat().st_ino == before
    assert run(*two, "--force", "--quiet").code == 0
    assert tiny.stat().st_ino != before


def test_a_file_of_other_pictures_in_the_folder_is_refused(tmp_path: Path, two: tuple[object, ...]) -> None:
    other = write_zip(tmp_path / "other.zip", people(3, 3))
    tiny = tmp_path / "vectors" / "tiny.parquet"
    assert run("encode", other, "--encoder", "tiny", "--detector", "none", "--out", tiny).code == 0
    done = run(*two)
    require_refusal(done, "encoder", str(tiny))


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_networks")
def test_portraits_become_the_vectors_that_come_with_unface_and_are_audited_with_their_context(tmp_path: Path) -> None:
    for name in ("sface", "yunet"):
        weights_here(name)
    out = tmp_path / "emb.parquet"
    assert run("encode", nobody_pictures(), "--encoder", "sface", "--out", out).code == 0
    unit, embedded = read_embeddings(out).unit(), nobody("sface").unit()
    rows = dict(zip(embedded.ids, embedded.vectors, strict=True))
    assert len(unit) == 24 * 12
    assert min(vector @ rows[name] for name, vector in zip(unit.ids, unit.vectors, strict=True)) > 0.999
    quick = ("--k", 1, "--far", 0.05, "--probe", "cosine", "--bootstraps", 100, "--quiet")
    assert run("audit", out, "--context", "context", "--out", tmp_path / "a", *quick).code == 0
    point = json.loads((tmp_path / "a" / "audit.json").read_text())["spaces"][0]["points"][0]
    assert point["context_adjusted"] is not None
    assert pq.read_schema(out).metadata[b"unface.space"]


def test_a_detector_that_is_added_is_not_said_to_have_dimensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = weights_here("yunet")
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    done = run("models", "add", file, "--name", "yunet")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("yunet: 0.2 MB, licence: ")
