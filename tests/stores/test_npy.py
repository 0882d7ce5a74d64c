"""If these fail, a .npy file comes back in another form, as somebody else's, or with raw vectors beside it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stores.contract import erased
from tests.stores.npy_file import ERASED, MARK, OTHER, PROJECTION, RAW, contents, refused, sanitise
from unface import UnfaceError
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.npy import NpyStore


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


def test_somebody_elses_file_of_the_name_for_the_raw_one_is_not_written_over(path: Path) -> None:
    path.with_name("faces.npy.raw").write_bytes(b"theirs")
    assert refused(path) == "faces.npy: faces.npy.raw is in the way; move it elsewhere"


def test_raw_vectors_that_are_all_there_is_are_not_purged(path: Path) -> None:
    with pytest.raises(UnfaceError, match="not sanitised yet"):
        NpyStore(path).purge()
    assert np.array_equal(np.load(path), RAW)


def test_a_later_purge_counts_what_has_nothing_left(path: Path) -> None:
    np.save(path, np.vstack([RAW, PROJECTION.directions[:, :2].T.astype(np.float32)]))
    first = sanitise_store(PROJECTION, NpyStore(path))
    later = sanitise_store(PROJECTION, NpyStore(path), purge=True)
    assert (first.degenerate, later.degenerate) == (2, 2)
    assert later.verified == first.verified


def test_more_than_one_array_in_a_file_is_refused_since_the_rest_would_be_lost(path: Path) -> None:
    with path.open("ab") as file:
        np.save(file, RAW[:2])
    assert refused(path) == "faces.npy: 384 bytes after its array would be lost; save one array in a file"


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
    advice = "see to that and give the same command again"
    assert refused(path) == f"faces.npy: cannot be {done} (Permission denied); {advice}"


def test_what_is_no_file_of_vectors_is_refused(path: Path) -> None:
    np.save(path, RAW[0])
    told = "faces.npy: float32 of shape (32,); expected float16, float32 or float64 of shape (n, d)"
    assert refused(path) == told
    np.save(path, RAW.astype(np.int8))
    assert "int8 of shape (300, 32)" in refused(path)
    np.save(path, np.array([{"a": 1}]), allow_pickle=True)
    assert refused(path).endswith(": not a .npy array of numbers; give one that numpy.save wrote")
    path.write_bytes(b"")
    assert "not a .npy array of numbers" in refused(path)
    np.savez(path.with_suffix(".npz"), vectors=RAW)
    assert "a .npz archive" in refused(path.with_suffix(".npz"))
    path.with_name("faces.npy.unface.json").write_text("{}")
    np.save(path, RAW)
    assert refused(path).startswith("faces.npy.unface.json: not as unface wrote it")
    path.unlink()
    assert refused(path) == "faces.npy: no such file or directory"
