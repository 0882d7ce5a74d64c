"""If these fail, an output is half written, written over what was there, or is found before it is whole."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refusals.table import refused
from unface.output import write
from unface.output.taken import require_distinct, require_folder, require_new_file, require_new_files, require_no_result
from unface.output.write import publish, scratch_folder, staged, write_file, write_files


@pytest.fixture
def umask() -> Iterator[int]:
    old = os.umask(0o027)
    yield 0o027
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def full_disk(monkeypatch: pytest.MonkeyPatch, fails_at: int = 1) -> None:
    calls: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_file_appears_whole_and_with_the_mode_of_the_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with staged(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert mode(path) == 0o666 & ~umask
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_private_while_it_is_written(tmp_path: Path) -> None:
    with staged(tmp_path / "a", private=True) as unfinished:
        assert mode(unfinished) == 0o600
        unfinished.write_text("a name")
    assert mode(tmp_path / "a") == 0o600


def test_a_block_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fail() -> None:
        with staged(path) as unfinished:
            unfinished.write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("a", "old")]


def test_a_full_disk_is_one_line_with_advice_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    full_disk(monkeypatch)
    with refused("output", "a", "No space left on device"):
        write_file(path, b"new")
    full_disk(monkeypatch)
    with refused("output", f"{path}", "No space left on device", "--junit"):
        write_file(path, b"new", option="--junit")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("a", "old")]


def test_the_content_is_on_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a name must not lead to an empty file."""
    flushed: list[tuple[bool, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), (tmp_path / "a").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_file(tmp_path / "a", b"new")
    assert flushed == [(False, False), (True, True)]


def test_a_folder_replaces_an_older_one_as_a_whole(tmp_path: Path) -> None:
    for text in ("old", "new"):
        (tmp_path / "aside").mkdir()
        (tmp_path / "aside" / text).write_text(text)
        publish(tmp_path / "aside", tmp_path / "person")
    assert [str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*")] == ["person", "person/new"]


def test_files_of_one_result_appear_together_and_private_ones_for_their_owner(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "deep" / "er"
    write_files(folder, {"audit.json": "{}"}, {"names.csv": "a\n", "others.csv": None})
    assert {entry.name: mode(entry) for entry in folder.iterdir()} == {
        "audit.json": 0o666 & ~umask,
        "names.csv": 0o600,
    }
    write_files(folder, {"audit.json": "{2}"}, {"names.csv": None})
    assert [(entry.name, entry.read_text()) for entry in folder.iterdir()] == [("audit.json", "{2}")]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_changes_none_of_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    write_files(tmp_path, {"a": "old"}, {"b": "old"})
    full_disk(monkeypatch, fails_at)
    with refused("output", f"{tmp_path}", "No space left on device", "--out"):
        write_files(tmp_path, {"a": "new"}, {"b": "new"})
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"a": "old", "b": "old"}


def test_a_scratch_folder_is_gone_afterwards_and_what_was_published_is_not(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as aside:
        (aside / "weights").write_bytes(b"1")
        (aside / "rest").write_bytes(b"2")
        publish(aside / "weights", tmp_path / "weights")
    assert [entry.name for entry in tmp_path.iterdir()] == ["weights"]


KILLED = """
import os, signal, sys
from pathlib import Path
from unface.output import write
path = Path(sys.argv[2])

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

write.publish = die
if sys.argv[1] == "file":
    write.write_file(path / "a", b"half")
elif sys.argv[1] == "private":
    with write.staged(path / "a", private=True) as unfinished:
        die()
elif sys.argv[1] == "files":
    Path.replace = die
    write.write_files(path, {"a": "half"}, {"names.csv": "half"})
else:
    with write.scratch_folder(path) as folder:
        (folder / "weights").write_bytes(b"half")
        die()
"""


@pytest.mark.parametrize("how", ["file", "private", "files", "folder"])
def test_what_a_killed_run_left_is_removed_by_the_next_one(how: str, tmp_path: Path) -> None:
    for _ in range(2):
        died = subprocess.run([sys.executable, "-c", KILLED, how, str(tmp_path)], check=False)
        assert died.returncode == -signal.SIGKILL
        left = [entry for entry in tmp_path.iterdir() if entry.name.endswith(".tmp")]
        assert len(left) == (2 if how == "files" else 1), "of this run; those of the first are gone"
    if how == "files":
        write_files(tmp_path, {"a": "whole"}, {"names.csv": None})
    elif how == "folder":
        with scratch_folder(tmp_path):
            pass
    else:
        write_file(tmp_path / "a", b"whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if how == "folder" else ["a"])


def test_what_another_run_is_still_writing_and_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    theirs = (".a.tmp", ".a.notours1.tmp", ".ab.0123abcd.tmp", "a.0123abcd.tmp")
    for name in theirs:
        (tmp_path / name).write_bytes(b"theirs")
    (tmp_path / ".a.89abcdef.tmp").symlink_to(".a.tmp")
    with staged(tmp_path / "a") as unfinished, scratch_folder(tmp_path) as folder:
        unfinished.write_bytes(b"of the first")
        write_file(tmp_path / "a", b"of the second")
        with scratch_folder(tmp_path):
            pass
        assert unfinished.exists()
        assert folder.is_dir()
    assert (tmp_path / "a").read_bytes() == b"of the first"
    assert all((tmp_path / name).read_bytes() == b"theirs" for name in theirs)


def test_a_file_that_another_run_takes_for_a_left_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making a file and locking it there is a moment."""
    made: list[Path] = []
    real = write.new_file

    def overtaken(path: Path, **given: bool) -> None:
        real(path, **given)
        made.append(path)
        if len(made) == 1:
            path.unlink()

    monkeypatch.setattr(write, "new_file", overtaken)
    write_file(tmp_path / "a", b"whole")
    assert len(made) == 2
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_where_there_are_no_locks_files_are_written_and_left_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", unknown)
    (tmp_path / ".a.0123abcd.tmp").write_bytes(b"of a run that may be at work")
    write_file(tmp_path / "a", b"whole")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".a.0123abcd.tmp", "a"]


def test_a_folder_that_was_made_for_files_that_could_not_be_written_is_removed(tmp_path: Path) -> None:
    with refused("output", ...):
        write_files(tmp_path / "new" / "out", {"a" * 300: "too long a name"}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    require_new_file(path, force=False)
    path.write_text("mine")
    with refused("output", f"{path}", "--out", "--force"):
        require_new_file(path, force=False)
    require_new_file(path, force=True)
    with refused("output", f"{path}", "--receipt"):
        require_new_file(path, force=False, option="--receipt")


def test_a_folder_in_the_files_place_is_refused_even_if_forced(tmp_path: Path) -> None:
    with refused("output", f"{tmp_path}", "--out", "takes"):
        require_new_file(tmp_path, force=True)


def test_a_missing_folder_is_refused_unless_the_writer_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    with refused("output", f"{path}", "there"):
        require_new_file(path, force=False)
    require_new_file(path, force=False, make_folder=True)
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "a"
    with refused("output", f"{below}", "--out", "cannot"):
        require_new_file(below, force=False, make_folder=True)


def test_a_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    path = tmp_path / "a"
    with refused("output", f"{path}", "--out", "does"):
        require_new_file(path, force=False)
    with refused("output", ..., "--out", "does"):
        require_folder(tmp_path / "new" / "folder")


def test_files_in_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    require_new_files(tmp_path, ("a", "b"), force=False)
    (tmp_path / "b").write_text("mine")
    with refused("output", f"{tmp_path / 'b'}", "--force"):
        require_new_files(tmp_path, ("a", "b"), force=False)
    require_new_files(tmp_path, ("a", "b"), force=True)
    with refused("output", ..., "--out", "takes"):
        require_new_files(tmp_path / "b", (), force=True)


def test_one_file_is_neither_written_twice_nor_over_what_is_read(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    link.symlink_to(one)
    require_distinct((one, None), (other, None))
    for written, read in (((one, one), ()), ((one,), (one,)), ((link,), (one,))):
        with refused("output", ..., "named"):
            require_distinct(written, read)


def test_a_page_beside_an_unfinished_result_was_left_by_a_killed_run(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("drawn")
    with refused("output", ..., "page"):
        require_no_result(tmp_path, "result.json", "page.html", force=False)
    (tmp_path / ".result.json.0123abcd.tmp").write_text("{")
    require_no_result(tmp_path, "result.json", "page.html", force=False)
    (tmp_path / "result.json").write_text("{}")
    with refused("output", ..., "result.json"):
        require_no_result(tmp_path, "result.json", "page.html", force=False)


def test_a_link_that_leads_nowhere_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with refused("output", f"{tmp_path / 'link'}", "link", "--out"):
        require_folder(tmp_path / "link")
