"""If these fail, a finished output is overwritten, or a long run ends where nothing can be written."""

import os
from pathlib import Path

import pytest

from tests.refusals.table import refused
from unface.output.taken import require_distinct, require_folder, require_new_file, require_new_files, require_no_result


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
