"""If these fail, a bar counts past its end, never reaches it, or begins anew when a run goes on."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.scale.collection import collection
from tests.scale.stored import DIM, projection, table, written
from unface import UnfaceError
from unface.scale import sanitise_directory
from unface.scale.sums import Cut, SumsJob, gather_here


@dataclass
class Watched:
    """Every word that a bar shows, in order."""

    told: list[tuple[str, int]] = field(default_factory=list)

    def start(self, task: str, total: int) -> None:
        self.told.append((f"{task} of", total))

    def advance(self, task: str, steps: int = 1) -> None:
        self.told.append((task, steps))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


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
