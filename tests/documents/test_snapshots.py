"""If these fail, a changed document goes unnoticed, or snapshots stay that no test reads any more."""

from pathlib import Path

import pytest

import unface
from tests.kit import golden as kit
from tests.kit.golden import REWRITE, declare, golden, orphans, settled

NAME = "room/said.txt"


def test_every_snapshot_is_asked_for_by_a_test() -> None:
    unused = [file.relative_to(kit.SNAPSHOTS).as_posix() for file in orphans()]
    assert unused == [], f"no test asks for {unused}; {kit.COMMAND} deletes them"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of snapshots of its own, in which one is declared."""
    monkeypatch.setattr(kit, "SNAPSHOTS", tmp_path)
    monkeypatch.setattr(kit, "DECLARED", set())
    monkeypatch.delenv(REWRITE, raising=False)
    declare(NAME)
    (tmp_path / "room").mkdir()
    return tmp_path / NAME


def failure(text: str) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        golden(text, NAME)
    return str(caught.value)


def test_the_same_text_passes_and_another_shows_where_it_differs(file: Path) -> None:
    file.write_text("one\ntwo\nthree\nfour\nfive\n")
    golden("one\ntwo  \nthree\nfour\nfive", NAME)
    said = failure("one\ntwo\nTHREE\nfour\nfive")
    assert "room/said.txt" in said
    assert kit.COMMAND in said
    assert "-three\n+THREE" in said
    assert "one" not in said.split("@@")[-1]


def test_a_long_difference_is_cut(file: Path) -> None:
    file.write_text("old\n" * 500)
    said = failure("new\n" * 500)
    assert said.count("\n") == kit.SHOWN + 1
    assert "973 more lines" in said


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "damaged"])
def test_a_missing_or_damaged_snapshot_is_one_line_with_the_command(content: bytes | None, file: Path) -> None:
    if content is not None:
        file.write_bytes(content)
    said = failure("text")
    assert "\n" not in said
    assert "room/said.txt" in said
    assert kit.COMMAND in said


def test_rewriting_writes_the_text_where_no_folder_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REWRITE, "1")
    file.parent.rmdir()
    golden("new", NAME)
    assert file.read_text() == "new\n"


def test_a_name_that_no_file_declares_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REWRITE, "1")
    with pytest.raises(AssertionError, match="declare"):
        golden("text", "room/other.txt")
    assert not file.with_name("other.txt").exists()


def test_a_file_that_no_test_names_is_an_orphan(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "declaring_files", list)
    file.write_text("said\n")
    file.with_name("left.txt").write_text("left\n")
    assert orphans() == [file.with_name("left.txt")]


def test_what_differs_between_runs_is_replaced(tmp_path: Path) -> None:
    version = unface.__version__
    text = f"unface {version} wrote {tmp_path}/out/a.json at 2026-01-02T03:04:05+00:00; see 1.{version}"
    assert settled(text) == f"unface <version> wrote <tmp>/out/a.json at <time>; see 1.{version}\n"
