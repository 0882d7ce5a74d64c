"""What two results of one kind are compared by, and what a history keeps of each: named numbers with intervals.

A result file takes part in ``unface diff``, ``--history`` and the trend chart by the three members of ``Readable`` and
its line in ``KINDS``.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from unface.errors import UnfaceError
from unface.result.file import KINDS, Chart, Finding, ResultFile, Run, read_json
from unface.result.numbers import Estimate
from unface.result.words import count

if TYPE_CHECKING:
    import pandas

EXPOSED_FILE = "exposed.csv"
"""Beside audit.json, for its owner alone: how often each test person is linked, by name."""

AS_GIVEN = "vectors"
"""The audited vectors as they came: the raw ones in one audit, erased ones in the next."""


@dataclass(frozen=True)
class Reading:
    """One number of a result. ``what``, ``where`` and ``at`` together find it in another result of the same kind."""

    what: str
    """TAR (of the worst attacker), recovered (by the worst attack), knn."""
    where: str
    """The space, or what else results have several of; may be empty. Of an audit's first space always ``AS_GIVEN``."""
    at: str
    """k = 4, FAR 1e-4."""
    found: Estimate | None
    """None where it was asked for and could not be measured."""
    better: Literal["lower", "higher"] = "lower"
    headline: bool = False
    """Whether the result is quoted by it."""
    listed: str = ""
    """The space in ``EXPOSED_FILE`` that counts the same pairs person by person, if there is one."""
    is_share: bool = True
    """Whether it is said in percent; a PSNR or an AUC is not."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Names that are the same in every result."""
        return self.what, self.where, self.at

    @property
    def name(self) -> str:
        """In one line: vectors: TAR, k = 4, FAR 1e-4."""
        return f"{self.where}: {self.what}, {self.at}" if self.where else f"{self.what}, {self.at}"


class Readable(Protocol):
    """A result whose numbers can be compared with those of another of its kind."""

    @property
    def schema_(self) -> str: ...

    @property
    def valid(self) -> bool: ...

    @property
    def run(self) -> Run: ...

    @property
    def subject(self) -> str:
        """What was measured, by name: the source, the target."""
        ...

    def readings(self) -> list[Reading]:
        """Its numbers, in the order in which a reader meets them."""
        ...

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable, in words."""
        ...

    def file_text(self) -> str: ...


class Told(Readable, Protocol):
    """A result that says in words what it found."""

    @property
    def verdict(self) -> str: ...

    @property
    def findings(self) -> list[Finding]: ...


class ToldFile(ResultFile):
    """A result file as a notebook shows it: one line, a card, a table and a chart of its readings."""

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each reading: what, where, at, value, low, high."""
        import pandas

        columns = ("what", "where", "at", "value", "low", "high", "better")
        rows = [
            (one.what, one.where, one.at, one.found.value, one.found.low, one.found.high, one.better)
            for one in cast(Told, self).readings()
            if one.found is not None
        ]
        return pandas.DataFrame(rows, columns=list(columns))

    def plot(self) -> Chart:
        """An Altair chart of its shares, with their intervals."""
        # By name, since pages stand above result files.
        return cast(Chart, import_module("unface.report.notebook").readings_chart(self))

    def _repr_html_(self) -> str:
        return cast(str, import_module("unface.report.notebook").readings_html(self))

    def __repr__(self) -> str:
        told = cast(Told, self)
        state = "" if told.valid else "INVALID, "
        return f"<{type(self).__name__} {state}{told.subject}: {told.verdict} {count(len(told.findings), 'finding')}>"

    __str__ = __repr__


def read_result(path: Path) -> tuple[Readable, Path]:
    """Any result file, or the one in a folder that a command wrote; and the path of the file."""
    file = path
    if path.is_dir():
        there = [path / kind.file for kind in KINDS.values() if (path / kind.file).is_file()]
        if len(there) != 1:
            names = ", ".join(one.name for one in there) or "no result file"
            raise UnfaceError(f"{path}: holds {names}; give one file: {', '.join(one.file for one in KINDS.values())}")
        file = there[0]
    content = read_json(file, "a command of unface")
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, str):
        raise UnfaceError(f"{file}: has no 'schema' key; give a file that a command of unface wrote")
    same = {name.rpartition("/")[0]: kind for name, kind in KINDS.items()}
    kind = KINDS.get(schema) or same.get(schema.rpartition("/")[0])
    if kind is None:
        raise UnfaceError(f"{file}: has schema {schema!r}; this version compares {', '.join(KINDS)}")
    return cast(Readable, kind.load(file)), file


Counts = Mapping[str, tuple[int, int]]
"""By person: accepted, and pairs."""


def counts_beside(file: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """By space, of the people in the listing that lies beside a result file; empty where there is none to read."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    try:
        with (file.parent / EXPOSED_FILE).open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows):
                counts = int(row["accepted"]), int(row["mated_pairs"])
                found.setdefault(row["space"], {})[row["identity"]] = counts
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}
    return found
