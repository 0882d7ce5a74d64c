"""What privacy costs: worst-case TAR over rank and against usefulness kept, with the numbers of one rank at a time."""

from dataclasses import dataclass

import altair as alt

from unface.auditing.sweeps import Sweep, SweepPoint
from unface.page.charts import Figure, Look, Rows, colour, dash, data, draw, looks, shape
from unface.page.tables import NOT_MEASURED, Cell, Table, bounded, multiple, pairs, table
from unface.page.templates import render
from unface.result.audit import AuditResult
from unface.result.numbers import Kept
from unface.result.parts import Section
from unface.result.words import count, percent, rate


@dataclass(frozen=True)
class Frontier:
    """A sweep over ranks: charts, and for each rank a row of words for each method, which the slider chooses from."""

    about: str
    lighter: bool
    """Fewer draws or probes than the audit's own numbers."""
    figures: list[Figure]
    ranks: list[int]
    chosen: int
    methods: list[str]
    columns: list[str]
    cells: list[list[list[str]]]
    said: list[str]
    table: Table


def sections(result: AuditResult, sweeps: list[Sweep]) -> list[Section | str]:
    """A slider over ranks with its charts, then what more fit identities buy."""
    styles = looks(result, {point.method: point.control for sweep in sweeps for point in sweep.points})
    swept = [sweep for sweep in sweeps if sweep.over == "rank" and any(point.rank for point in sweep.points)]
    frontiers = [frontier(result, sweep, styles) for sweep in swept]
    identities = [_over_identities(one, styles) for one in sweeps if one.over == "identities" and one.points]
    found: list[Section | str] = []
    if frontiers or identities:
        body = render("unface.auditing.sweeps:section.jinja", frontiers=frontiers, identities=identities)
        useful = any(kept.is_usefulness for sweep in sweeps for point in sweep.points for kept in point.utility)
        title = "Privacy against usefulness" if useful else "Privacy over rank"
        found.append(Section("frontier", title, body, order=1))
    if not any(sweep.over == "rank" for sweep in sweeps):
        found.append("the frontier of privacy and usefulness over rank")
    if not any(sweep.over == "identities" for sweep in sweeps):
        found.append("what more fit identities would buy")
    return found


def frontier(result: AuditResult, sweep: Sweep, styles: dict[str, Look]) -> Frontier:
    ranks = sorted({point.rank for point in sweep.points if point.rank})
    methods = list(dict.fromkeys(point.method for point in sweep.points))
    measures = list(dict.fromkeys(_measure(kept) for point in sweep.points for kept in point.utility))
    by = {(point.method, point.rank): point for point in sweep.points}
    # What nothing was removed from is the same beside every rank.
    by |= {(point.method, rank): point for point in sweep.points if not point.rank for rank in ranks}
    asked = next((s.erasure.rank for s in result.spaces if s.erasure and s.erasure.rank in ranks), None)
    shown = [styles[method] for method in methods]
    return Frontier(
        about=_about(sweep),
        lighter=sweep.seeds < result.protocol.seeds or sweep.probes != result.protocol.probe,
        figures=[_over_rank(sweep, shown), *(_against(sweep, measure, shown) for measure in measures)],
        ranks=ranks,
        chosen=ranks.index(asked) if asked is not None else len(ranks) // 2,
        methods=methods,
        columns=["worst-case TAR", "times chance", *(f"{measure} kept" for measure in measures)],
        cells=[[_words(by.get((method, rank)), measures) for method in methods] for rank in ranks],
        said=[_said(rank, [by.get((method, rank)) for method in methods]) for rank in ranks],
        table=_table(sweep, measures),
    )


def _about(sweep: Sweep) -> str:
    coarse = "; the rate is coarse" if sweep.resolution == "coarse" else ""
    seeds = count(sweep.seeds, "draw")
    return f"k = {sweep.k}, FAR {rate(sweep.far)}, the worst of {', '.join(sweep.probes)}, {seeds}{coarse}"


def _measure(kept: Kept) -> str:
    return f"{kept.measure} on {kept.on}"


def _words(point: SweepPoint | None, measures: list[str]) -> list[str]:
    if point is None:
        return [NOT_MEASURED] * (2 + len(measures))
    useful = dict.fromkeys(measures, "all")
    if point.rank:
        useful = {_measure(kept): bounded(kept.retained) for kept in point.utility}
    return [bounded(point.tar), multiple(point.times_chance), *(useful.get(m, NOT_MEASURED) for m in measures)]


def _said(rank: int, points: list[SweepPoint | None]) -> str:
    return f"rank {rank}: " + ", ".join(f"{p.method} {percent(p.tar.value)}" for p in points if p is not None)


def _table(sweep: Sweep, measures: list[str]) -> Table:
    rows: list[tuple[Cell | str, ...]] = []
    for point in sorted(sweep.points, key=lambda point: point.rank):
        words = _words(point, measures)
        named = Cell(f"{point.method}, rank {point.rank}", "control" if point.control else "")
        rows.append((named, words[0], pairs(point.tar), point.probe, *words[1:]))
    columns = ("eraser", "worst-case TAR", "linked pairs", "probe", "times chance", *(f"{m} kept" for m in measures))
    return table(f"Every rank, at {_about(sweep)}", columns, rows)


def _over_rank(sweep: Sweep, shown: list[Look]) -> Figure:
    rows = [_row(point, point.rank) for point in sweep.points]
    x = alt.X("x:Q", title="dimensions removed", axis=alt.Axis(grid=False, format="d"))
    label = "Worst-case TAR over dimensions removed. " + _tails(sweep, "rank")
    return Figure("Over dimensions removed", draw(_layers(rows, x, shown), label), tuple(shown))


def _against(sweep: Sweep, measure: str, shown: list[Look]) -> Figure:
    rows = [
        _row(point, kept.retained.value)
        for point in sweep.points
        for kept in point.utility
        if _measure(kept) == measure
    ]
    rows += [_row(point, 1.0) for point in sweep.points if not point.rank]
    nearest = "overlap@" in measure
    kept_words = "share of nearest neighbours kept" if nearest else "share of usefulness kept"
    x = alt.X("x:Q", title=kept_words, axis=alt.Axis(format="~%"), scale=alt.Scale(zero=False))
    label = f"Worst-case TAR against {measure} kept; lower and further right is better. " + _tails(sweep, "rank")
    return Figure(f"Against {measure}", draw(_layers(rows, x, shown), label), tuple(shown))


def _over_identities(sweep: Sweep, styles: dict[str, Look]) -> Figure:
    shown = [styles[method] for method in dict.fromkeys(point.method for point in sweep.points)]
    rows = [_row(point, point.fit_identities) for point in sweep.points]
    values = sorted({point.fit_identities for point in sweep.points})
    x = alt.X(
        "x:Q",
        title="identities the eraser was fitted on",
        scale=alt.Scale(type="log", domain=[values[0], values[-1] * 1.001]),
        axis=alt.Axis(values=values, format=",d", grid=False),
    )
    label = "Worst-case TAR over the number of fit identities. " + _tails(sweep, "fit_identities")
    named = [(f"{point.method}, rank {point.rank}", f"{point.fit_identities:,}") for point in sweep.points]
    found = [(bounded(point.tar), pairs(point.tar), multiple(point.times_chance)) for point in sweep.points]
    numbers = table(
        f"By fit identities, at {_about(sweep)}",
        ("eraser", "fit identities", "worst-case TAR", "linked pairs", "times chance"),
        [(*one, *other) for one, other in zip(named, found, strict=True)],
    )
    return Figure("Over fit identities", draw(_layers(rows, x, shown), label), tuple(shown), numbers, _about(sweep))


def _row(point: SweepPoint, x: float) -> dict[str, float | int | str]:
    found = point.tar
    named: dict[str, float | int | str] = {"look": point.method, "rank": point.rank, "x": x}
    return {**named, "tar": found.value, "low": found.low, "high": found.high}


def _layers(rows: Rows, x: alt.X, shown: list[Look]) -> list[alt.Chart]:
    """Intervals, a line through the ranks, and a point for each, which says its rank for the slider to find."""
    y = alt.Y("tar:Q", title="worst-case TAR", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=True))
    base, of = data([{**row, "said": f"rank {row['rank']}"} for row in rows]), colour(shown)
    return [
        base.mark_rule(strokeWidth=1, opacity=0.6).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=of),
        base.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=of, strokeDash=dash(shown), order="rank:Q"),
        base.mark_point(filled=True, size=46, opacity=1).encode(
            x=x, y=y, color=of, shape=shape(shown), description="said:N"
        ),
    ]


def _tails(sweep: Sweep, over: str) -> str:
    """Where each method starts and ends."""
    said = []
    for method in dict.fromkeys(point.method for point in sweep.points):
        of = sorted((p for p in sweep.points if p.method == method), key=lambda p: int(getattr(p, over)))
        first, last = of[0], of[-1]
        said.append(
            f"{method}: {percent(first.tar.value)} at {getattr(first, over)} to {percent(last.tar.value)} at "
            f"{getattr(last, over)}"
        )
    return "; ".join(said)
