"""What benchmarks/coverage.py wrote, as pages show it."""

import re
from collections.abc import Iterator
from pathlib import Path

from unface import UnfaceError

HERE = Path(__file__).resolve().parent
WAYS = {"default": "(default)", "seeds": "over seeds", "pairs": "Wilson on pairs"}


def coverage() -> Iterator[str]:
    """The whole output, as a block of text."""
    yield "```text"
    yield from (HERE / "coverage.txt").read_text(encoding="utf-8").splitlines()
    yield "```"


def covered(file: str, way: str, of: str, how: str) -> str:
    """The least and the most that one kind of interval covers, of "TAR" (whole and half) or of "difference"."""
    lines = [line for line in (HERE / f"{file}.txt").read_text(encoding="utf-8").splitlines() if WAYS[way] in line]
    found = [float(number) for line in lines for number in re.findall(rf"{of}(?:, half)? +([\d.]+)", line)]
    if not found:
        raise UnfaceError(f"benchmarks/{file}.txt: says nothing of {of} by {way}; run benchmarks/coverage.py again")
    return " to ".join(format(end, how) for end in (min(found), max(found)))
