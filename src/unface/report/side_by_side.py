"""Several encoders on the same pictures: one table, one page, the verdict of each."""

import os
from collections.abc import Mapping
from pathlib import Path

import altair as alt
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.charts import Figure, colour, dash, data, draw, looks, shape
from unface.page.tables import Cell, Table, multiple, point_tar, print_safely, table
from unface.page.templates import render_page
from unface.report.opening import encoders_opening
from unface.result.audit import AuditResult, Point, SpaceResult
from unface.result.words import percent, rate

_ROW, _FRAME = 22, 52  # pixels of a space's line in a chart, and of axis and padding
Audits = Mapping[str, AuditResult]
"""By encoder."""


def write_side_by_side(
    audits: Audits,
    links: Mapping[str, str],
    path: str | os.PathLike[str],
    decisions: Mapping[str, GateResult] | None = None,
) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    write_file(Path(path), render_side_by_side(audits, links, decisions).encode(), option="--out")
    return Path(path)


def render_side_by_side(
    audits: Audits, links: Mapping[str, str], decisions: Mapping[str, GateResult] | None = None
) -> str:
    """The page; ``links`` lead to each encoder's own report, from its folder; ``decisions`` are of one policy."""
    return render_page(
        "unface.report:side_by_side.html.jinja",
        opening=encoders_opening(audits, decisions or {}),
        audits=audits,
        links=links,
        charts=worst_cases(audits),
        table=comparison(audits),
    )


def print_side_by_side(audits: Audits, console: Console) -> None:
    """Every verdict, then the table."""
    for name, result in audits.items():
        print_safely(console, Text(name, style="bold").append(f": {result.verdict}\n", style="not bold"))
    print_safely(console, side_by_side_table(audits))


def comparison(audits: Audits) -> Table:
    """A row for each encoder and space: worst case at every rate, at the k of the encoder's headline."""
    fars, uses = _fars(audits), _uses(audits)
    rows = []
    for name, result in audits.items():
        for space in result.spaces:
            kept = {(one.measure, one.on): percent(one.retained.value) for one in space.utility}
            cells = [_cell(result, space, far) for far in fars]
            encoder = Cell(name, _used(result) if space is result.raw else "")
            rows.append((encoder, _space(space), *cells, *(Cell(kept.get(use, "")) for use in uses)))
    columns = (f"worst-case TAR at FAR {rate(far)}" for far in fars)
    kept_columns = (f"{measure} on {on} kept" for measure, on in uses)
    return table("The same pictures by each encoder", ("encoder", "space", *columns, *kept_columns), rows)


def side_by_side_table(audits: Audits) -> Drawn:
    """The same in 80 columns: an encoder is a line of its own, signs of percent are in the heading, sets below."""
    drawn = Drawn(box=None, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left", caption_style="dim")
    drawn.add_column("encoder", vertical="bottom", no_wrap=True)
    drawn.add_column("removed", vertical="bottom", justify="right", no_wrap=True)
    uses = _uses(audits)
    for heading in (*(f"TAR % at FAR {rate(far)}" for far in _fars(audits)), *(measure for measure, _ in uses)):
        drawn.add_column(heading.replace("@", "\n@"), vertical="bottom", justify="right")
    named = ""
    for encoder, space, *cells in comparison(audits).rows:
        if named != encoder.text:
            if named:
                drawn.add_row()
            drawn.add_row(Text(encoder.text, style="bold"))
            named = encoder.text
        removed = space.small.removesuffix(" removed").replace(" of ", "/")
        plain = (Text(cell.text.replace(" %", ""), no_wrap=True) for cell in cells)
        drawn.add_row(Text(f"  {space.text}"), Text(removed, style="dim"), *plain)
    sets = dict.fromkeys(on for _, on in uses)
    said = (f"{', '.join(measure for measure, where in uses if where == on)} on {on}" for on in sets)
    drawn.caption = Text(f"kept, % of raw: {'; '.join(said)}") if uses else None
    return drawn


def _fars(audits: Audits) -> list[float]:
    return list(dict.fromkeys(far for result in audits.values() for far in result.protocol.far))


def _uses(audits: Audits) -> list[tuple[str, str]]:
    """(measure, on what) of everything vectors are used for in any space."""
    every = (kept for result in audits.values() for space in result.spaces for kept in space.utility)
    return list(dict.fromkeys((kept.measure, kept.on) for kept in every if kept.is_usefulness))


def _cell(result: AuditResult, space: SpaceResult, far: float) -> Cell:
    head = result.headline
    k = result.protocol.k[-1] if head is None else head.k
    point = space.worst_at(k, far)
    if not result.valid:
        return Cell("invalid")
    if point is None or point.times_chance is None:
        return Cell("not resolved")
    return Cell(point_tar(point), f"{multiple(point.times_chance)} chance, {point.probe}, k = {k}")


def _space(space: SpaceResult) -> Cell:
    if space.erasure is None:
        return Cell(space.name)
    return Cell(space.name, f"{space.erasure.rank} of {space.erasure.dim} removed")


def _used(result: AuditResult) -> str:
    licence = f"; weights: {result.source.licence}" if result.source.licence else ""
    return f"{result.source.rows:,} pictures, {result.curated.identities:,} identities used{licence}"


def worst_cases(audits: Audits) -> list[Figure]:
    """The worst case of every space with its interval, at the k and rate of the encoder's verdict."""
    points = {name: _points(result) for name, result in audits.items()}
    highest = max((p.tar.high for one in points.values() for p in one.values() if p.tar), default=0.0)
    return [_figure(name, audits[name], one, highest) for name, one in points.items() if one]


def _points(result: AuditResult) -> dict[str, Point]:
    """By space; nothing where a number would be one that nobody may quote."""
    head = result.headline
    if head is None or not result.valid:
        return {}
    at = {space.name: head.of(space) for space in result.spaces}
    return {name: point for name, point in at.items() if point is not None and point.tar is not None}


def _figure(name: str, result: AuditResult, points: Mapping[str, Point], highest: float) -> Figure:
    shown = [looks(result)[space] for space in points]
    tars = {space: point.tar for space, point in points.items() if point.tar is not None}
    base = data(
        [
            {"look": space, "line": line, "tar": tar.value, "low": tar.low, "high": tar.high}
            for line, (space, tar) in enumerate(tars.items())
        ]
    )
    scale = alt.Scale(domain=[0, highest], nice=True)
    x = alt.X("tar:Q", title="worst-case TAR", axis=alt.Axis(format="~%"), scale=scale)
    y, of = alt.Y("line:O", title=None, axis=None), colour(shown)
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(
            x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=of, strokeDash=dash(shown)
        ),
        base.mark_point(filled=True, size=64, opacity=1).encode(x=x, y=y, color=of, shape=shape(shown)),
    ]
    said = "; ".join(f"{space} {point_tar(point)}" for space, point in points.items())
    first = next(iter(points.values()))
    drawn = draw(layers, f"Worst-case TAR of {name}: {said}", height=_FRAME + _ROW * len(points))
    level = f"{100 * result.protocol.level:g}"
    note = f"k = {first.k}, FAR {rate(first.far)}; lines are {level} % intervals"
    return Figure(name, drawn, tuple(shown), note=note)
