"""If these fail, files wait for the disk only at their end, or are lost where the disk takes no advice."""

import hashlib
import os
from array import array
from pathlib import Path

import pytest

from tests.refusals.table import refused
from unface.output.place import Sink, place_at

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system begins to write when it likes")
BLOCKS = [bytes([number]) * 300 for number in range(20)]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.output.place._AHEAD_BYTES", 1200)


def write(folder: Path) -> str:
    with place_at(folder).written("a") as sink:
        for block in BLOCKS:
            sink.write(block)
    return sink.sha256()


def test_the_disk_is_told_of_every_byte_once_and_of_all_but_the_last_before_the_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    flushed: list[int] = []

    def flush(file: int) -> None:
        flushed.append(len(told))

    def advise(file: int, start: int, size: int, advice: int) -> None:
        assert (os.fstat(file).st_nlink, advice) == (1, os.POSIX_FADV_DONTNEED)
        told.append((start, size))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(os, "fsync", flush)
    write(tmp_path)
    assert told == [(0, 1200), (1200, 1200), (2400, 1200), (3600, 1200), (4800, 1200)]
    assert flushed == [5, 5]  # the file, then the folder that has its name


def test_a_file_system_that_takes_no_advice_gets_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    assert write(tmp_path) == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert (tmp_path / "a").read_bytes() == b"".join(BLOCKS)


def test_what_goes_through_is_counted_in_bytes_whatever_it_is_made_of(tmp_path: Path) -> None:
    with place_at(tmp_path).written("a") as sink:
        assert sink.write(b"four") == sink.tell() == 4
        assert sink.write(memoryview(array("d", [1, 2, 3]))) == 24
        assert sink.tell() == sink.bytes == 28
        sink.flush()
        sink.close()
        closed_by_a_writer = sink.closed
    assert (closed_by_a_writer, sink.closed) == (False, True), "it does not say that all went well"
    assert (tmp_path / "a").stat().st_size == 28


def test_a_disk_that_is_full_is_no_fault_of_the_source(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        sink = Sink(full, "a.parquet")
        with refused("output", "a.parquet"):
            sink.write(b"x")
    assert sink.bytes == 0
