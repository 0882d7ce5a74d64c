"""If these fail, one bad file or a full disk costs the work of others, or is passed on as if it were well."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.refusals.table import refused
from tests.scale.collection import collection, hashes
from tests.scale.stored import PEOPLE, projection, table, written
from unface import UnfaceError
from unface.output.place import Entry
from unface.output.write import OutputError
from unface.scale import Place, sanitise_directory
from unface.scale.part import PartDone, PartJob, read_back, sanitise_part
from unface.scale.receipt import Verified


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "clean"


def attempt(source: Path, out: Path, **options: Any) -> None:
    sanitise_directory(projection(), source, out, **options)


def test_a_corrupt_file_is_named_the_others_are_done_and_after_repair_it_is_too(source: Path, out: Path) -> None:
    whole = (source / "b.parquet").read_bytes()
    (source / "b.parquet").write_bytes(whole[:-20])
    with refused("apply", "b.parquet", "3", "of 4"):
        attempt(source, out)
    assert sorted(hashes(out)) == ["a.parquet", "deep/er/c.parquet", "empty.parquet"]
    assert not (out / "_unface/receipt.json").exists()
    (source / "b.parquet").write_bytes(whole)
    again = InTurn()
    assert sanitise_directory(projection(), source, out, executor=again).rows == 120
    assert [job.name for job in again.jobs] == ["b.parquet"]


def test_a_flipped_byte_among_the_vectors_is_not_passed_on(source: Path, out: Path) -> None:
    path = written(table(), source / "a.parquet", write_page_checksum=True, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[content.index(PEOPLE.vectors[60].tobytes()) + 5] ^= 0x40
    path.write_bytes(content)
    with refused("apply", "a.parquet", "readable"):
        attempt(source, out)
    assert "a.parquet" not in hashes(out)


def test_of_several_bad_files_the_first_is_told_with_how_many_there_are(source: Path, out: Path) -> None:
    for name in ("a.parquet", "b.parquet", "empty.parquet"):
        (source / name).write_bytes(b"PAR1 and no more")
    with refused("apply", "a.parquet", "and 2", "1", "of 4"):
        attempt(source, out, executor=InTurn())


def test_a_receipt_goes_before_a_file_it_speaks_of_is_made_again(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sanitise_directory(projection(), source, out)
    written(table().slice(0, 49), source / "a.parquet")

    def killed(job: PartJob) -> PartDone:
        sanitise_part(job)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("unface.scale.sanitise.sanitise_part", killed)
        with pytest.raises(KeyboardInterrupt):
            sanitise_directory(projection(), source, out, verify=True)
    assert not (out / "_unface/receipt.json").exists()
    assert sanitise_directory(projection(), source, out).rows == 119


FULL = OutputError("b.parquet: cannot be written (No space left on device)")


def test_when_nothing_more_can_be_written_the_rest_is_not_tried(source: Path, out: Path) -> None:
    run = InTurn({"b.parquet": FULL})
    with refused("apply", "b.parquet", "1", "of 4"):
        attempt(source, out, executor=run)
    assert run.closed
    assert sorted(hashes(out)) == ["a.parquet"]
    assert sanitise_directory(projection(), source, out).rows == 120


def test_results_that_come_in_a_list_need_not_be_closed(source: Path, out: Path) -> None:
    with refused("apply", "b.parquet", "0", "of 4"):
        attempt(source, out, executor=lambda work, jobs: iter([(1, FULL)]))


def test_machines_elsewhere_have_one_core_for_a_file(source: Path, out: Path) -> None:
    run = InTurn()
    sanitise_directory(projection(), source, out, executor=run, threads=64)
    assert [(job.name, job.threads) for job in run.jobs][:2] == [("a.parquet", 1), ("b.parquet", 1)]
    assert all(job.threads == 1 for job in run.jobs)


def seen_in(*numbers: tuple[int, float, float, float]) -> list[Verified]:
    return [Verified(rows=a, largest_left=b, worst_length=c, allowed=d) for a, b, c, d in numbers]


def test_of_what_was_read_back_the_receipt_has_the_sum_of_rows_and_the_worst_of_all_else(
    source: Path, out: Path
) -> None:
    parts = seen_in((50, 1e-7, 5e-7, 4e-6), (1, 3e-4, 2e-7, 4e-3), (69, 2e-7, 9e-4, 4e-6), (0, 0, 0, 0))
    receipt = sanitise_directory(projection(), source, out, verify=True, executor=InTurn(read_back=parts))
    assert receipt.verified == Verified(rows=120, largest_left=3e-4, worst_length=9e-4, allowed=4e-3)


def test_rows_that_were_written_and_are_not_there_any_more_are_missed(source: Path, out: Path) -> None:
    parts = seen_in((50, 0, 0, 4e-6), (1, 0, 0, 4e-6), (68, 0, 0, 4e-6), (0, 0, 0, 0))
    with refused("apply", "clean", "119", "120"):
        attempt(source, out, verify=True, executor=InTurn(read_back=parts))
    assert not (out / "_unface/receipt.json").exists()


def test_a_source_that_is_gone_or_written_to_meanwhile_is_told(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = PartJob(b"", str(source), str(out), "a.parquet")
    monkeypatch.setattr("unface.scale.part.loaded", lambda _: projection())
    looked: list[str] = []

    def changing(self: Place, name: str) -> Entry:
        looked.append(name)
        return Entry(name, 9, changed_ns=len(looked))

    with monkeypatch.context() as patched:
        patched.setattr(Place, "look", changing)
        with refused("apply", "a.parquet", "changed"):
            sanitise_part(job)
    assert hashes(out) == {}
    assert not (out / "_unface/done").exists()
    (source / "a.parquet").unlink()
    with refused("apply", "a.parquet", "such"):
        sanitise_part(job)


@dataclass
class InTurn:
    """An executor that does one job after the other, knows which, and fails or answers on command."""

    fails: dict[str, UnfaceError] = field(default_factory=dict)
    read_back: list[Verified] | None = None
    jobs: list[PartJob] = field(default_factory=list)
    closed: bool = False

    def __call__(self, work: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        if work is read_back and self.read_back is not None:
            yield from enumerate(self.read_back)
            return
        try:
            for index, job in enumerate(jobs):
                self.jobs.append(job)
                try:
                    yield index, self.fails.get(job.name) or work(job)
                except UnfaceError as error:
                    yield index, error
        finally:
            self.closed = True
