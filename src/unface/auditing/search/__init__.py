"""Search: one picture of a person as the query among all other pictures; how often is the first hit that person?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.result.audit import AuditResult
from unface.result.file import Frozen
from unface.result.numbers import Mean, Rate, Share
from unface.result.parts import Option, Part, Section
from unface.result.words import in_percent, interval, percent

if TYPE_CHECKING:
    from rich.table import Table

    from unface.auditing.bench import Bench


class HitRates(Frozen):
    """At one size of gallery: all other pictures of the person, and pictures of others drawn at random."""

    gallery: int = Field(description="pictures that each query is compared with")
    first: Mean = Field(description="queries whose first hit is the same person (rank-1 identification rate)")
    first_ten: Mean = Field(description="queries with the same person among the first ten hits")
    chance_first: float = Field(description="of pictures in random order")
    chance_first_ten: float


class OpenSearch(Frozen):
    """At a threshold that lets a query of a person who is not in the gallery return somebody in 1 of 100 cases."""

    fpir: float = Field(description="target false-positive identification rate (FPIR, ISO/IEC 19795)")
    people: int = Field(description="people in the gallery, as many of calibrate as of test")
    resolution: Literal["resolved", "coarse"]
    threshold: float
    found: Share = Field(description="queries that return a picture of their person (TPIR = 1 − FNIR)")
    achieved_fpir: Rate = Field(description="test queries that return somebody else, their own person left out")


class SpaceSearch(Frozen):
    """One attacker in one space."""

    space: str
    probe: str
    worst: bool = Field(description="the worst case of photo pairs; the other attacker compares vectors as they are")
    rates: list[HitRates]
    open_set: OpenSearch | None = Field(description="null where calibrate has too few pictures for the rate")


class SearchResults(Frozen):
    """All searches, by the attackers of the headline's k."""

    k: int
    people: int
    searches: list[SpaceSearch]

    def worst(self, space: str) -> SpaceSearch | None:
        """The worst case of a space."""
        return next((one for one in self.searches if one.space == space and one.worst), None)


class Search(Part):
    """Every test picture as a query among all others, in every space."""

    name = "search"
    schema = SearchResults

    def run(self, bench: Bench, ready: None) -> SearchResults | None:
        from unface.auditing.search.run import measure_search

        head = bench.headline
        return None if head is None or bench.attack.plan.hold_out else measure_search(bench, head)

    @classmethod
    def of(cls, result: AuditResult) -> SearchResults | None:
        """The searches of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, SearchResults) else None

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        found = cls.of(result)
        if found is None:
            return ["how often a search with one picture of a person finds that person"]
        if any(one.open_set for one in found.searches):
            return []
        return ["the share found by a search at FPIR 1e-2: it needs 300 pictures of calibrate people"]

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from rich.text import Text

        from unface.page.tables import space_table

        found = cls.of(result)
        raw = None if found is None else found.worst(result.raw.name)
        if found is None or raw is None:
            return
        full = raw.rates[-1]
        rows = []
        for space in result.spaces:
            if (one := found.worst(space.name)) is not None:
                last = one.rates[-1]
                cells = [f"{in_percent(m.value)} {interval(m.low, m.high)}" for m in (last.first, last.first_ten)]
                rows.append((space.name, [*cells, open_words(one.open_set)]))
        title = f"search with one picture among {full.gallery:,}: % of queries that find the person"
        table = space_table(title, ("first hit", "first ten", "at FPIR 1e-2"), rows, result.control_names)
        table.add_row(Text("chance"), percent(full.chance_first), percent(full.chance_first_ten), "1.0 %", style="dim")
        yield table

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.page.tables import Cell, bounded, table
        from unface.page.templates import render

        found = cls.of(result)
        if found is None:
            return ["search with one picture"]
        rows = [
            (
                Cell(one.space, f"{one.probe}{', worst case of pairs' if one.worst else ''}", strong=one.worst),
                f"{at.gallery:,}",
                Cell(bounded(at.first), f"chance {percent(at.chance_first)}"),
                Cell(bounded(at.first_ten), f"chance {percent(at.chance_first_ten)}"),
                open_words(one.open_set) if at is one.rates[-1] else "",
            )
            for one in found.searches
            for at in one.rates
        ]
        columns = ("space and attacker", "pictures in the gallery", "first hit", "first ten", "found at FPIR 1e-2, %")
        caption = "One test picture as the query: is the same person found?"
        body = render("unface.auditing.search:section.jinja", found=found, table=table(caption, columns, rows))
        return [Section("search", "Search with one picture", body, order=2)]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        return [Option("", value="unface.auditing.Search()")] if cls.of(result) else []


PART = Search


def open_words(found: OpenSearch | None) -> str:
    """The share found, in percent."""
    if found is None:
        return "too few pictures"
    coarse = "~" if found.resolution == "coarse" else ""
    return f"{coarse}{in_percent(found.found.value)} {interval(found.found.low, found.found.high)}"
