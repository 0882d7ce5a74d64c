"""If these fail, a file is lost, left raw or erased twice by a crash, a second run or somebody who writes to it."""

import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stores.npy_file import ERASED, MARK, OTHER, PROJECTION, RAW, contents, refused, sanitise
from unface import Projection, UnfaceError
from unface.data.files import SEE_TO_IT
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.beside import BesideFile
from unface.stores.npy import NpyStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "faces.npy", RAW)
    return tmp_path / "faces.npy"


class Cut(BaseException):
    """Stands for the end of the process."""


def cut_before(change: int, patched: pytest.MonkeyPatch, *, linked: bool) -> None:
    """End at this change of names or bytes, and at every later one: no cleaning up comes after."""
    made = [0]

    def standing_in(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            made[0] += 1
            if made[0] > change:
                raise Cut
            if name == "link" and not linked:
                raise OSError(95, "Operation not supported")
            return real(*given, **named)

        return run

    for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "link"), (os, "fsync")):
        patched.setattr(owner, name, standing_in(name, getattr(owner, name)))


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("purge", [True, False])
def test_cut_off_before_any_change_to_the_folder_the_same_call_ends_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool, purge: bool
) -> None:
    for change in itertools.count():
        for entry in list(path.parent.iterdir()):
            entry.unlink()
        np.save(path, RAW)
        with monkeypatch.context() as patched, contextlib.suppress(Cut):
            cut_before(change, patched, linked=linked)
            sanitise(path, purge=purge)
            break
        held, whole = NpyStore(path).inspect(), np.load(path)
        assert np.array_equal(whole, RAW if held.sanitised_with is None else ERASED)
        if held.sanitised_with is None or held.raw_kept:
            sanitise(path, purge=True)
        assert np.array_equal(np.load(path), ERASED)
        assert [name for name, held in contents(path.parent).items() if RAW[7].tobytes() in held] == []
        assert not NpyStore(path).inspect().raw_kept
    assert change > 8


def test_a_file_written_to_after_staging_is_staged_again_and_not_lost(path: Path) -> None:
    store = NpyStore(path)
    store.stage(PROJECTION.apply, MARK, Silent())
    np.save(path, RAW[:100])
    with pytest.raises(UnfaceError, match="was written to while it was staged"):
        store.swap(MARK)
    assert np.array_equal(np.load(path), RAW[:100])
    sanitise(path, purge=True)
    assert np.array_equal(np.load(path), ERASED[:100])


def test_what_another_projection_left_staged_is_cleared_away(path: Path) -> None:
    NpyStore(path).stage(OTHER.apply, OTHER.sha256, Silent())
    sanitise(path)
    assert sorted(contents(path.parent)) == ["faces.npy", "faces.npy.raw", "faces.npy.unface.json"]


def test_marks_that_begin_alike_are_told_apart(path: Path) -> None:
    alike = MARK[:8] + 56 * "0"
    NpyStore(path).stage(OTHER.apply, alike, Silent())
    with pytest.raises(UnfaceError, match="run it again"):
        NpyStore(path).swap(MARK)
    sanitise(path)
    assert np.array_equal(np.load(path), ERASED)


def test_a_staged_file_that_was_damaged_is_not_swapped_in(path: Path) -> None:
    store = NpyStore(path)
    store.stage(PROJECTION.apply, MARK, Silent())
    staged = next(path.parent.glob(".faces.npy.unface-*"))
    staged.write_bytes(staged.read_bytes()[:-5])
    with pytest.raises(UnfaceError, match="run it again"):
        store.swap(MARK)
    sanitise(path)
    assert np.array_equal(np.load(path), ERASED)


def test_a_file_written_to_after_it_was_sanitised_is_neither_taken_for_raw_nor_for_erased(path: Path) -> None:
    sanitise(path, purge=True)
    np.save(path, np.concatenate([ERASED, RAW[:1]]))
    told = refused(path)
    assert "was written to since it was sanitised" in told
    assert told.endswith("start from raw ones, and remove faces.npy.unface.json")
    path.with_name("faces.npy.unface.json").unlink()
    np.save(path, RAW)
    sanitise(path)


def test_a_full_disk_leaves_everything_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before the first row: a memory map would end the process instead."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert refused(path) == f"faces.npy: cannot be staged beside it (No space left on device); {SEE_TO_IT}"


@pytest.mark.parametrize("other", [PROJECTION, OTHER])
def test_a_second_run_at_the_same_time_is_refused_and_the_first_loses_nothing(path: Path, other: Projection) -> None:
    class Second(Silent):
        """Begins while the first is writing."""

        said = ""

        def advance(self, *_: object) -> None:
            with pytest.raises(UnfaceError) as caught:
                sanitise_store(other, NpyStore(path), purge=True)
            self.said = str(caught.value)

    second = Second()
    sanitise_store(PROJECTION, NpyStore(path), purge=True, progress=second)
    assert second.said == "faces.npy: another run is at work on it; wait for its end"
    assert np.array_equal(np.load(path), ERASED)


def test_a_run_that_another_one_overtook_does_not_erase_erased_vectors(path: Path) -> None:
    slow = NpyStore(path)
    slow.inspect()
    sanitise(path)
    with pytest.raises(UnfaceError, match="another run came between"):
        slow.stage(OTHER.apply, OTHER.sha256, Silent())
    assert np.array_equal(np.load(path), ERASED)


def test_what_is_written_while_a_run_begins_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read after it is known which one it was."""
    begin = BesideFile.staging

    def late(file: BesideFile, mark: str) -> Any:
        np.save(path.with_name("new.npy"), RAW[::-1])
        path.with_name("new.npy").replace(path)
        return begin(file, mark)

    monkeypatch.setattr(BesideFile, "staging", late)
    sanitise(path, purge=True)
    assert np.array_equal(np.load(path), ERASED[::-1])
