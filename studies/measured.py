"""What a study or benchmark found, as a small file of docs/measured that pages are filled in from.

Aggregate figures alone: no vector, no path, no name of a person or a machine.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from studies.record_format import spread
from studies.tables import heading, row
from unface import UnfaceError, __version__

HOME = Path(__file__).resolve().parents[1] / "docs" / "measured"
Value = str | float | int | None
Cell = Value | list[Value]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Table(_Part):
    """Columns, each with how its numbers are written, and rows."""

    columns: dict[str, str]
    rows: list[list[Cell]]


class Findings(_Part):
    """One study: what was run, when, where in words, with which version, and what came out."""

    record: Literal["unface.measured/1"] = "unface.measured/1"
    command: str
    measured: str
    where: str
    unface: str
    tables: dict[str, Table] = {}
    figures: dict[str, Cell] = {}


def read_findings(name: str, home: Path = HOME) -> Findings:
    """Of docs/measured/NAME.json."""
    try:
        return Findings.model_validate_json((home / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnfaceError(f"docs/measured/{name}.json: is not there; run the study that writes it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnfaceError(f"docs/measured/{name}.json: {where}: {first['msg'].lower()}") from None


def write_findings(
    name: str,
    *,
    command: str,
    where: str,
    tables: Mapping[str, Table] | None = None,
    figures: Mapping[str, Cell] | None = None,
    home: Path = HOME,
) -> Path:
    """Into the place of what was recorded before."""
    found = Findings(
        command=command,
        measured=today(),
        where=where,
        unface=__version__,
        tables=dict(tables or {}),
        figures=dict(figures or {}),
    )
    path = home / f"{name}.json"
    path.write_text(f"{spread(found.model_dump())}\n", encoding="utf-8")
    return path


def today() -> str:
    """The day, as records say it."""
    return datetime.now(UTC).date().isoformat()


def table(name: str, part: str) -> list[str]:
    """A recorded table in Markdown."""
    found = read_findings(name).tables.get(part)
    if found is None:
        raise UnfaceError(f"docs/measured/{name}.json: has no table {part!r}")
    return markdown(found)


def markdown(found: Table) -> list[str]:
    """Its lines."""
    formats = list(found.columns.values())
    rows = [[said(cell, how) for cell, how in zip(cells, formats, strict=True)] for cells in found.rows]
    return [*heading(list(found.columns)), *(row(cells) for cells in rows)]


def cell(name: str, part: str, line: str, column: str, how: str, place: str = "") -> str:
    """One number of a recorded table by line and column, and by place where several stand there; counted from 1."""
    found = read_findings(name).tables[part].rows[int(line) - 1][int(column) - 1]
    return said(found[int(place) - 1] if place and isinstance(found, list) else found, how)


def figure(name: str, key: str, how: str = "") -> str:
    """A recorded figure as a sentence says it."""
    figures = read_findings(name).figures
    if key not in figures:
        raise UnfaceError(f"docs/measured/{name}.json: has no figure {key!r}")
    return said(figures[key], how)


def said(value: Cell, how: str) -> str:
    """By Python's format, or with a slash behind it all in a row; two are a range, three a value and its interval."""
    if isinstance(value, list) and how.endswith("/"):
        return " / ".join(said(one, how[:-1]) for one in value)
    if isinstance(value, list) and len(value) == 2:
        return " to ".join(said(end, how) for end in value)
    if isinstance(value, list):
        return f"{said(value[0], how)} [{', '.join(said(end, how) for end in value[1:])}]"
    if value is None or isinstance(value, str):
        return value or ""
    return format(value, how).replace("-", "−").replace("%", " %")
