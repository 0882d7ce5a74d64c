"""If these fail, two runs write to one output, or a run that was killed blocks the next one."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.refusals.table import refused
from unface import UnfaceError
from unface.output import lock
from unface.output.lock import file_lock, run_lock
from unface.output.place import Place, place_at


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(lock, "_RENEWED_S", 0.02)
    monkeypatch.setattr(lock, "_ABANDONED_S", 0.2)
    here = f"memory://{uuid.uuid4().hex}"
    yield here
    fsspec.filesystem("memory").rm(here, recursive=True)


def test_a_second_run_in_a_folder_is_refused_and_the_next_one_is_not(tmp_path: Path) -> None:
    place = place_at(tmp_path / "clean")
    with run_lock(place, "OUT"), refused("output", "clean", "another OUT"), run_lock(place, "OUT"):
        pass
    with run_lock(place):
        pass


HOLD = """
import sys, time
from unface.output.lock import run_lock
from unface.output.place import place_at
with run_lock(place_at(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_run_blocks_nobody(tmp_path: Path) -> None:
    place = place_at(tmp_path / "clean")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "clean")], stdout=subprocess.PIPE) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == b"held\n"
        with refused("output", "clean", "process"), run_lock(place):
            pass
        os.kill(holding.pid, signal.SIGKILL)
        holding.wait()
    with run_lock(place):
        pass


def test_a_file_that_is_locked_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "faces.npy"
    path.write_bytes(b"vectors")
    path.chmod(0o400)
    with file_lock(path, "busy"), refused("output"), file_lock(path, "busy"):
        pass
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("faces.npy", b"vectors")]


def test_the_lock_of_an_object_store_refuses_a_second_run_and_not_one_after_a_kill(url: str) -> None:
    place = place_at(f"{url}/clean")
    with run_lock(place), refused("output", f"{url}/clean"), run_lock(place):
        pass
    place.write("_unface/lock", b"of a run that was killed")
    with run_lock(place):
        assert place.read("_unface/lock") != b"of a run that was killed"
    assert place.read("_unface/lock") is None


def test_of_two_that_begin_in_the_same_moment_one_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Place.write

    def overtaken(self: Place, name: str, content: bytes) -> None:
        real(self, name, content)
        real(self, name, b"of the other one")

    monkeypatch.setattr(Place, "write", overtaken)
    with refused("output", f"{url}/clean"), run_lock(place_at(f"{url}/clean")):
        pass
    assert place_at(f"{url}/clean").read("_unface/lock") == b"of the other one", "and the other keeps its lock"


def test_a_folder_that_cannot_be_made_or_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with refused("output", "clean", "Not a directory", "--out"), run_lock(place_at(tmp_path / "file" / "clean")):
        pass

    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", unknown)
    with refused("output", "clean", "No locks available", "--out"), run_lock(place_at(tmp_path / "clean")):
        pass


def test_a_lock_outlives_a_store_that_fails_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a second run would be let in while the first goes on."""
    place, failed = place_at(f"{url}/clean"), threading.Event()
    with run_lock(place):
        real = type(place).write

        def once(self: Place, name: str, content: bytes) -> None:
            if not failed.is_set():
                failed.set()
                raise UnfaceError("the store did not answer")
            real(self, name, content)

        monkeypatch.setattr(Place, "write", once)
        assert failed.wait(60)
        seen = place.read("_unface/lock")
        until = time.monotonic() + 60
        while place.read("_unface/lock") == seen:
            assert time.monotonic() < until, "nobody renews it"
