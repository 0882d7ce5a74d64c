"""If these fail, a .npy file comes back in another form or as somebody else's, or a crash loses it or leaves it raw."""

import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.stores.contract import erased, projection, raw_vectors
from unface import Projection, UnfaceError
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.beside import BesideFile
from unface.stores.npy import NpyStore

PROJECTION, OTHER = projection(), projection(seed=1)
MARK = PROJECTION.sha256
RAW = raw_vectors()
ERASED = erased(PROJECTION, RAW, "float32")


def sanitise(path: Path, *, purge: bool = False) -> None:
    sanitise_store(PROJECTION, NpyStore(path), purge=purge)


def attempt(path: Path) -> None:
    """Erase it; where that is refused, not a byte of the folder changed."""
    before = contents(path.parent)
    try:
        sanitise(path, purge=True)
    except UnfaceError:
        assert contents(path.parent) == before
        raise


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "faces.npy", RAW)
    return tmp_path / "faces.npy"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_type_and_order_are_kept(path: Path, order: Any, dtype: str) -> None:
    np.save(path, np.asarray(RAW, dtype, order=order))
    sanitise(path)
    found = np.load(path)
    assert found.dtype == np.dtype(dtype)
    assert found.flags.f_contiguous == (order == "F")
    assert np.array_equal(found, erased(PROJECTION, RAW.astype(dtype), found.dtype.name))


def test_blocks_join_without_a_seam(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.stores.npy._BLOCK_BYTES", 8 * 32 * 7)
    sanitise(path)
    assert np.array_equal(np.load(path), ERASED)


def test_beside_the_file_lie_only_the_raw_one_and_the_sidecar_and_after_a_purge_only_that(path: Path) -> None:
    before = path.read_bytes()
    path.chmod(0o640)
    sanitise(path)
    assert sorted(contents(path.parent)) == ["faces.npy", "faces.npy.raw", "faces.npy.unface.json"]
    assert path.with_name("faces.npy.raw").read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    sanitise(path, purge=True)
    assert sorted(contents(path.parent)) == ["faces.npy", "faces.npy.unface.json"]


def test_where_there_are_no_hard_links_the_raw_file_is_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    before = path.read_bytes()
    monkeypatch.setattr(os, "link", link)
    sanitise(path)
    assert path.with_name("faces.npy.raw").read_bytes() == before
    assert np.array_equal(np.load(path), ERASED)
    sanitise(path, purge=True)
    assert sorted(contents(path.parent)) == ["faces.npy", "faces.npy.unface.json"]


def test_a_link_to_the_file_stays_one_and_what_it_points_to_is_sanitised(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.npy"
    link.parent.mkdir()
    link.symlink_to(path)
    sanitise(link, purge=True)
    assert link.is_symlink()
    assert np.array_equal(np.load(path), ERASED)
    assert list(link.parent.iterdir()) == [link]


def test_another_hard_link_to_the_raw_file_is_told(path: Path) -> None:
    os.link(path, path.with_name("second.npy"))
    told = sanitise_store(PROJECTION, NpyStore(path), purge=True).notes
    assert told[0] == "faces.npy: the raw file has 1 more names (hard links) elsewhere"
    assert len(sanitise_store(PROJECTION, NpyStore(path.with_name("second.npy")), purge=True).notes) == 1


def test_a_sanitised_file_that_was_copied_with_its_sidecar_is_still_known(path: Path, tmp_path: Path) -> None:
    sanitise(path, purge=True)
    other = tmp_path / "other"
    other.mkdir()
    for name, held in contents(path.parent).items():
        (other / name).write_bytes(held)
    assert NpyStore(other / "faces.npy").inspect().sanitised_with == MARK


def test_raw_vectors_that_are_all_there_is_are_not_purged(path: Path) -> None:
    with refused("store", "faces.npy", "not sanitised"):
        NpyStore(path).purge()
    assert np.array_equal(np.load(path), RAW)


def test_a_later_purge_counts_what_has_nothing_left(path: Path) -> None:
    np.save(path, np.vstack([RAW, PROJECTION.directions[:, :2].T.astype(np.float32)]))
    first = sanitise_store(PROJECTION, NpyStore(path))
    later = sanitise_store(PROJECTION, NpyStore(path), purge=True)
    assert (first.degenerate, later.degenerate) == (2, 2)
    assert later.verified == first.verified


def test_the_new_file_belongs_to_whom_the_raw_one_did(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    owned, seen = Path.stat, path.stat()

    def stat(file: Path, **given: Any) -> os.stat_result:
        found = list(owned(file, **given))
        if file.name.endswith(".part"):
            found[4] = seen.st_uid + 1  # as if another user ran it
        return os.stat_result(found) if file.name.endswith(".part") else owned(file, **given)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(os, "chown", lambda _, user, group: asked.append((user, group)))
    sanitise(path)
    assert asked == [(seen.st_uid, seen.st_gid)]


@pytest.mark.parametrize(("step", "done"), [("stage", "staged beside it"), ("purge", "purged")])
def test_a_folder_that_may_not_be_written_to_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, done: str
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    NpyStore(path).stage(OTHER.apply, OTHER.sha256, Silent())
    if step == "purge":
        sanitise(path)
    monkeypatch.setattr(Path, "unlink", denied)
    with refused("store", "faces.npy", "Permission"):
        attempt(path)


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
    with refused("store", "faces.npy", "while"):
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
    with refused("store", "faces.npy", "again"):
        NpyStore(path).swap(MARK)
    sanitise(path)
    assert np.array_equal(np.load(path), ERASED)


def test_a_staged_file_that_was_damaged_is_not_swapped_in(path: Path) -> None:
    store = NpyStore(path)
    store.stage(PROJECTION.apply, MARK, Silent())
    staged = next(path.parent.glob(".faces.npy.unface-*"))
    staged.write_bytes(staged.read_bytes()[:-5])
    with refused("store", "faces.npy", "again"):
        store.swap(MARK)
    sanitise(path)
    assert np.array_equal(np.load(path), ERASED)


def test_a_file_written_to_after_it_was_sanitised_is_neither_taken_for_raw_nor_for_erased(path: Path) -> None:
    sanitise(path, purge=True)
    np.save(path, np.concatenate([ERASED, RAW[:1]]))
    with refused("store", "faces.npy", "unface.json"):
        attempt(path)
    path.with_name("faces.npy.unface.json").unlink()
    np.save(path, RAW)
    sanitise(path)


def test_a_full_disk_leaves_everything_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before the first row: a memory map would end the process instead."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with refused("store", "faces.npy", "space"):
        attempt(path)


@pytest.mark.parametrize("other", [PROJECTION, OTHER])
def test_a_second_run_at_the_same_time_is_refused_and_the_first_loses_nothing(path: Path, other: Projection) -> None:
    class Second(Silent):
        """Begins while the first is writing."""

        refused = False

        def advance(self, *_: object) -> None:
            with refused("output", "faces.npy", "another run"):
                sanitise_store(other, NpyStore(path), purge=True)
            self.refused = True

    second = Second()
    sanitise_store(PROJECTION, NpyStore(path), purge=True, progress=second)
    assert second.refused
    assert np.array_equal(np.load(path), ERASED)


def test_a_run_that_another_one_overtook_does_not_erase_erased_vectors(path: Path) -> None:
    slow = NpyStore(path)
    slow.inspect()
    sanitise(path)
    with refused("store", "faces.npy", "another"):
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


def test_a_link_to_the_staged_file_is_not_swapped_in(path: Path) -> None:
    store = NpyStore(path)
    store.stage(PROJECTION.apply, MARK, Silent())
    staged = next(path.parent.glob(".faces.npy.unface-*"))
    staged.replace(path.with_name("elsewhere"))
    staged.symlink_to(path.with_name("elsewhere"))
    before = contents(path.parent)
    with refused("output", ..., "link"):
        store.swap(MARK)
    assert contents(path.parent) == before
    assert not path.is_symlink()
    assert np.array_equal(np.load(path), RAW)


@pytest.mark.parametrize("after", [".part", ".rows"])
def test_nothing_is_written_through_a_link_that_somebody_left(path: Path, after: str) -> None:
    precious = path.with_name("precious")
    precious.write_bytes(b"precious")
    path.with_name(f".faces.npy.unface-{MARK[:8]}{after}").symlink_to(precious)
    sanitise(path)
    assert precious.read_bytes() == b"precious"
    assert np.array_equal(np.load(path), ERASED)


def test_nothing_is_written_through_a_link_that_appears_just_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious, clear = path.with_name("precious"), BesideFile._remove_staged
    precious.write_bytes(b"precious")

    def late(file: BesideFile, **given: Any) -> None:
        clear(file, **given)
        path.with_name(f".faces.npy.unface-{MARK[:8]}.part").symlink_to(precious)

    monkeypatch.setattr(BesideFile, "_remove_staged", late)
    with refused("store", "faces.npy", "beside"):
        sanitise(path)
    assert precious.read_bytes() == b"precious"
