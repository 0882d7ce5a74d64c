"""A history file: one JSON line for each result, with its numbers, so that a trend can be drawn and kept in Git."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from unface.errors import UnfaceError, reason
from unface.output.write import write_file
from unface.result.file import Frozen, parsed_json
from unface.result.readings import Readable

HISTORY_SCHEMA: Literal["unface.history/1"] = "unface.history/1"


class PastReading(Frozen):
    """A number of a result; see ``Reading``."""

    what: str
    where: str
    at: str
    headline: bool
    value: float
    low: float
    high: float
    level: float


class PastResult(Frozen):
    """One line. No name of a person, no vector, no path."""

    schema_: Literal["unface.history/1"] = Field(default=HISTORY_SCHEMA, alias="schema")
    kind: str
    sha256: str
    subject: str
    started: str
    unface: str
    valid: bool
    verdict: str | None
    """Of the gate, if one judged it: passed, failed, inconclusive."""
    readings: list[PastReading]


def past_result(result: Readable, verdict: str | None = None) -> PastResult:
    """What a history keeps of a result."""
    readings = [
        PastReading(
            what=one.what,
            where=one.where,
            at=one.at,
            headline=one.headline,
            value=one.found.value,
            low=one.found.low,
            high=one.found.high,
            level=one.found.level,
        )
        for one in result.readings()
        if one.found is not None
    ]
    return PastResult(
        kind=result.schema_,
        sha256=hashlib.sha256(result.file_text().encode()).hexdigest(),
        subject=result.subject,
        started=result.run.started,
        unface=result.run.unface,
        valid=result.valid,
        verdict=verdict,
        readings=readings,
    )


def read_history(path: Path) -> list[PastResult]:
    """Every line, in the order of the file; a file that is not there has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({reason(error)})") from None
    except ValueError:
        raise UnfaceError(f"{path}: is not UTF-8 text; --history takes a file of JSON lines") from None
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(PastResult.model_validate(parsed_json(line)))
        except (ValueError, RecursionError, ValidationError):
            raise UnfaceError(
                f"{path}: line {number} is not a line of {HISTORY_SCHEMA}; remove it or choose another --history"
            ) from None
    return lines


def add_to_history(path: Path, result: Readable, verdict: str | None = None) -> list[PastResult]:
    """Add a result, or the verdict on one that is there already; returns every line.

    The file is replaced by a rename while its folder is locked: of two commands at once, both lines stay.
    """
    from filelock import lock_descriptor  # here, because reading a result needs no lock

    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be written ({reason(error)}); choose another --history") from None
    try:
        lock_descriptor(folder)
        lines, new = read_history(path), past_result(result, verdict)
        at = next((index for index, line in enumerate(lines) if line.sha256 == new.sha256), None)
        if at is None:
            lines.append(new)
        elif verdict is None or lines[at].verdict == verdict:
            return lines
        else:
            lines[at] = new
        write_file(path, _text(lines).encode(), option="--history")
    finally:
        os.close(folder)
    return lines


def _text(lines: Sequence[PastResult]) -> str:
    return "".join(f"{line.model_dump_json(by_alias=True)}\n" for line in lines)
