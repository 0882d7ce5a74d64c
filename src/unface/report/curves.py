"""TAR over FAR, drawn with both axes logarithmic: the height above the diagonal is how many times chance."""

import math

import altair as alt

from unface.auditing.schema import AuditResult, Curve, SpaceResult
from unface.auditing.words import percent, rate
from unface.report.cells import Table, table
from unface.report.draw import Figure, Rows, colour, dash, data, draw
from unface.report.looks import GREY, Look, looks


def curve_figures(result: AuditResult) -> list[Figure]:
    """One chart for each k: the worst case of each space at the lowest rate, and the line of chance."""
    styles = looks(result)
    found = [(k, _at(result, k)) for k in result.protocol.ks]
    return [_figure(k, shown, styles) for k, shown in found if any(_positive(curve) for _, curve in shown)]


def _at(result: AuditResult, k: int) -> list[tuple[SpaceResult, Curve]]:
    found = []
    for space in result.spaces:
        worst = [point for point in space.points if point.worst and point.k == k]
        probe = min(worst, key=lambda point: point.far).probe if worst else None
        found += [(space, curve) for curve in space.curves if curve.k == k and curve.probe == probe]
    return found


def _positive(curve: Curve) -> list[tuple[float, float]]:
    return [(far, tar) for far, tar in zip(curve.far, curve.tar, strict=True) if far > 0 and tar > 0]


def _figure(k: int, shown: list[tuple[SpaceResult, Curve]], styles: dict[str, Look]) -> Figure:
    used = [styles[space.name] for space, _ in shown]
    drawn = [point for _, curve in shown for point in _positive(curve)]
    rows: Rows = [
        {"look": space.name, "far": far, "tar": tar} for space, curve in shown for far, tar in _positive(curve)
    ]
    left, right, low = min(far for far, _ in drawn), max(far for far, _ in drawn), min(tar for _, tar in drawn)
    far = alt.X(
        "far:Q",
        title="false-accept rate (FAR)",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(values=_decades(left, right), format="~e", tickCount=10, labelOverlap=False),
    )
    tar = alt.Y(
        "tar:Q",
        title="true-accept rate (TAR)",
        scale=alt.Scale(type="log", domain=[low, 1], nice=False),
        axis=alt.Axis(values=_decades(low, 1), format="~%"),
    )
    # The diagonal is drawn from where it enters the chart.
    start = max(left, low)
    diagonal = data([{"far": start, "tar": start}, {"far": right, "tar": right}])
    layers = [diagonal.mark_line(color=GREY, strokeWidth=1, opacity=0.8).encode(x=far, y=tar)] if start < right else []
    layers.append(data(rows).mark_line(strokeWidth=1.8).encode(x=far, y=tar, color=colour(used), strokeDash=dash(used)))
    ends = "; ".join(f"{space.name} reaches {percent(_tar_at(curve, 1e-3))} at FAR 1e-3" for space, curve in shown)
    label = f"TAR over FAR at k = {k}, both logarithmic, above the line of chance where TAR equals FAR: {ends}"
    return Figure(f"k = {k}", draw(layers, label), tuple(used), _numbers(k, shown, left))


def _numbers(k: int, shown: list[tuple[SpaceResult, Curve]], left: float) -> Table:
    rows = [(rate(far), *(percent(_tar_at(curve, far)) for _, curve in shown)) for far in reversed(_decades(left, 0.5))]
    rows.append(("equal error rate", *(percent(curve.eer) for _, curve in shown)))
    columns = ("FAR on test identities", *(f"{space.name} ({curve.probe})" for space, curve in shown))
    return table(f"TAR at k = {k}", columns, rows)


def _tar_at(curve: Curve, far: float) -> float:
    """Of the last point that accepts no more than that."""
    at = [tar for reached, tar in zip(curve.far, curve.tar, strict=True) if reached <= far * (1 + 1e-9)]
    return max(at, default=0.0)


def _decades(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]
