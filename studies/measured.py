"""What a study or benchmark found: a small file in docs/measured, and how pages write its numbers.

Aggregate figures alone: no vector, no path, no name of a person or a machine.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from unface import UnfaceError, __version__

HOME = Path(__file__).resolve().parents[1] / "docs" / "measured"
Value = str | float | int | None
Cell = Value | list[Value]


class Part(BaseModel):
    """A part of a record; unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Table(Part):
    """Columns, each with how its numbers are written, and rows."""

    columns: dict[str, str]
    rows: list[list[Cell]]


class Findings(Part):
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
        raise UnfaceError(f"docs/measured/{name}.json: {first_error(error)}") from None


def write_findings(
    name: str,
    *,
    command: str,
    where: str,
    tables: Mapping[str, Table] | None = None,
    figures: Mapping[str, Cell] | None = None,
    home: Path = HOME,
) -> None:
    """Replace what was recorded before."""
    findings = Findings(
        command=command,
        measured=datetime.now(UTC).date().isoformat(),
        where=where,
        unface=__version__,
        tables=dict(tables or {}),
        figures=dict(figures or {}),
    )
    (home / f"{name}.json").write_text(f"{json_lines(findings.model_dump())}\n", encoding="utf-8")


def table(name: str, part: str, *columns: str, lines: Sequence[int] = ()) -> list[str]:
    """A recorded table in Markdown: all of it, or these columns and lines, counted from 1."""
    tables = read_findings(name).tables
    if part not in tables:
        raise UnfaceError(f"docs/measured/{name}.json: has no table {part!r}")
    whole = tables[part]
    for column in columns:
        if column not in whole.columns:
            raise UnfaceError(f"docs/measured/{name}.json: table {part!r} has no column {column!r}")
    names = list(whole.columns)
    chosen = [names.index(column) for column in columns or names]
    rows = [whole.rows[line - 1] for line in lines] if lines else whole.rows
    shown = {names[at]: whole.columns[names[at]] for at in chosen}
    return markdown(Table(columns=shown, rows=[[cells[at] for at in chosen] for cells in rows]))


def cell(name: str, part: str, line: int | str, column: int, how: str, place: int = 0) -> str:
    """One cell of a recorded table, or the number at one place of it; all are counted from 1.

    A line may be named by its first cells, joined by spaces.
    """
    rows = read_findings(name).tables[part].rows
    if isinstance(line, str):
        named = [row for row in rows if line in accumulate(map(str, row), "{} {}".format)]
        if not named:
            raise UnfaceError(f"docs/measured/{name}.json: table {part!r} has no line {line!r}")
        value = named[0][column - 1]
    else:
        value = rows[line - 1][column - 1]
    return written(value[place - 1] if place and isinstance(value, list) else value, how)


def figure(name: str, key: str, how: str = "") -> str:
    """A recorded figure as a sentence shows it."""
    figures = read_findings(name).figures
    if key not in figures:
        raise UnfaceError(f"docs/measured/{name}.json: has no figure {key!r}")
    return written(figures[key], how)


def markdown(table: Table) -> list[str]:
    """The lines of a table."""
    formats = list(table.columns.values())
    rows = [[written(value, how) for value, how in zip(cells, formats, strict=True)] for cells in table.rows]
    return [*heading(list(table.columns)), *(row(cells) for cells in rows)]


def written(value: Cell, how: str) -> str:
    """By Python's format; two numbers are a range, three a value and its interval, and with "/" a plain list."""
    if isinstance(value, list) and how.endswith("/"):
        return " / ".join(written(one, how[:-1]) for one in value)
    if isinstance(value, list) and len(value) == 2:
        return " to ".join(written(end, how) for end in value)
    if isinstance(value, list):
        return f"{written(value[0], how)} [{', '.join(written(end, how) for end in value[1:])}]"
    if value is None or isinstance(value, str):
        return value or ""
    return format(value, how).replace("-", "−").replace("%", " %")


def heading(cells: list[str]) -> list[str]:
    """The first two lines of a Markdown table."""
    return [row(cells), row(["---"] * len(cells))]


def row(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def json_lines(value: object, margin: str = "") -> str:
    """JSON with one line for each entry of a dictionary and for each row of a table; rows are not indented."""
    inner = f"{margin} "
    if isinstance(value, dict) and value:
        lines = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {json_lines(one, inner)}" for key, one in value.items()
        ]
        return "\n".join(["{", ",\n".join(lines), f"{margin}}}"])
    if isinstance(value, list) and value and isinstance(value[0], list | tuple | dict):
        rows = (
            f"{inner}{json_lines(one, inner)}"
            if isinstance(one, dict)
            else json.dumps(one, ensure_ascii=False, separators=(",", ":"))
            for one in value
        )
        return "\n".join(["[", ",\n".join(rows), f"{margin}]"])
    return json.dumps(value, ensure_ascii=False)


def first_error(error: ValidationError) -> str:
    """Where in a file, and what."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].lower()}"
