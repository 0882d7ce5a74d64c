"""If these fail, sanitising a folder loses rows or columns, releases raw vectors, or does again what was done."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.scale.collection import NAMES, all_others, all_vectors, collection, hashes
from tests.scale.stored import DIM, PEOPLE, UNNAMED, oblique, projection, table, written
from unface import UnfaceError
from unface.data import Space
from unface.erase import Projection
from unface.scale import Receipt, sanitise_directory
from unface.scale.part import PartDone, PartJob, sanitise_part


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "clean"


def refused(source: Path, out: Path, by: Projection | None = None, **options: bool | str) -> str:
    with pytest.raises(UnfaceError) as caught:
        sanitise_directory(by or projection(), source, out, **options)  # type: ignore[arg-type]  # options of several types
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def worked_on(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that a run reads and writes."""
    seen: list[str] = []

    def noted(job: PartJob) -> PartDone:
        seen.append(job.name)
        return sanitise_part(job)

    monkeypatch.setattr("unface.scale.sanitise.sanitise_part", noted)
    return seen


def test_every_file_comes_back_under_its_name_with_all_rows_and_columns(source: Path, out: Path) -> None:
    receipt = sanitise_directory(projection(), source, out)
    assert sorted(hashes(out)) == NAMES
    assert np.array_equal(all_vectors(out), projection().apply(PEOPLE.unit().vectors))
    assert all_others(out).equals(all_others(source))
    assert (receipt.rows, receipt.files, receipt.degenerate, receipt.named_space) == (120, 4, 0, True)
    assert receipt.sentence() == "clean: 120 vectors, 5 of 16 dimensions removed (isp)"


def test_a_folder_and_a_file_are_erased_by_the_same_bytes(source: Path, out: Path, tmp_path: Path) -> None:
    from unface.scale import sanitise_file

    sanitise_directory(projection(), source, out)
    sanitise_file(projection(), source / "a.parquet", tmp_path / "alone.parquet")
    assert (tmp_path / "alone.parquet").read_bytes() == (out / "a.parquet").read_bytes()


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_the_number_of_threads_changes_no_byte(source: Path, out: Path, tmp_path: Path, threads: int) -> None:
    sanitise_directory(projection(), source, out)
    sanitise_directory(projection(), source, tmp_path / "other", threads=threads)
    assert hashes(out) == hashes(tmp_path / "other")


def test_records_and_receipt_say_what_was_done(source: Path, out: Path) -> None:
    sanitise_directory(projection(), source, out)
    record = json.loads((out / "_unface/done/deep/er/c.parquet.json").read_text())
    assert record["rows"] == 69
    assert record["source_sha256"] == hashlib.sha256((source / "deep/er/c.parquet").read_bytes()).hexdigest()
    assert record["sha256"] == hashlib.sha256((out / "deep/er/c.parquet").read_bytes()).hexdigest()
    assert record["bytes"] == (out / "deep/er/c.parquet").stat().st_size
    text = (out / "_unface/receipt.json").read_text()
    assert text.startswith('{\n  "schema": "unface.receipt/1",\n')
    assert text.endswith("\n}\n")
    receipt = Receipt.model_validate_json(text)
    assert receipt.projection_sha256 == projection().sha256
    assert receipt.verified is None
    manifest = (out / "_unface/manifest.json").read_text()
    assert json.loads(manifest)["files"] == {name: (source / name).stat().st_size for name in NAMES}
    assert str(source) not in manifest
    assert manifest.startswith('{\n  "schema": "unface.directory/1",\n')
    assert manifest.endswith("\n}\n")
    assert not list((out / "_unface/unfinished").iterdir())


def test_a_finished_output_is_refused_and_made_again_when_told_to(
    source: Path, out: Path, worked_on: list[str]
) -> None:
    sanitise_directory(projection(), source, out)
    before = hashes(out)
    assert refused(source, out) == "clean: is finished already; choose another OUT or pass --force"
    sanitise_directory(projection(), source, out, force=True)
    assert hashes(out) == before
    assert len(worked_on) == 8


def test_starting_over_with_other_files_leaves_none_of_the_old_ones(source: Path, out: Path) -> None:
    sanitise_directory(projection(), source, out)
    (source / "a.parquet").rename(source / "z.parquet")
    sanitise_directory(projection(), source, out, force=True)
    assert sorted(hashes(out)) == ["b.parquet", "deep/er/c.parquet", "empty.parquet", "z.parquet"]


def test_starting_over_removes_nothing_outside_the_output(source: Path, out: Path) -> None:
    sanitise_directory(projection(), source, out)
    plan = json.loads((out / "_unface/manifest.json").read_text())
    plan["files"]["../raw/a.parquet"] = 1
    (out / "_unface/manifest.json").write_text(json.dumps(plan))
    before = hashes(source)
    sanitise_directory(projection(), source, out, force=True)
    assert hashes(source) == before


@pytest.mark.parametrize("damage", [{"schema": "somebody's/1"}, {"files": ["a.parquet"]}], ids=["schema", "files"])
def test_a_plan_of_another_kind_is_refused(source: Path, out: Path, damage: dict[str, object]) -> None:
    sanitise_directory(projection(), source, out)
    plan = json.loads((out / "_unface/manifest.json").read_text())
    (out / "_unface/manifest.json").write_text(json.dumps(plan | damage))
    (out / "_unface/receipt.json").unlink()
    assert refused(source, out) == "clean: _unface/manifest.json cannot be read; remove the folder and start again"


def unfinished(out: Path, *lost: str) -> None:
    """As if the run had been killed before these were recorded."""
    (out / "_unface/receipt.json").unlink()
    for name in lost:
        (out / "_unface/done" / f"{name}.json").unlink()


def test_only_what_is_missing_is_done_again(source: Path, out: Path, worked_on: list[str]) -> None:
    sanitise_directory(projection(), source, out)
    before = hashes(out)
    unfinished(out, "b.parquet")
    (out / "a.parquet").unlink()  # recorded, and lost since
    (out / "deep/er/c.parquet").write_bytes(b"half of it")
    (out / "_unface/unfinished/left").write_text("of a run that was killed")
    worked_on.clear()
    receipt = sanitise_directory(projection(), source, out)
    assert sorted(worked_on) == ["a.parquet", "b.parquet", "deep/er/c.parquet"]
    assert hashes(out) == before
    assert receipt.rows == 120
    assert not list((out / "_unface/unfinished").iterdir())


def test_a_source_that_changed_since_is_done_again_and_one_that_was_only_touched_is_not(
    source: Path, out: Path, worked_on: list[str]
) -> None:
    sanitise_directory(projection(), source, out)
    unfinished(out)
    worked_on.clear()
    written(table().slice(0, 49), source / "a.parquet", row_group_size=23)
    os.utime(source / "b.parquet", ns=(1, 1))
    assert sanitise_directory(projection(), source, out).rows == 119
    assert worked_on == ["a.parquet"]


def test_a_source_of_the_same_size_that_changed_is_seen(source: Path, out: Path, worked_on: list[str]) -> None:
    sanitise_directory(projection(), source, out)
    unfinished(out)
    worked_on.clear()
    size = (source / "a.parquet").stat().st_size
    vectors = PEOPLE.vectors.copy()
    vectors[0, 0] += 1
    written(table(vectors).slice(0, 50), source / "a.parquet", row_group_size=23)
    assert (source / "a.parquet").stat().st_size == size
    sanitise_directory(projection(), source, out)
    assert worked_on == ["a.parquet"]


def test_an_output_begun_otherwise_is_refused_and_what_differs_is_told(source: Path, out: Path, tmp_path: Path) -> None:
    sanitise_directory(projection(), source, out)
    unfinished(out)
    told = "clean: was begun with different settings ({}); give the same command, or --force to start over"
    other = Projection("isp", np.eye(DIM)[:, :2].copy(), np.ones(2), projection().space)
    assert refused(source, out, other) == told.format("projection")
    assert refused(collection(tmp_path / "other"), out) == told.format("source")
    (source / "empty.parquet").unlink()
    assert refused(source, out) == told.format("files: empty.parquet is gone")
    collection(source)
    written(table(), source / "more.parquet")
    assert refused(source, out) == told.format("files: more.parquet is new")


def test_a_projection_of_another_space_is_refused_before_a_byte_is_written(source: Path, out: Path) -> None:
    """Also where only the last file says so."""
    written(table(space=Space("clip", None, DIM, normalised=False)), source / "z.parquet")
    told = refused(source, out)
    assert told.startswith("projection: fitted in 'arcface'")
    assert "these vectors are in 'clip', 16 dimensions" in told
    assert not out.exists()


@pytest.mark.parametrize(
    ("vectors", "told"),
    [
        (PEOPLE.vectors[:, :8], "z.parquet: vectors of 8 dimensions; this projection is for 16: fit one"),
        (None, "z.parquet: has no column 'vector'; there are id: name yours with --vector-column"),
    ],
)
def test_files_that_the_projection_cannot_be_for_are_refused_first(
    source: Path, out: Path, vectors: np.ndarray | None, told: str
) -> None:
    content = pa.table({"id": ["a"]}) if vectors is None else table(vectors, None)
    written(content, source / "z.parquet")
    assert refused(source, out) == told
    assert not out.exists()


def test_what_lies_in_the_output_already_is_not_mixed_with(source: Path, out: Path) -> None:
    out.mkdir()
    written(table(), out / "theirs.parquet")
    told = "clean: holds theirs.parquet already, which is not of this run; choose an empty OUT"
    assert refused(source, out) == told
    assert refused(source, out, force=True) == told


def test_output_and_source_must_lie_apart(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    for inside in (source, source / "in", tmp_path, tmp_path / "link"):
        assert refused(source, inside).endswith(": lies in the source or around it; write to another folder")
    for beside in ("raw2", "ra"):
        assert sanitise_directory(projection(), source, tmp_path / beside).rows == 120


def test_a_source_without_files_is_refused(tmp_path: Path, out: Path) -> None:
    (tmp_path / "none").mkdir()
    assert refused(tmp_path / "none", out).startswith("none: no .parquet files in this directory; give the one they")
    assert refused(tmp_path / "nowhere", out).startswith("nowhere: no .parquet files in this directory; give the one")


def test_zero_vectors_stay_zero_and_are_counted(out: Path, tmp_path: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[[0, 11, 80]] = 0
    (tmp_path / "raw").mkdir()
    written(table(vectors, UNNAMED), tmp_path / "raw" / "a.parquet", row_group_size=23)
    receipt = sanitise_directory(oblique(), tmp_path / "raw", out)
    assert receipt.degenerate == 3
    assert not receipt.named_space
