"""Place against person, drawn over how strongly faces are blurred and over how much background is seen."""

from collections.abc import Callable, Mapping, Sequence

import altair as alt

from unface.auditing.schema import AttributedSpace, EncoderAttribution, Share
from unface.auditing.words import percent
from unface.report.cells import Cell, Table, bounded, pairs, table
from unface.report.draw import Figure, Rows, colour, dash, data, draw
from unface.report.looks import GREY, Look

Levels = Callable[[AttributedSpace], Sequence[tuple[float, Share]]]


def curve_figures(one: EncoderAttribution, looks: Mapping[str, Look]) -> list[Figure]:
    """CPI over σ and over B, raw against erased; none where no triplet was to be had."""
    shown = [space for space in one.spaces if space.cpi is not None and space.b_star is not None]
    if not shown:
        return []
    return [
        _figure(
            "Place preferred as faces are blurred",
            "blur of all faces, σ in pixels",
            _blurred,
            one.encoder,
            shown,
            looks,
        ),
        _figure(
            "Place preferred as background is revealed",
            "share of the background seen, B",
            _seen,
            one.encoder,
            shown,
            looks,
        ),
    ]


def similarity_table(one: EncoderAttribution) -> Table | None:
    """Behind the second chart: how alike the query is to its place and to its person."""
    rows = [
        (Cell(space.name), f"{level.share:g}", _cosine(level.to_context.value), _cosine(level.to_identity.value))
        for space in one.spaces
        if space.b_star is not None
        for level in space.b_star.at
    ]
    columns = ("space", "B", "cosine to another face in its place", "cosine to its face elsewhere")
    return table(f"Similarities as background is revealed, {one.encoder}", columns, rows) if rows else None


def _figure(
    title: str,
    axis: str,
    levels: Levels,
    encoder: str,
    shown: Sequence[AttributedSpace],
    looks: Mapping[str, Look],
) -> Figure:
    used = [looks[space.name] for space in shown]
    rows: Rows = [
        {"look": space.name, "x": at, "share": share.value, "low": share.low, "high": share.high}
        for space in shown
        for at, share in levels(space)
    ]
    places = sorted({at for at, _ in levels(shown[0])})
    x = alt.X("x:Q", title=axis, scale=alt.Scale(domain=[places[0], places[-1]], nice=False), axis=_ticks(places))
    y = alt.Y(
        "share:Q",
        title="place preferred to person",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    half = data([{"x": places[0], "share": 0.5}, {"x": places[-1], "share": 0.5}])
    layers = [
        half.mark_line(color=GREY, strokeWidth=1, opacity=0.8).encode(x=x, y=y),
        data(rows).mark_rule(strokeWidth=1, opacity=0.6).encode(x=x, y="low:Q", y2="high:Q", color=colour(used)),
        data(rows).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour(used), strokeDash=dash(used)),
    ]
    ends = "; ".join(
        f"{space.name} from {percent(levels(space)[0][1].value)} to {percent(levels(space)[-1][1].value)}"
        for space in shown
    )
    numbers = _numbers(f"{title}, {encoder}", axis, places, shown, levels)
    return Figure(title, draw(layers, f"{title}: {ends}"), tuple(used), numbers)


def _numbers(
    caption: str, axis: str, places: Sequence[float], shown: Sequence[AttributedSpace], levels: Levels
) -> Table:
    found = [dict(levels(space)) for space in shown]
    rows = [[Cell(f"{at:g}"), *(Cell(bounded(one[at]), pairs(one[at])) for one in found)] for at in places]
    return table(caption, (axis, *(space.name for space in shown)), rows)


def _blurred(space: AttributedSpace) -> Sequence[tuple[float, Share]]:
    return [(level.sigma, level.preferred) for level in space.cpi.at] if space.cpi else []


def _seen(space: AttributedSpace) -> Sequence[tuple[float, Share]]:
    return [(level.share, level.preferred) for level in space.b_star.at] if space.b_star else []


def _ticks(places: Sequence[float]) -> alt.Axis:
    return alt.Axis(values=list(places), format=".2~f", labelOverlap=False)


def _cosine(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
