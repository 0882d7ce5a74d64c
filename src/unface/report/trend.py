"""The trend on a page: the numbers that a result is quoted by, over the results that a history holds."""

from collections.abc import Sequence

import altair as alt
from markupsafe import Markup

from unface.page.charts import Figure, Look, Rows, colour, dash, data, draw, looks_of, shape
from unface.page.tables import Cell, Table, table
from unface.page.templates import render
from unface.result.history import PastReading, PastResult
from unface.result.parts import Section
from unface.result.readings import Readable
from unface.result.words import count, in_percent, interval, percent

_MOST = 60
"""Results in one chart: the latest."""


def trend_section(history: Sequence[PastResult], result: Readable) -> Section | None:
    """None where no earlier result has a number that this one is quoted by."""
    quoted = {one.key: one.where or one.what for one in result.readings() if one.headline and one.found}
    past = [line for line in history if line.kind == result.schema_ and line.valid and _of(line, quoted)][-_MOST:]
    if len(past) < 2:
        return None
    shown = [looks_of([*quoted.values()])[name] for name in quoted.values()]
    what, _, at = next(iter(quoted))
    figure = Figure(f"Headline over {len(past)} results", _drawn(past, quoted, shown), tuple(shown))
    text = (
        f"{what} ({at}) of {count(len(past), 'result')} in this history, oldest first, each with its interval. "
        "Invalid results are left out."
    )
    body = render("figures.jinja", text=text, figures=[figure]) + render("tables.jinja", tables=[_table(past, quoted)])
    return Section("trend", "Trend", body, order=1)


Quoted = dict[tuple[str, str, str], str]
"""Names of the lines by what they show."""


def _of(line: PastResult, quoted: Quoted) -> dict[str, PastReading]:
    """Of a past result: its readings by the name of the line that they belong to."""
    return {
        quoted[one.what, one.where, one.at]: one for one in line.readings if (one.what, one.where, one.at) in quoted
    }


def _drawn(past: Sequence[PastResult], quoted: Quoted, shown: list[Look]) -> Markup:
    rows: Rows = [
        {"x": number, "y": one.value, "low": one.low, "high": one.high, "look": name}
        for number, line in enumerate(past, 1)
        for name, one in _of(line, quoted).items()
    ]
    # Named one by one: with its own ticks, a chart of two results has them at 1, 1.5 and 2, all rounded.
    axis = alt.Axis(grid=False, format="d", values=list(range(1, len(past) + 1, max(1, len(past) // 10))))
    x = alt.X(
        "x:Q", title="result, oldest first", scale=alt.Scale(domain=[0.5, len(past) + 0.5], nice=False), axis=axis
    )
    top = max(float(row["high"]) for row in rows)
    y = alt.Y(
        "y:Q", title="share", scale=alt.Scale(domain=[0, top * 1.05 or 1]), axis=alt.Axis(format=".1~%", tickCount=5)
    )
    bars = (
        data(rows)
        .mark_rule(strokeWidth=1.5)
        .encode(x=x, y=alt.Y("low:Q", title="share"), y2="high:Q", color=colour(shown))
    )
    line = data(rows).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(shown), strokeDash=dash(shown))
    dots = (
        data(rows).mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=colour(shown), shape=shape(shown))
    )
    said = "; ".join(
        f"{name} {percent(first.value)} in the first, {percent(_of(past[-1], quoted)[name].value)} in the last"
        for name, first in _of(past[0], quoted).items()
        if name in _of(past[-1], quoted)
    )
    return draw([bars, line, dots], f"Headline over {len(past)} results: {said}.")


def _table(past: Sequence[PastResult], quoted: Quoted) -> Table:
    rows = []
    for number, line in enumerate(past, 1):
        found = _of(line, quoted)
        cells = [
            Cell(
                f"{in_percent(found[name].value)} {interval(found[name].low, found[name].high)}"
                if name in found
                else "–"
            )
            for name in quoted.values()
        ]
        rows.append([Cell(str(number), line.started[:10]), Cell(line.subject), *cells, Cell(line.verdict or "–")])
    rows.reverse()
    return table("Results, latest first; numbers in percent", ("result", "of", *quoted.values(), "gate"), rows)
