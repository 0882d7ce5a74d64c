"""Usefulness: what the task that the vectors are for loses, before and after on the same queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unface.result.audit import AuditResult
from unface.result.file import Finding, Frozen, Given, warning
from unface.result.numbers import Kept
from unface.result.parts import Option, Part, Section
from unface.result.readings import Reading
from unface.result.words import count, percent

if TYPE_CHECKING:
    from rich.table import Table

    from unface.auditing.bench import Bench
    from unface.data import EmbeddingSet


class UtilitySets(Frozen):
    """What usefulness was measured on; the numbers stand with each space."""

    sources: list[Given] = []
    spared: Given | None = None
    """Vectors that an eraser was to spare."""
    spared_again: dict[str, int] = {}
    """By source: how many of its vectors were also given to be spared."""


class Utility(Part):
    """``sets``: classes as identities, or copies by a column ``copy_of``.

    Beside them always the overlap of nearest neighbours of other people among the audited vectors, which is not a
    usefulness, and how many neighbours are of the same person.
    """

    name = "utility"
    schema = UtilitySets

    def __init__(self, sets: Sequence[EmbeddingSet] = (), spared: EmbeddingSet | None = None) -> None:
        self.sets, self.spared = tuple(sets), spared

    def run(self, bench: Bench, ready: None) -> UtilitySets | None:
        """Which sets there were; each space holds its numbers already."""
        from unface.auditing.bench import describe_given
        from unface.auditing.strangers import rows_again

        if not self.sets and self.spared is None:
            return None
        return UtilitySets(
            sources=[describe_given(one) for one in self.sets],
            spared=None if self.spared is None else describe_given(self.spared),
            spared_again={} if self.spared is None else rows_again(self.spared, self.sets),
        )

    @classmethod
    def of(cls, result: AuditResult) -> UtilitySets:
        """The section of an audit; without any set where it has none."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, UtilitySets) else UtilitySets()

    @classmethod
    def readings(cls, result: AuditResult) -> list[Reading]:
        return [
            Reading(kept.measure, space.name, kept.on, kept.erased, better="higher")
            for space in result.erased
            for kept in space.utility
            if kept.is_usefulness
        ]

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        return [
            warning(
                "utility",
                f"{count(shared, 'vector')} of {name} were also given as --spare, so erasers that preserve a "
                "task look better than they are: measure on other pictures, best of other classes",
            )
            for name, shared in cls.of(result).spared_again.items()
        ]

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        if len(result.spaces) == 1 or cls.of(result).sources:
            return []
        return ["what erasure costs the task the vectors are for: give its labelled vectors as --utility"]

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from rich.text import Text

        from unface.page.tables import terminal_table

        found = [kept for space in result.spaces for kept in space.utility]
        same = next((kept for kept in found if kept.is_same_person), None)
        measures = list(dict.fromkeys((kept.measure, kept.on) for kept in found if not kept.is_same_person))
        if not measures:
            return
        of_raw = "" if same is None else f"; {percent(same.raw.value)} of raw nearest neighbours show the same person"
        table = terminal_table(f"share kept, %{of_raw}")
        table.add_column("space")
        for measure, on in measures:
            table.add_column(f"{measure}, {on}")
        for space in result.spaces[1:]:
            kept = {(one.measure, one.on): one.retained for one in space.utility}
            shares = [kept.get(which) for which in measures]
            cells = [f"{100 * s.value:.0f} [{100 * s.low:.0f}, {100 * s.high:.0f}]" if s else "–" for s in shares]
            name = f"{space.name} (control)" if space.is_control else space.name
            table.add_row(Text(name), *map(Text, cells), style="dim" if space.is_control else "")
        yield table

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.page.tables import Cell, bounded, table
        from unface.page.templates import render

        def row(name: str, kept: Kept) -> tuple[Cell | str, ...]:
            on = Cell(kept.on, count(kept.queries, "query", "queries"))
            kept_cell = Cell(bounded(kept.retained), strong=True)
            return Cell(name, kept.measure), on, bounded(kept.raw), bounded(kept.erased), kept_cell

        columns = ("space", "measured on", "raw", "erased", "kept")
        measured = [(space.name, kept) for space in result.spaces for kept in space.utility]
        useful = [row(name, kept) for name, kept in measured if kept.is_usefulness]
        nearest = [row(name, kept) for name, kept in measured if not kept.is_usefulness]
        tables = []
        if useful:
            caption = (
                "Usefulness before and after; the interval of what is kept is paired, and holds for these classes alone"
            )
            tables.append(table(caption, columns, useful))
        if nearest:
            tables.append(table("Nearest neighbours among the audited pictures; no usefulness", columns, nearest))
        found: list[Section | str] = [] if useful else ["usefulness kept"]
        if tables:
            sources = tuple(("Usefulness on", one) for one in cls.of(result).sources)
            title = "Usefulness" if useful else "Nearest neighbours"
            body = render("tables.jinja", tables=tables)
            found.append(Section("utility", title, body, order=1, sources=sources))
        return found

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        section = cls.of(result)
        options = []
        if section.sources:
            names = [one.name for one in section.sources]
            options.append(Option("--utility", tuple(names), keyword="utility", value=repr(names)))
        if section.spared is not None:
            name = section.spared.name
            options.append(Option("--spare", (name,), keyword="spare", value=repr(name)))
        return options


PART = Utility
