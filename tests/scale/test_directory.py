"""If these fail, sanitising a folder loses rows or columns, releases raw vectors, or does again what was done."""

import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.collection import NAMES, all_others, all_vectors, collection, hashes
from tests.scale.stored import DIM, PEOPLE, UNNAMED, oblique, projection, table, written
from unface import UnfaceError
from unface._version import __version__
from unface.erase import Projection
from unface.output import lock
from unface.output.lock import run_lock
from unface.scale import Receipt, place_at, sanitise_directory
from unface.scale.part import PartDone, PartJob, sanitise_part
from unface.scale.receipt import Check, Verified
from unface.scale.sums import Cut, SumsJob, gather_here


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


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(lock, "_RENEWED_S", 0.02)
    monkeypatch.setattr(lock, "_ABANDONED_S", 0.2)
    here = f"memory://{uuid.uuid4().hex}"
    yield here
    fsspec.filesystem("memory").rm(here, recursive=True)


def test_a_file_url_is_the_folder_itself(tmp_path: Path) -> None:
    source, out = collection(tmp_path / "raw"), tmp_path / "clean"
    sanitise_directory(projection(), source.as_uri(), out.as_uri())
    sanitise_directory(projection(), source, tmp_path / "other")
    assert hashes(out) == hashes(tmp_path / "other")
    assert place_at(out.as_uri()).local


def test_an_object_store_gets_the_same_bytes_goes_on_and_gives_them_back(tmp_path: Path, url: str) -> None:
    source = collection(tmp_path / "raw")
    memory = fsspec.filesystem("memory")
    receipt = sanitise_directory(projection(), source, f"{url}/clean", verify=True)
    sanitise_directory(projection(), source, tmp_path / "clean")
    for name in NAMES:
        assert memory.cat(f"{url}/clean/{name}") == (tmp_path / "clean" / name).read_bytes()
    assert receipt.where == f"{url}/clean"
    assert receipt.verified is not None
    assert receipt.verified.rows == 120
    memory.rm(f"{url}/clean/_unface/receipt.json")
    memory.rm(f"{url}/clean/_unface/done/a.parquet.json")
    assert sanitise_directory(projection(), source, f"{url}/clean").rows == 120
    assert not memory.exists(f"{url}/clean/_unface/lock")


def test_reading_goes_ahead_of_erasing_where_it_waits_for_a_network_and_where_cores_are_left(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead: list[int] = []

    def overlapped(
        items: Iterator[object], work: Callable[[object], object], threads: int, _: object
    ) -> Iterator[object]:
        ahead.append(threads)
        return map(work, items)

    monkeypatch.setattr("unface.scale.stream.overlapped", overlapped)
    source = collection(tmp_path / "raw")
    sanitise_directory(projection(), source, tmp_path / "clean", threads=2)
    assert ahead == []
    sanitise_directory(projection(), source, tmp_path / "other", threads=2 * len(NAMES))
    assert ahead == [2] * len(NAMES)
    sanitise_directory(projection(), source, f"{url}/clean", threads=2)
    assert ahead == [2] * len(NAMES) + [1] * len(NAMES)


def test_a_source_may_be_an_object_store_too(tmp_path: Path, url: str) -> None:
    source = collection(tmp_path / "raw")
    for name in NAMES:
        fsspec.filesystem("memory").pipe(f"{url}/raw/{name}", (source / name).read_bytes())
    sanitise_directory(projection(), f"{url}/raw", f"{url}/clean")
    content = fsspec.filesystem("memory").cat(f"{url}/clean/deep/er/c.parquet")
    assert pq.read_table(io.BytesIO(content)).num_rows == 69


def test_a_folder_is_locked_too(tmp_path: Path) -> None:
    source, out = collection(tmp_path / "raw"), tmp_path / "clean"
    with run_lock(place_at(out)), refused("output", "clean", "another OUT"):
        sanitise_directory(projection(), source, out)
    assert sanitise_directory(projection(), source, out).rows == 120


@dataclass
class Watched:
    """Every word that a bar shows, in order."""

    told: list[tuple[str, int]] = field(default_factory=list)

    def start(self, task: str, total: int) -> None:
        self.told.append((f"{task} of", total))

    def advance(self, task: str, steps: int = 1) -> None:
        self.told.append((task, steps))


def test_files_are_counted_as_they_end_and_again_as_they_are_read_back(source: Path, tmp_path: Path) -> None:
    seen = Watched()
    sanitise_directory(projection(), source, tmp_path / "clean", verify=True, progress=seen)
    assert seen.told == [
        ("files of", 4),
        ("files", 0),
        *[("files", 1)] * 4,
        ("read back of", 4),
        *[("read back", 1)] * 4,
    ]


def test_files_that_were_done_before_count_at_once(source: Path, tmp_path: Path) -> None:
    sanitise_directory(projection(), source, tmp_path / "clean")
    (tmp_path / "clean/_unface/receipt.json").unlink()
    (tmp_path / "clean/_unface/done/b.parquet.json").unlink()
    seen = Watched()
    sanitise_directory(projection(), source, tmp_path / "clean", progress=seen)
    assert seen.told == [("files of", 4), ("files", 3), ("files", 1)]


def test_a_file_that_fails_does_not_count(source: Path, tmp_path: Path) -> None:
    (source / "b.parquet").write_bytes(b"PAR1 and no more")
    seen = Watched()
    with pytest.raises(UnfaceError):
        sanitise_directory(projection(), source, tmp_path / "clean", progress=seen)
    assert seen.told == [("files of", 4), ("files", 0), *[("files", 1)] * 3]


def test_files_are_counted_as_they_are_summed_up(tmp_path: Path) -> None:
    jobs = []
    for name in ("a.parquet", "b.parquet"):
        people = table().append_column("identity", table().column("id"))
        written(people, tmp_path / name)
        jobs.append(SumsJob(str(tmp_path), name, DIM, scatter=True, cut=Cut(seed=0)))
    seen = Watched()
    gather_here(jobs, seen)
    assert seen.told == [("files of", 2), ("files", 1), ("files", 1)]


VERIFIED = Verified(rows=12_345, largest_left=3.21e-7, worst_length=6e-8, allowed=4e-6)


def receipt(**other: object) -> Receipt:
    seen = {"rows": 12_345, "degenerate": 0, "named_space": True, "raw_purged": False, "verified": None} | other
    return Receipt.of(projection(), "Käufer", **seen)


def test_a_receipt_says_what_was_done_by_what_and_when(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    receipt(raw_purged=True, verified=VERIFIED, files=7, notes=["a replica"]).save(tmp_path / "receipt.json")
    found = json.loads((tmp_path / "receipt.json").read_text(encoding="utf-8"))
    finished = datetime.fromisoformat(found.pop("finished"))
    assert before <= finished <= datetime.now(UTC)
    assert finished.microsecond == 0
    assert found == {
        "schema": "unface.receipt/1",
        "unface": __version__,
        "where": "Käufer",
        "projection_sha256": projection().sha256,
        "kind": "isp",
        "rank": 5,
        "dim": 16,
        "released_dim": None,
        "rows": 12_345,
        "degenerate": 0,
        "not_faces": None,
        "named_space": True,
        "arrived": 0,
        "raw_purged": True,
        "verified": {"rows": 12_345, "largest_left": 3.21e-7, "worst_length": 6e-8, "allowed": 4e-6},
        "recall_before": None,
        "recall_after": None,
        "files": 7,
        "bad_rows": None,
        "on_bad_rows": "fail",
        "notes": ["a replica"],
    }


def test_a_saved_receipt_reads_back_equal_and_has_a_line_for_each_thing(tmp_path: Path) -> None:
    given = receipt(verified=VERIFIED)
    given.save(tmp_path / "receipt.json")
    text = (tmp_path / "receipt.json").read_text(encoding="utf-8")
    assert Receipt.model_validate_json(text) == given
    assert text.startswith('{\n  "schema": "unface.receipt/1",\n  "unface": ')
    assert text.endswith("\n}\n")


def test_what_was_verified_is_what_the_check_saw() -> None:
    check = Check(projection(), rows=9, degenerate=1, largest_left=0.1, worst_length=0.2, allowed=0.3)
    assert Verified.by(check) == Verified(rows=9, largest_left=0.1, worst_length=0.2, allowed=0.3)


@pytest.mark.parametrize(
    ("seen", "added"),
    [
        ({}, ""),
        ({"degenerate": 1234}, "; 1,234 have nothing left and are zero"),
        ({"verified": VERIFIED}, "; read back: at most 3e-07 left along what was removed"),
    ],
)
def test_the_sentence_says_what_was_done_and_what_is_odd_about_it(seen: dict[str, object], added: str) -> None:
    done = "Käufer: 12,345 vectors, 5 of 16 dimensions removed (isp)"
    assert receipt(**seen).sentence() == done + added


def test_the_sentence_says_that_nobody_knows_the_encoder() -> None:
    unchecked = "(isp); the source does not say which encoder it is from, so this could not be checked"
    assert receipt(named_space=False).sentence().endswith(unchecked)
