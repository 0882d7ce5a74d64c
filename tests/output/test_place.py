"""If these fail, a place forgets what was written, or a message shows a secret of its address."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest
from pyarrow import fs

from tests.refusals.table import refused
from tests.scale.collection import collection
from tests.scale.stored import projection
from unface.output.place import Entry, Place, Sink, place_at, why, without_secrets
from unface.scale import sanitise_directory


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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/a@b/c", "s3://bucket/a@b/c"),
        ("s3://key:secret@bucket/raw/?token=secret", "s3://bucket/raw"),
        ("s3://key:sec/secret+x@bucket/raw", "s3://bucket/raw"),
        ("hdfs://host:8020/raw//x/", "hdfs://host:8020/raw/x"),
        ("s3://bucket/", "s3://bucket"),
        ("hdfs://host:8020/a@b", "hdfs://host:8020/a@b"),
        ("s3://key:sec/ret@bucket", "s3://bucket"),
        ("s3://bucket/a/../b/./c", "s3://bucket/b/c"),
        ("s3://bucket/X", "s3://bucket/X"),
    ],
)
def test_what_is_shown_of_a_url_has_no_secret_and_one_form(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_secret_does_not_come_back_in_a_library_s_own_words() -> None:
    url = "s3://key:hush@bucket/x?token=quiet"
    for said in (f"Cannot parse URI: '{url}'", "403 for key:hush", "GET /x?token=quiet failed"):
        told = why(ValueError(said), url)
        assert "hush" not in told
        assert "quiet" not in told


def test_a_secret_inside_another_leaves_nothing_of_it() -> None:
    assert why(ValueError("403 for akz"), "s3://k:akz@bucket/x") == "403 for …"
    assert why(ValueError("403 for akz"), "s3://bucket/x?a=akz&b=k&c=") == "403 for …"
    assert why(ValueError("403 for quiet=="), "s3://bucket/x?token=quiet==") == "403 for …"


def test_a_failure_without_words_is_told_by_its_name() -> None:
    assert why(TimeoutError(), "s3://bucket/x") == "TimeoutError"
    assert why(OSError(28, "in Arrow's own words"), "s3://bucket/x") == "No space left on device"


def test_a_path_may_be_part_of_what_a_library_says_and_is_no_secret() -> None:
    assert why(ValueError("bad magic"), "raw") == "bad magic"


def test_arrow_s_messages_are_told_without_the_path_in_them() -> None:
    said = OSError(13, "Failed to open local file '/somewhere/raw/a.parquet'. Detail: [errno 13] Permission denied")
    assert why(said, "/somewhere/raw") == "Permission denied"


def test_a_slash_at_the_end_does_not_hide_that_the_output_lies_in_the_source() -> None:
    with refused("apply", "memory://apart/raw/clean"):
        sanitise_directory(projection(), "memory://apart/raw/", "memory://apart/raw/clean")


def test_a_manifest_holds_no_hash_of_a_password_and_a_new_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = collection(tmp_path / "raw")
    memory = fsspec.filesystem("memory")
    for name in ("a.parquet", "b.parquet"):
        memory.pipe(f"memory://hashed/raw/{name}", (source / name).read_bytes())
    real = place_at("memory://hashed/raw")
    monkeypatch.setattr("unface.output.place._file_system", lambda url: (real.files, real.root))
    given = "memory://key:{}@hashed/raw"
    for secret in ("old", "new"):
        sanitise_directory(projection(), given.format(secret), tmp_path / "clean")
        (tmp_path / "clean/_unface/receipt.json").unlink()
    manifest = json.loads((tmp_path / "clean/_unface/manifest.json").read_text())
    assert manifest["source"] == hashlib.sha256(b"memory://hashed/raw").hexdigest()
    memory.rm("memory://hashed", recursive=True)


def test_a_file_url_without_a_root_is_a_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be locked in another way than the same folder by its path."""
    monkeypatch.chdir(tmp_path)
    assert place_at("file://raw-of-this-test").local
