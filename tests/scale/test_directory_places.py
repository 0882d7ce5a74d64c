"""If these fail, a collection behind a URL is sanitised differently from one in a folder, or by two at a time."""

import errno
import io
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from tests.scale.collection import NAMES, collection, hashes
from tests.scale.stored import projection
from unface import UnfaceError
from unface.scale import Place, lock, place_at, sanitise_directory
from unface.scale.lock import held
from unface.scale.sink import OutputError, Sink


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

    def overlapped(items: Iterator[object], work: Callable[[object], object], threads: int) -> Iterator[object]:
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


def test_the_lock_of_an_object_store_refuses_a_second_run_and_not_one_after_a_kill(url: str) -> None:
    place = place_at(f"{url}/clean")
    with held(place), pytest.raises(UnfaceError, match="another process is writing it"), held(place):
        pass
    place.write("_unface/lock", b"of a run that was killed")
    with held(place):
        assert place.read("_unface/lock") != b"of a run that was killed"
    assert place.read("_unface/lock") is None


def test_of_two_that_begin_in_the_same_moment_one_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Place.write

    def overtaken(self: Place, name: str, content: bytes) -> None:
        real(self, name, content)
        real(self, name, b"of the other one")

    monkeypatch.setattr(Place, "write", overtaken)
    with pytest.raises(UnfaceError, match="another process is writing it"), held(place_at(f"{url}/clean")):
        pass
    assert place_at(f"{url}/clean").read("_unface/lock") == b"of the other one", "and the other keeps its lock"


def test_a_folder_that_cannot_be_made_or_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as made, held(place_at(tmp_path / "file" / "clean")):
        pass
    assert str(made.value) == "clean: cannot be written (Not a directory); choose another OUT"

    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", unknown)
    with pytest.raises(OutputError) as locked, held(place_at(tmp_path / "clean")):
        pass
    assert str(locked.value) == "clean: its file system knows no locks (No locks available); choose another OUT"


def test_a_lock_outlives_a_store_that_fails_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a second run would be let in while the first goes on."""
    place, failed = place_at(f"{url}/clean"), threading.Event()
    with held(place):
        real = type(place).write

        def once(self: Place, name: str, content: bytes) -> None:
            if not failed.is_set():
                failed.set()
                raise UnfaceError("the store did not answer")
            real(self, name, content)

        monkeypatch.setattr(Place, "write", once)
        assert failed.wait(5)
        seen = place.read("_unface/lock")
        until = time.monotonic() + 5
        while place.read("_unface/lock") == seen:
            assert time.monotonic() < until, "nobody renews it"


def test_a_folder_is_locked_too(tmp_path: Path) -> None:
    source, out = collection(tmp_path / "raw"), tmp_path / "clean"
    with held(place_at(out)), pytest.raises(UnfaceError) as told:
        sanitise_directory(projection(), source, out)
    assert str(told.value) == "clean: another process is writing it; wait for it or choose another OUT"
    assert sanitise_directory(projection(), source, out).rows == 120


@pytest.mark.parametrize(
    ("address", "told"),
    [("nowhere://x", "nowhere://x: cannot be opened as a URL ("), ("s3a9://u:secret@h/p?key=1", "s3a9://h/p: cannot")],
)
def test_a_url_that_cannot_be_opened_is_told_without_its_password(address: str, told: str) -> None:
    with pytest.raises(UnfaceError) as caught:
        place_at(address)
    assert str(caught.value).startswith(told)
    assert "secret" not in str(caught.value)


def test_what_was_written_goes_also_where_closing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, which it would keep full."""

    def full(sink: Sink) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Sink, "abandon", full)
    with suppress(RuntimeError), place_at(tmp_path).written("x") as sink:
        sink.write(b"half of it")
        raise RuntimeError("in the middle")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_half_a_file_is_never_found(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    place.write("x", b"old")
    with suppress(RuntimeError), place.written("x") as sink:
        sink.write(b"half of the new one")
        raise RuntimeError("in the middle")
    assert place.read("x") == b"old"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["x"]
