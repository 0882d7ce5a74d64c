"""Compares a text with a file that ``make snapshots`` wrote, so that a reworded sentence changes one file and no test.

A test file names its snapshots when it is imported; ``golden`` refuses a name that was not declared. So the names are
known without running a test, and a snapshot that nobody asks for any more is found whichever tests run, and where.

    @pytest.mark.parametrize("name", declare("gate/failed.txt", "gate/passed.txt"))
    def test_a_gate_is_printed(name: str) -> None:
        golden(printed(GATES[name]), name)
"""

import difflib
import os
import re
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import unface

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = ROOT / "tests" / "documents" / "snapshots"
COMMAND = "make snapshots"
REWRITE = "UNFACE_REWRITE_SNAPSHOTS"
SHOWN = 30  # lines of a difference

DECLARED: set[str] = set()
PLACEHOLDERS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?( UTC)?"), "<time>"),
    (re.compile(rf"(?<![\w.]){re.escape(unface.__version__)}(?![\w.])"), "<version>"),
    (
        re.compile(rf"{re.escape(tempfile.gettempdir())}/pytest-of-[^/\s]+/pytest-\d+/(popen-gw\d+/)?[^/\s'\"]+"),
        "<tmp>",
    ),
    # Of the file that a page was drawn from: a new field in it is no change of the page.
    (re.compile(r"(?<=as unface writes it sha256 )[0-9a-f]{64}|(?<=\.json sha256 )[0-9a-f]{64}"), "<sha256>"),
)


def declare(*names: str) -> tuple[str, ...]:
    """Name the snapshots that a test file asks for, at its top level; returns the names."""
    DECLARED.update(names)
    return names


def golden(text: str, name: str) -> None:
    """Fail unless the text is that of the snapshot; while ``make snapshots`` runs, write the snapshot instead."""
    assert name in DECLARED, f"{name} is no declared snapshot; name it in declare(…) at the top level of the test file"
    file, text = SNAPSHOTS / name, settled(text)
    if os.environ.get(REWRITE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        return
    expected = _kept(file)
    if text != expected:
        pytest.fail(_difference(expected, text, file), pytrace=False)


def _kept(file: Path) -> str:
    """What a snapshot holds; a missing or damaged one is one line."""
    why = "is missing"
    with suppress(FileNotFoundError):
        try:
            return file.read_bytes().decode()
        except UnicodeDecodeError:
            why = "is damaged: it is no text"
    pytest.fail(f"{shown(file)} {why}; {COMMAND} writes it", pytrace=False)


def settled(text: str) -> str:
    """The text without what differs from one run to the next, and without blanks at the ends of its lines."""
    for pattern, placeholder in PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")).rstrip("\n") + "\n"


def orphans() -> list[Path]:
    """Snapshots that no test file names. Every test file that imports this module is imported to find out."""
    for file in declaring_files():
        import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    files = [file for file in sorted(SNAPSHOTS.rglob("*")) if file.is_file()]
    return [file for file in files if file.relative_to(SNAPSHOTS).as_posix() not in DECLARED]


def declaring_files() -> list[Path]:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file for file in files if "from tests.kit.golden import" in file.read_text(encoding="utf-8")]


def _difference(expected: str, text: str, file: Path) -> str:
    lines = [*difflib.unified_diff(expected.splitlines(), text.splitlines(), "snapshot", "now", "", "", 1, "")]
    more = [f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    return "\n".join([f"{shown(file)} differs; if the new text is meant, {COMMAND} writes it", *lines[:SHOWN], *more])


def shown(file: Path) -> str:
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)
