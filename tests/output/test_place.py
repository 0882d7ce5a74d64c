"""If these fail, a file that is there is not found, or a failure is reported without its name or with a password."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest
from pyarrow import fs

from tests.refusals.table import refused
from unface.output.place import Entry, Place, Sink, place_at


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        yield place_at(tmp_path / "here")
        return
    yield place_at("memory://of-this-test/here/")
    fsspec.filesystem("memory").rm("memory://of-this-test", recursive=True)


def test_what_is_written_is_found_by_its_name_size_and_hash(place: Place) -> None:
    place.write("b/c.parquet", b"four")
    place.write("a.PARQUET", b"one")
    for name in ("_own/x.parquet", ".x.parquet", "b/_x.parquet", "a.txt", "parquet"):
        place.write(name, b"not data")
    assert [(found.name, found.bytes) for found in place.parquet_files()] == [("a.PARQUET", 3), ("b/c.parquet", 4)]
    assert [found.name for found in place.listed("b")] == ["_x.parquet", "c.parquet"]
    assert place.read("b/c.parquet") == b"four"
    assert place.sha256("b/c.parquet") == hashlib.sha256(b"four").hexdigest()
    seen = place.look("b/c.parquet")
    assert seen is not None
    assert (seen.name, seen.bytes) == ("b/c.parquet", 4)
    with place.opened("b/c.parquet") as file:
        file.seek(2)
        assert file.read() == b"ur"


def test_what_is_not_there_is_nothing_or_told_by_its_name(place: Place) -> None:
    place.write("x", b"so that there is a place")
    assert place.look("gone") is None
    assert place.read("gone") is None
    assert place.listed("gone") == []
    place.drop("gone")
    with refused("output", "b/gone"):
        place.sha256("b/gone")
    with refused("output", "b/gone"), place.opened("b/gone"):
        pass


def test_a_long_file_is_hashed_to_its_end(place: Place) -> None:
    content = os.urandom(3 << 20)
    place.write("x", content)
    assert place.sha256("x") == hashlib.sha256(content).hexdigest()


def test_what_was_dropped_is_gone_and_so_is_what_a_killed_run_left(place: Place) -> None:
    for name in ("x", "y", "_unface/unfinished/1", "_unface/unfinished/deep/2"):
        place.write(name, b"x")
    place.drop("x")
    place.drop_unfinished()
    assert [found.name for found in place.listed("")] == ["y"]


def test_a_place_says_when_a_file_was_changed_where_its_file_system_does(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12")
    os.utime(tmp_path / "x", ns=(1, 1_234_567_890))
    assert place_at(tmp_path).listed("") == [Entry("x", 2, 1_234_567_890)]
    assert place_at(tmp_path).look("x") == Entry("x", 2, 1_234_567_890)


class Broken:
    """A store that answers nothing, in words that hold a key."""

    def __getattr__(self, name: str) -> object:
        raise ValueError("403 for hush")


@pytest.fixture
def broken() -> Place:
    files: fs.FileSystem = Broken()
    return Place(files, "bucket/raw", "s3://key:hush@bucket/raw")


def test_a_store_that_fails_is_told_by_file_with_why_and_without_its_key(broken: Place) -> None:
    with refused("output", "x", "403", "opened"):
        broken.read("x")
    with refused("output", "x", "403", "opened"):
        broken.sha256("x")
    with refused("output", "x", "403", "opened"):
        broken.look("x")
    with refused("output", "s3://bucket/raw", "403"):
        broken.parquet_files()
    with refused("output", "x", "403", "written"):
        broken.write("x", b"")
    with refused("output", "x", "403", "removed"):
        broken.drop("x")


def test_a_name_that_would_break_a_line_is_told_by_its_codes(tmp_path: Path) -> None:
    with refused("output", "'a\\nb'"):
        place_at(tmp_path).sha256("a\nb")


@pytest.mark.parametrize(("code", "is_text"), [(0xD7FF, True), (0xD800, False), (0xDFFF, False), (0xE000, True)])
def test_a_name_of_half_letters_cannot_be_written_down(
    code: int, is_text: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [Entry(f"{chr(code)}.parquet", 1, None)]
    monkeypatch.setattr(Place, "listed", lambda self, folder, links: found)
    if is_text:
        assert place_at(tmp_path).parquet_files() == found
        return
    with refused("output", ..., "not UTF-8"):
        place_at(tmp_path).parquet_files()


def test_a_place_is_called_by_its_last_name_and_known_by_all_of_it(tmp_path: Path) -> None:
    folder = place_at(tmp_path / "here")
    assert (folder.shown, folder.whole, folder.local) == ("here", str(tmp_path / "here"), True)
    store = place_at("memory://bucket/here/")
    assert (store.shown, store.whole, store.local) == ("memory://bucket/here", "memory://bucket/here", False)
    assert store.path("") == store.root
    assert store.path("x") == f"{store.root}/x"


def test_a_path_from_where_one_is_means_the_same_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_at("here").address == str(tmp_path / "here")
    assert place_at((tmp_path / "here").as_uri()).address == str(tmp_path / "here")


@pytest.mark.parametrize(
    ("address", "shown"),
    [("nowhere://x", "nowhere://x"), ("s3a9://u:secret@h/p?key=1", "s3a9://h/p")],
)
def test_a_url_that_cannot_be_opened_is_told_without_its_password(address: str, shown: str) -> None:
    with refused("output", shown) as caught:
        place_at(address)
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
