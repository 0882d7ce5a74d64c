"""Who is exposed: how TAR is spread over people and groups, and D_sys beside it. Names stay in a private CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from unface.result.audit import AuditResult
from unface.result.file import Finding, Frozen, warning
from unface.result.numbers import Estimate, Share
from unface.result.parts import Option, Part, Section
from unface.result.readings import EXPOSED_FILE
from unface.result.words import in_percent, interval, signed_points

if TYPE_CHECKING:
    from rich.table import Table

    from unface.auditing.bench import Bench

FEWEST = 20
"""Test people of a group that has a TAR; with fewer, equal groups differ by chance more often than intervals say."""


class GroupTar(Frozen):
    """TAR of one group of people at the threshold that is common to all."""

    group: int = Field(description="number of the group; exposed.csv has its name")
    people: int
    tar: Share


class GroupGap(Frozen):
    """The largest difference of two groups; the interval allows for having chosen the largest."""

    higher: int
    lower: int
    value: float
    low: float
    high: float
    level: float


class Exposure(Frozen):
    """One space, by the worst case of photo pairs at the headline's k and rate."""

    space: str
    probe: str
    half_linked: Share = Field(description="people who are linked in at least half of their mated pairs")
    worst_tenth: Estimate = Field(description="TAR of the tenth of people who are linked most")
    dsys: Estimate = Field(
        description="D_sys of ISO/IEC 24745, from all mated and impostor scores: 0 unlinkable, 1 linkable"
    )
    dsys_bias: float = Field(
        description="what D_sys would be on average with as many independent scores and no identity"
    )
    groups: list[GroupTar] = []
    gap: GroupGap | None = None


class ExposureResults(Frozen):
    """All spaces."""

    k: int
    far: float
    column: str | None = Field(description="column of groups, if one was given that names groups of people")
    few: int = Field(default=0, description="groups of fewer than 20 test people, which are left out")
    spaces: list[Exposure]


class Exposures(Part):
    """Spread over people always; over groups where ``Protocol.group`` names groups of people."""

    name = "exposure"
    schema = ExposureResults
    listings = (EXPOSED_FILE,)

    def run(self, bench: Bench, ready: None) -> ExposureResults | None:
        from unface.auditing.exposure.run import measure_exposure

        head = bench.headline
        return None if head is None or bench.attack.plan.hold_out else measure_exposure(bench, head)

    @classmethod
    def of(cls, result: AuditResult) -> ExposureResults | None:
        """The exposures of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, ExposureResults) else None

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        found = cls.of(result)
        gap = found.spaces[0].gap if found else None
        if found is None or gap is None or gap.low <= 0:
            return []
        text = f"'{found.column}': group {gap.higher} is linked {signed_points(gap.value)} "
        text += f"[{signed_points(gap.low)}, {signed_points(gap.high)}] points of TAR more often than group {gap.lower}"
        return [warning("groups", f"{text}; {EXPOSED_FILE} names them")]

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        found = cls.of(result)
        if found is None:
            return ["who is exposed: how TAR is spread over people"]
        if found.column is None:
            return [
                "whether groups of people are exposed unequally: name a --group column that is the same for all "
                "pictures of a person"
            ]
        if found.few:
            return [f"TAR of groups with fewer than {FEWEST} test people in '{found.column}' ({found.few} of them)"]
        return []

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from unface.page.tables import space_table

        found = cls.of(result)
        if found is None:
            return
        rows = []
        for one in found.spaces:
            parts = (one.half_linked, one.worst_tenth)
            cells = [f"{in_percent(part.value)} {interval(part.low, part.high)}" for part in parts]
            rows.append((one.space, [*cells, dsys_words(one)]))
        title = "who is exposed: people linked in half of their pairs, most linked tenth, D_sys"
        yield space_table(title, ("people, %", "TAR % of the tenth", "D_sys"), rows)

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.page.tables import Cell, bounded, table
        from unface.page.templates import render

        found = cls.of(result)
        if found is None:
            return ["who is exposed"]
        rows = [
            (
                Cell(one.space, one.probe),
                Cell(bounded(one.half_linked), f"{one.half_linked.numerator} of {one.half_linked.denominator} people"),
                bounded(one.worst_tenth),
                Cell(dsys_words(one), f"{one.dsys_bias:.3f} of it may be noise"),
            )
            for one in found.spaces
        ]
        columns = ("space", "linked in half of their pairs or more", "TAR of the most linked tenth", "D_sys")
        tables = [table("TAR over people, and D_sys", columns, rows)]
        groups = [
            (Cell(one.space, f"group {each.group}"), f"{each.people}", bounded(each.tar))
            for one in found.spaces
            for each in one.groups
        ]
        gaps = [
            (
                Cell(one.space, f"group {one.gap.higher} less group {one.gap.lower}"),
                "",
                f"{signed_points(one.gap.value)} [{signed_points(one.gap.low)}, {signed_points(one.gap.high)}] points",
            )
            for one in found.spaces
            if one.gap
        ]
        if groups:
            tables.append(table("TAR by group at one common threshold", ("space", "people", "TAR"), [*groups, *gaps]))
        body = render("unface.auditing.exposure:section.jinja", found=found, tables=tables)
        return [Section("exposure", "Who is exposed", body, order=2)]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        return [Option("", value="unface.auditing.Exposures()")] if cls.of(result) else []


PART = Exposures


def dsys_words(one: Exposure) -> str:
    """0.41 [0.38, 0.44]."""
    return f"{one.dsys.value:.2f} [{one.dsys.low:.2f}, {one.dsys.high:.2f}]"
