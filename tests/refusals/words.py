"""The words of all refusals, in one file that ``make snapshots`` writes: a reworded message changes no test."""

import os
import re
from pathlib import Path

import pytest

from tests.kit.golden import COMMAND, REWRITE

FILE = Path(__file__).with_name("words.txt")
BETWEEN = " | "
# Of numbers that differ in their last digits from one processor to the next.
_HASH = re.compile(r"(?<=\(weights ')[0-9a-f]+(?='\))")


def read() -> dict[str, str]:
    """The line of every row, by the row's name."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {name: words for name, _, words in (line.partition(BETWEEN) for line in lines)}


def write(lines: dict[str, str]) -> None:
    """Replace the file by these lines, in the order of their names."""
    text = "".join(f"{name}{BETWEEN}{lines[name]}\n" for name in sorted(lines))
    FILE.write_text(text, encoding="utf-8", newline="\n")


def say(name: str, line: str) -> None:
    """Fail unless a row is refused in the words of the file; while ``make snapshots`` runs, write them there."""
    known, line = read(), _HASH.sub("HASH", line)
    if os.environ.get(REWRITE):
        if known.get(name) != line:
            write(known | {name: line})
    elif known.get(name) != line:
        pytest.fail(f"{name}: now {line!r}, in {FILE.name} {known.get(name)!r}; {COMMAND} writes it", pytrace=False)
