"""If these fail, a finished output is overwritten, or a long run ends where nothing can be written."""

import os
from pathlib import Path

import pytest

from unface import UnfaceError
from unface.output.taken import require_distinct, require_folder, require_new_file, require_new_files, require_no_result


def refused(path: Path, *, force: bool = False, make_folder: bool = False) -> str:
    with pytest.raises(UnfaceError) as caught:
        require_new_file(path, force=force, make_folder=make_folder)
    return str(caught.value)


def test_a_file_that_exists_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    require_new_file(path, force=False)
    path.write_text("mine")
    assert refused(path) == f"{path}: exists already; choose another --out or pass --force"
    require_new_file(path, force=True)
    with pytest.raises(UnfaceError, match="choose another --receipt"):
        require_new_file(path, force=False, option="--receipt")


def test_a_folder_in_the_files_place_is_refused_even_if_forced(tmp_path: Path) -> None:
    assert refused(tmp_path, force=True) == f"{tmp_path}: is a folder; --out takes a file"


def test_a_missing_folder_is_refused_unless_the_writer_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    assert refused(path) == f"{path}: there is no folder {tmp_path / 'new'}; make it first"
    require_new_file(path, force=False, make_folder=True)
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "a"
    told = f"{below}: cannot be written, {tmp_path / 'file'} is a file; choose another --out"
    assert refused(below, make_folder=True) == told


def test_a_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    path = tmp_path / "a"
    assert refused(path) == f"{path}: cannot be written, {tmp_path} does not allow it; choose another --out"
    with pytest.raises(UnfaceError, match="does not allow it; choose another --out"):
        require_folder(tmp_path / "new" / "folder")


def test_files_in_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    require_new_files(tmp_path, ("a", "b"), force=False)
    (tmp_path / "b").write_text("mine")
    with pytest.raises(UnfaceError) as caught:
        require_new_files(tmp_path, ("a", "b"), force=False)
    assert str(caught.value) == f"{tmp_path / 'b'}: exists already; choose another --out or pass --force"
    require_new_files(tmp_path, ("a", "b"), force=True)
    with pytest.raises(UnfaceError, match="is a file; --out takes a folder"):
        require_new_files(tmp_path / "b", (), force=True)


def test_one_file_is_neither_written_twice_nor_over_what_is_read(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    link.symlink_to(one)
    require_distinct((one, None), (other, None))
    for written, read in (((one, one), ()), ((one,), (one,)), ((link,), (one,))):
        with pytest.raises(UnfaceError, match="is named twice; what is written must be a file of its own"):
            require_distinct(written, read)


def test_a_page_beside_an_unfinished_result_was_left_by_a_killed_run(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("drawn")
    with pytest.raises(UnfaceError, match=r"page\.html: exists already"):
        require_no_result(tmp_path, "result.json", "page.html", force=False)
    (tmp_path / ".result.json.0123abcd.tmp").write_text("{")
    require_no_result(tmp_path, "result.json", "page.html", force=False)
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(UnfaceError, match=r"result\.json: exists already"):
        require_no_result(tmp_path, "result.json", "page.html", force=False)


def test_a_link_that_leads_nowhere_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnfaceError) as caught:
        require_folder(tmp_path / "link")
    assert str(caught.value) == f"{tmp_path / 'link'}: is a link that leads nowhere; choose another --out"
