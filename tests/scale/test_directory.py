"""If these fail, sanitising a folder loses rows or columns, releases raw vectors, or does again what was done."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.scale.collection import NAMES, all_others, all_vectors, collection, hashes
from tests.scale.stored import PEOPLE, UNNAMED, oblique, projection, table, written
from unface.erase import Projection
from unface.scale import Receipt, sanitise_directory
from unface.scale.part import PartDone, PartJob, sanitise_part


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "clean"


def attempt(source: Path, out: Path, by: Projection | None = None, **options: bool | str) -> None:
    sanitise_directory(by or projection(), source, out, **options)  # type: ignore[arg-type]  # options of several types


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
    with refused("apply", "clean", "--force"):
        attempt(source, out)
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


def test_output_and_source_must_lie_apart(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    for inside in (source, source / "in", tmp_path, tmp_path / "link"):
        with refused("apply", ..., "lies"):
            attempt(source, inside)
    for beside in ("raw2", "ra"):
        assert sanitise_directory(projection(), source, tmp_path / beside).rows == 120


def test_zero_vectors_stay_zero_and_are_counted(out: Path, tmp_path: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[[0, 11, 80]] = 0
    (tmp_path / "raw").mkdir()
    written(table(vectors, UNNAMED), tmp_path / "raw" / "a.parquet", row_group_size=23)
    receipt = sanitise_directory(oblique(), tmp_path / "raw", out)
    assert receipt.degenerate == 3
    assert not receipt.named_space
