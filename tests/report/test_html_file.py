"""If these fail, a page is left half-written, overwrites what nobody asked to, or fails with a traceback."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.report.made import raw_audit
from unface.cli.report import report
from unface.errors import UnfaceError
from unface.report import html
from unface.report.html import write_report

app = typer.Typer()
app.command()(report)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on the page is not the question here."""
    monkeypatch.setattr(html, "render_report", lambda result, history, decision: f"<p>{result.verdict} × µ</p>")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return raw_audit().save(tmp_path / "audit")


def run(*arguments: object) -> str:
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False).output


def test_the_page_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = write_report(raw_audit(), tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == f"<p>{raw_audit().verdict} × µ</p>"
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_a_page_that_cannot_be_written_is_one_sentence_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "page.html"
    old.write_text("old")

    def full_disk(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(UnfaceError, match=r"page\.html: cannot be written \(No space left on device\)"):
        write_report(raw_audit(), old)
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    assert old.read_text() == "old"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError, match=r"nowhere.page\.html: cannot be written \(No such file or directory\)"):
        write_report(raw_audit(), tmp_path / "nowhere" / "page.html")


def test_the_command_puts_the_page_beside_the_audit_and_says_where(saved: Path) -> None:
    assert run(saved).strip() == str(saved.parent / "report.html")
    assert (saved.parent / "report.html").exists()


def test_the_command_writes_where_it_is_told_and_can_be_quiet(saved: Path, tmp_path: Path) -> None:
    assert run(saved, "--out", tmp_path / "mine.html", "--quiet") == ""
    assert (tmp_path / "mine.html").exists()
    assert not (saved.parent / "report.html").exists()


def test_a_finished_page_is_kept_unless_forced(saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_text("old")
    with pytest.raises(UnfaceError, match=r"mine\.html: exists already; choose another --out or pass --force"):
        run(saved, "--out", page)
    assert page.read_text() == "old"
    run(saved, "--out", page, "--force")
    assert page.read_text(encoding="utf-8").startswith("<p>")


def test_the_audit_itself_is_never_overwritten(saved: Path) -> None:
    before = saved.read_bytes()
    for audit in (saved, saved.parent):
        with pytest.raises(UnfaceError, match="is named twice; what is written must be a file of its own"):
            run(audit, "--out", saved, "--force")
    assert saved.read_bytes() == before


def test_a_folder_stands_for_the_audit_in_it(saved: Path) -> None:
    assert run(saved.parent).strip() == str(saved.parent / "report.html")
    with pytest.raises(UnfaceError, match="exists already"):
        run(saved.parent)


def test_an_audit_that_is_not_there_is_named_though_its_page_is(saved: Path) -> None:
    saved.with_name("report.html").write_text("old")
    with pytest.raises(UnfaceError, match=r"nothere\.json: "):
        run(saved.with_name("nothere.json"), "--force")


def test_a_folder_as_out_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UnfaceError, match="is a folder; --out takes a file"):
        run(saved, "--out", tmp_path)


def test_no_audit_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError, match=r"none\.json: cannot be read"):
        run(tmp_path / "none.json")
