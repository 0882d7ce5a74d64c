"""Albums on the page: the worst case of each space by pictures per side, every probe, and paired differences."""

import altair as alt

from unface.auditing.albums import AlbumChange, AlbumPoint, AlbumResults
from unface.page.charts import Figure, Rows, colour, dash, data, draw, looks, shape
from unface.page.tables import NOT_MEASURED, Cell, Table, bounded, multiple, pairs, table
from unface.page.templates import render
from unface.result.audit import AuditResult
from unface.result.parts import Section
from unface.result.words import percent, rate, signed_points


def section(result: AuditResult, found: AlbumResults) -> Section:
    """One table for each rate, one chart at the headline's."""
    passed = sum(one.passed for one in found.shuffled_identities)
    body = render(
        "unface.auditing.albums:section.jinja",
        found=found,
        worst=[_worst(result, found, far) for far in result.protocol.far],
        figure=_figure(result, found),
        probes=_probes(found),
        changes=_changes(found),
        passed=passed,
        controls=len(found.shuffled_identities),
    )
    return Section("albums", "With several pictures per side", body, order=1)


def _sizes(found: AlbumResults) -> list[str]:
    ordered = sorted(found.points, key=lambda point: (point.first, point.second))
    return list(dict.fromkeys(point.words for point in ordered))


def _worst(result: AuditResult, found: AlbumResults, far: float) -> Table:
    rows: list[tuple[Cell | str, ...]] = []
    for space in result.spaces:
        at = {point.words: point for point in found.worst(space.name, far)}
        refused = {point.words: point for point in found.points if (point.space, point.far) == (space.name, far)}
        named = Cell(space.name, "control" if space.is_control else "")
        rows.append((named, *(_cell(at.get(size) or refused.get(size)) for size in _sizes(found))))
    return table(f"Worst-case TAR of albums at FAR {rate(far)}", ("space", *_sizes(found)), rows)


def _cell(point: AlbumPoint | None) -> Cell:
    if point is None:
        return Cell(NOT_MEASURED)
    if point.tar is None or point.times_chance is None:
        needed = f"{point.identities_needed:,} calibrate identities needed" if point.identities_needed else ""
        return Cell("not resolved", needed)
    coarse = "~" if point.resolution == "coarse" else ""
    return Cell(f"{coarse}{bounded(point.tar)}", f"{multiple(point.times_chance)} chance, {point.probe}")


def _figure(result: AuditResult, found: AlbumResults) -> Figure | None:
    head = result.headline
    if head is None:
        return None
    styles = looks(result)
    lines = {space.name: [one for one in found.worst(space.name, head.far) if one.tar] for space in result.spaces}
    shown = [styles[name] for name, points in lines.items() if len(points) > 1]
    if not shown:
        return None
    rows: Rows = [
        {
            "look": name,
            "x": (point.first + point.second) / 2,
            "tar": point.tar.value,
            "low": point.tar.low,
            "high": point.tar.high,
        }
        for name, points in lines.items()
        for point in points
        if point.tar and len(points) > 1
    ]
    x = alt.X("x:Q", title="pictures per side", scale=alt.Scale(type="log", base=2, nice=False))
    y = alt.Y("tar:Q", title="worst-case TAR", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=True))
    base, of = data(rows), colour(shown)
    layers = [
        base.mark_rule(strokeWidth=1, opacity=0.6).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=of),
        base.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=of, strokeDash=dash(shown)),
        base.mark_point(filled=True, size=46, opacity=1).encode(x=x, y=y, color=of, shape=shape(shown)),
    ]
    ends = "; ".join(
        f"{name} from {percent(points[0].tar.value)} at {points[0].words} to {percent(points[-1].tar.value)} at "
        f"{points[-1].words}"
        for name, points in lines.items()
        if len(points) > 1 and points[0].tar and points[-1].tar
    )
    title = f"At FAR {rate(head.far)}"
    return Figure(title, draw(layers, f"Worst-case TAR over pictures per side. {ends}"), tuple(shown))


def _probes(found: AlbumResults) -> Table:
    rows = [
        (
            Cell(point.space, point.probe, strong=point.worst),
            point.words,
            rate(point.far),
            _cell(point),
            pairs(point.tar) if point.tar else "–",
            pairs(point.achieved_far) if point.achieved_far else "–",
        )
        for point in found.points
    ]
    columns = ("space and probe", "pictures per side", "FAR", "TAR", "linked albums", "strangers accepted")
    return table("Every probe", columns, rows)


def _changes(found: AlbumResults) -> Table | None:
    rows = [
        (
            Cell(one.space, f"less {one.against}"),
            f"{one.first} against {one.second}",
            rate(one.far),
            f"{'~' if _coarse(found, one) else ''}{signed_points(one.value)} "
            f"[{signed_points(one.low)}, {signed_points(one.high)}]",
        )
        for one in found.changes
    ]
    columns = ("spaces", "pictures per side", "FAR", "points of TAR")
    return table("Differences of worst cases on the same albums, paired", columns, rows) if rows else None


def _coarse(found: AlbumResults, change: AlbumChange) -> bool:
    """A difference is as coarse as its coarser side."""
    sides = [one for space in (change.space, change.against) for one in found.worst(space, change.far)]
    return any(one.resolution == "coarse" and (one.first, one.second) == (change.first, change.second) for one in sides)
