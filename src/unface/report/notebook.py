"""A result as a notebook shows it: a banner, the conclusion, bars; and as a chart to edit further."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unface.page.templates import render
from unface.report.opening import NOTHING, matched_words
from unface.result.audit import AuditResult, Headline
from unface.result.numbers import Estimate
from unface.result.readings import Told
from unface.result.validation import ALL_JUDGES, ValidationResult, measured
from unface.result.words import count, in_percent, interval, percent, rate

if TYPE_CHECKING:
    import altair

_INK, _ERASED, _GREY = "#1f2328", "#1c5d99", "#767c85"
_MOST_BARS = 12
Rows = list[dict[str, float | int | str]]


@dataclass(frozen=True)
class Bar:
    """One bar: its length and the ends of its interval in percent of the width."""

    name: str
    text: str
    length: float
    low: float
    high: float
    colour: str


def audit_html(result: AuditResult) -> str:
    """A few kilobytes that load nothing."""
    head = result.headline
    if not result.valid:
        sentences = [result.verdict]
    elif head is None or head.raw.tar is None:
        sentences = [NOTHING]
    else:
        sentences = _audit_sentences(result, head)
    rows = [] if head is None or not result.valid else _spaces(result, head)
    bars = _bars(
        [
            (f"{name} (control)" if control else name, tar, _INK if first else _GREY if control else _ERASED)
            for name, tar, first, control in rows
        ]
    )
    caption = "" if head is None else f"Worst attacker at k = {head.k}, FAR {rate(head.far)}, in % of photo pairs"
    return _card("Identity audit of", result.source.name, result.valid, len(result.findings), sentences, bars, caption)


def _audit_sentences(result: AuditResult, head: Headline) -> list[str]:
    first = matched_words(head)
    points = {space.name: head.of(space) for space in result.erased}
    left = [f"{percent(point.tar.value)} after {name}" for name, point in points.items() if point and point.tar]
    return [first, f"What is left: {', '.join(left)}."] if left else [first]


def _spaces(result: AuditResult, head: Headline) -> list[tuple[str, Estimate, bool, bool]]:
    """(name, TAR, whether it is the first space, whether it is a control) of each space at the headline."""
    points = [(space, head.of(space)) for space in result.spaces]
    return [
        (space.name, point.tar, space is result.raw, space.is_control)
        for space, point in points
        if point is not None and point.tar is not None
    ]


def validation_html(result: ValidationResult) -> str:
    """The same for a validation."""
    headline = result.headline
    rows: list[tuple[str, Estimate, str]] = []
    caption = ""
    if headline is not None and result.valid:
        far, queries = headline.point.far, headline.point.queries
        for attack in result.attacks:
            point = attack.point(queries, far)
            share = None if point is None else measured(point)
            if share is not None:
                rows.append((attack.name, share, _INK))
        ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (far, ALL_JUDGES)), None)
        if ceiling is not None:
            rows.append(("a real second photo", ceiling.other, _GREY))
        caption = f"After {count(queries, 'question')} about a person, FAR {rate(far)}, in % of comparisons"
    found = len(result.findings)
    return _card("Attack test of", result.target.name, result.valid, found, [result.verdict], _bars(rows), caption)


def readings_html(result: Told) -> str:
    """The same for every other result: what it says, and its shares."""
    shares = _shares(result) if result.valid else []
    bars = _bars([(name, found, _INK if first else _ERASED) for name, found, first in shares])
    kind = type(result).__name__.removesuffix("Result")
    said = [result.verdict] if result.valid else []
    return _card(f"{kind}:", result.subject, result.valid, len(result.findings), said, bars, "In %")


def _shares(result: Told) -> list[tuple[str, Estimate, bool]]:
    """(name, share, whether the result is quoted by it)."""
    return [(one.name, one.found, one.headline) for one in result.readings() if one.found is not None and one.is_share]


def readings_chart(result: Told) -> "altair.LayerChart | altair.FacetChart":
    """Shares of a result with their intervals."""
    import altair as alt

    rows: Rows = [
        {"reading": name, "share": found.value, "low": found.low, "high": found.high}
        for name, found, _ in _shares(result)
    ]
    names = alt.Y("reading:N", title=None, sort=[str(row["reading"]) for row in rows])
    whole = alt.Scale(domain=[0, 1])
    ends = alt.Chart().mark_rule().encode(y=names, x=alt.X("low:Q", title="share", scale=whole), x2="high:Q")
    tips = ["reading:N", "share:Q", "low:Q", "high:Q"]
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=1)
        .encode(y=names, x=alt.X("share:Q", scale=whole, axis=alt.Axis(format="%")), tooltip=tips)
    )
    return alt.layer(ends, dots, data=alt.InlineData(values=rows))


def audit_chart(result: AuditResult) -> "altair.FacetChart":
    """TAR of the worst attacker over k, a line for each space, at each false-accept rate."""
    rows: Rows = [
        {
            "space": space.name,
            "k": point.k,
            "FAR": rate(point.far),
            "TAR": point.tar.value,
            "low": point.tar.low,
            "high": point.tar.high,
            "attacker": point.probe,
        }
        for space in result.spaces
        for point in space.points
        if point.worst and point.tar is not None
    ]
    fars = [rate(far) for far in result.protocol.far]
    return _chart(rows, x="k", x_title="k: pictures of each of its own people", y="TAR", line="space", column=fars)


def validation_chart(result: ValidationResult) -> "altair.FacetChart":
    """What each attack recovers over the number of questions, at each false-accept rate."""
    rows: Rows = [
        {
            "attack": attack.name,
            "questions": point.queries,
            "FAR": rate(point.far),
            "recovered": share.value,
            "low": share.low,
            "high": share.high,
        }
        for attack in result.attacks
        for point in attack.at
        if point.judge == ALL_JUDGES and (share := measured(point)) is not None
    ]
    fars = [rate(far) for far in result.far]
    title = "questions about a person"
    return _chart(rows, x="questions", x_title=title, y="recovered", line="attack", column=fars)


def _chart(rows: Rows, *, x: str, x_title: str, y: str, line: str, column: list[str]) -> "altair.FacetChart":
    import altair as alt

    ticks = sorted({int(row[x]) for row in rows})
    axis = alt.Axis(format="d", grid=False, values=ticks)
    across = alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(type="log", nice=False), axis=axis)
    names = list(dict.fromkeys(str(row[line]) for row in rows))
    colour = alt.Color(f"{line}:N", title=line, sort=names)
    ends = alt.Y("low:Q", title=y, axis=alt.Axis(format="%"))
    band = alt.Chart().mark_area(opacity=0.12).encode(x=across, y=ends, y2="high:Q", color=colour)
    tips = [f"{name}:{'N' if isinstance(value, str) else 'Q'}" for name, value in (rows[0] if rows else {}).items()]
    drawn = alt.Chart().mark_line(point=True).encode(x=across, y=f"{y}:Q", color=colour, tooltip=tips)
    layers = alt.layer(band, drawn, data=alt.InlineData(values=rows)).properties(width=240, height=200)
    return layers.facet(column=alt.Column("FAR:N", title="false-accept rate (FAR)", sort=column))


def _bars(rows: list[tuple[str, Estimate, str]]) -> list[Bar]:
    longest = max((found.high for _, found, _ in rows), default=0.0) or 1.0
    return [
        Bar(
            name,
            f"{in_percent(found.value)} {interval(found.low, found.high)}",
            100 * found.value / longest,
            100 * found.low / longest,
            100 * found.high / longest,
            colour,
        )
        for name, found, colour in rows[:_MOST_BARS]
    ]


def _card(
    title: str, name: str, valid: bool, findings: int, sentences: list[str], bars: list[Bar], caption: str
) -> str:
    state = (
        ("#6b4e00", "#fff4d6", "No policy set", "unface gate checks a result against limits.")
        if valid
        else ("#8a1c1c", "#fde8e8", "Invalid", "Do not use these numbers.")
    )
    return str(
        render(
            "unface.report:notebook.html.jinja",
            title=title,
            name=name,
            state=state,
            sentences=sentences,
            bars=bars,
            caption=caption,
            findings=count(findings, "finding"),
        )
    )
