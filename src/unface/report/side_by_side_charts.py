"""What each encoder gives away, before and after, drawn to one scale: a small chart for each."""

from collections.abc import Mapping

import altair as alt

from unface.auditing import AuditResult, headline
from unface.auditing.schema import Point
from unface.auditing.words import rate
from unface.report.cells import point_tar
from unface.report.draw import Figure, colour, dash, data, draw, shape
from unface.report.looks import looks

_ROW, _FRAME = 22, 52  # pixels of a space's line, and of axis and padding


def worst_cases(audits: Mapping[str, AuditResult]) -> list[Figure]:
    """The worst case of every space with its interval, at the k and rate of the encoder's verdict."""
    found = {name: _points(result) for name, result in audits.items()}
    highest = max((p.tar.high for points in found.values() for p in points.values() if p.tar), default=0.0)
    return [_figure(name, audits[name], points, highest) for name, points in found.items() if points]


def _points(result: AuditResult) -> dict[str, Point]:
    """By space; nothing where a number would be one that nobody may quote."""
    head = headline(result.raw.points)
    if head is None or not result.valid:
        return {}
    at = {space.name: space.worst_at(head.k, head.far) for space in result.spaces}
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
