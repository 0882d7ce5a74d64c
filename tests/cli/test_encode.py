"""If this fails, ``unface encode`` leaves no file that ``unface audit`` reads, or says something else than it did."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.command import unface as run
from tests.data.pictures import people, write_zip
from tests.encode.tiny import write_onnx
from tests.real import nobody_pictures, weights_here
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
    assert again.code == 1
    assert again.err == f"unface: {tmp_path / 'emb.parquet'}: exists already; choose another --out or pass --force\n"


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--encoder", "absent"), "absent"),
        (("--encoder", "tiny", "--detector", "haar"), "detector 'haar' is not known"),
        (("--encoder", "tiny", "--out", "."), "is a folder; --out takes a file"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, faces: Path, options: tuple[str, ...], words: str) -> None:
    out = () if "--out" in options else ("--out", tmp_path / "emb.parquet")
    done = run("encode", faces, *options, *out)
    assert done.code == 1
    assert words in done.err
    assert done.err.count("\n") == 1


def test_weights_for_research_only_have_to_be_accepted(tmp_path: Path, faces: Path) -> None:
    done = run("encode", faces, "--encoder", "arcface-mbf", "--detector", "none", "--out", tmp_path / "e.parquet")
    assert done.code == 1
    assert "--accept-licence" in done.err


@pytest.mark.slow
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
