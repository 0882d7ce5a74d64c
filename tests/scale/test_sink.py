"""If these fail, files wait for the disk only at their end, or are lost where the disk takes no advice."""

import hashlib
import os
from pathlib import Path

import pytest

from unface.scale import place_at

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system begins to write when it likes")
BLOCKS = [bytes([number]) * 300 for number in range(20)]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.scale.sink._AHEAD_BYTES", 1000)


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

    monkeypatch.setattr(os, "posix_fadvise", lambda file, start, size, advice: told.append((start, size)))
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
