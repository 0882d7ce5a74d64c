"""If these fail, a page is left half-written, overwrites what nobody asked to, or fails with a traceback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.command import unface
from tests.kit.documents import page, undrawn
from tests.kit.results import KINDS, raw_audit, result


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    """How charts look is not the question here."""
    with undrawn():
        yield


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return raw_audit().save(tmp_path / "audit")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "attribution"])
def test_the_page_of_every_kind_is_written_whole_beside_its_file_and_named(kind: str, tmp_path: Path) -> None:
    made = result(kind)  # type: ignore[arg-type]
    file: Path = made.save(tmp_path / "out")
    before = file.read_bytes()
    done = unface("report", file)
    (written,) = set(file.parent.iterdir()) - {file}
    assert (done.code, done.out) == (0, f"{written}\n")
    assert written.read_text(encoding="utf-8") == page(made)
    assert file.read_bytes() == before


def test_a_page_that_cannot_be_written_is_one_line_and_leaves_the_old_one(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved.with_name("report.html")
    old.write_text("old")

    def full_disk(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    done = unface("report", saved, "--force")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "report.html" in done.err
    assert sorted(one.name for one in saved.parent.iterdir()) == ["audit.json", "report.html"]
    assert old.read_text() == "old"


def test_the_command_writes_where_it_is_told_and_can_be_quiet(saved: Path, tmp_path: Path) -> None:
    assert unface("report", saved, "--out", tmp_path / "mine.html", "--quiet").out == ""
    assert (tmp_path / "mine.html").exists()
    assert not saved.with_name("report.html").exists()


def test_a_finished_page_is_kept_unless_forced(saved: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("old")
    done = unface("report", saved, "--out", mine)
    assert (done.code, mine.read_text()) == (1, "old")
    assert "--force" in done.err
    assert unface("report", saved, "--out", mine, "--force").code == 0
    assert mine.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_folder_stands_for_the_result_in_it(saved: Path) -> None:
    assert unface("report", saved.parent).out.strip() == str(saved.with_name("report.html"))
    assert unface("report", saved.parent).code == 1, "it exists already"


def test_the_result_itself_is_never_overwritten(saved: Path) -> None:
    before = saved.read_bytes()
    for source in (saved, saved.parent):
        assert unface("report", source, "--out", saved, "--force").code == 1
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    ("source", "out", "named"),
    [
        ("nothere.json", "page.html", "nothere.json: "),
        ("audit", ".", "--out"),
        ("audit", "nowhere/page.html", "page.html: "),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line_that_names_it(
    saved: Path, source: str, out: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parents[1])
    done = unface("report", source, "--out", out, "--force")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert named in done.err
