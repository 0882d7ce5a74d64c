"""Leakage on the page: the worst case of each space, every probe, the shoot taken out, and curves over all rates."""

import math

import altair as alt

from unface.page.charts import GREY, Figure, Look, Rows, colour, dash, data, draw, looks
from unface.page.tables import NOT_MEASURED, Cell, Table, bounded, multiple, pairs, point_tar, table
from unface.page.templates import render
from unface.result.audit import AuditResult, Curve, Point, SpaceResult
from unface.result.parts import Section
from unface.result.words import count, percent, rate


def sections(result: AuditResult) -> list[Section | str]:
    """What the vectors reveal, then the same over all rates."""
    context, curves = _context_table(result), _curve_figures(result)
    body = render(
        "unface.auditing.leakage:section.jinja",
        worst=_worst_tables(result),
        probes=_probe_tables(result),
        context=context,
    )
    found: list[Section | str] = [Section("leakage", "What the vectors reveal", body, order=1)]
    if curves:
        drawn = render("unface.auditing.leakage:curves.jinja", curves=curves)
        found.append(Section("curves", "Over all rates", drawn, order=3))
    else:
        found.append("curves over FAR")
    controls = render("unface.auditing.leakage:controls.jinja", result=result, control=_control_table(result))
    found.append(Section("controls", "Controls on the audit itself", controls, order=3))
    if context is None:
        found.append("same-shoot pairs apart from identity")
    return found


def _worst_tables(result: AuditResult) -> list[Table]:
    """One table for each rate: spaces by k, the worst case in each cell."""
    return [_worst_at(result, far) for far in result.protocol.far]


def _probe_tables(result: AuditResult) -> list[tuple[str, Table]]:
    """Every probe of every space."""
    return [(space.name, _probes(space, over_people=not result.curated.equal)) for space in result.spaces]


def _context_table(result: AuditResult) -> Table | None:
    """The worst cases with the shoot taken out of them."""
    found = [(space, point) for space in result.spaces for point in space.points if point.context_adjusted]
    if not found:
        return None
    apart = any(point.context_adjusted and point.context_adjusted.apart for _, point in found)
    columns = ["space", "k", "FAR", "TAR", "TAR, surroundings alike", "accepted pairs that share them", "overlap"]
    if apart:
        columns.insert(4, "TAR, different groups")
    rows: list[list[Cell | str]] = []
    for space, point in found:
        adjusted = point.context_adjusted
        assert adjusted is not None
        rows.append([space.name, f"{point.k}", rate(point.far), point_tar(point)])
        if apart:
            rows[-1].append(Cell(bounded(adjusted.apart), pairs(adjusted.apart)) if adjusted.apart else "–")
        suspects = percent(adjusted.suspects.value) if adjusted.suspects else "no pair accepted"
        rows[-1] += [adjusted.words, suspects, percent(adjusted.overlap)]
    return table("Worst case with mated pairs reweighted to the surroundings of strangers", columns, rows)


def _control_table(result: AuditResult) -> Table:
    """Probes on shuffled identities, which may reach chance and no more."""
    rows = [
        (
            point.probe,
            f"{point.k}",
            rate(point.far),
            Cell(bounded(point.tar), pairs(point.tar)),
            percent(point.chance),
            Cell("at chance" if point.passed else "above chance", strong=not point.passed),
        )
        for point in result.controls.shuffled_identities
    ]
    return table("Self-test: identities shuffled among images", ("probe", "k", "FAR", "TAR", "chance", "outcome"), rows)


def _worst_at(result: AuditResult, far: float) -> Table:
    rows = []
    for space in result.spaces:
        named = Cell(space.name, _kind(space))
        rows.append((named, *(_worst_cell(space, k, far) for k in result.protocol.k)))
    columns = ["space"]
    for k in result.protocol.k:
        counted = next((p.pairs for p in result.raw.points if p.k == k and p.far == far and p.tar), None)
        columns.append(f"k = {result.k_words(k)}" + (f", of {counted:,} pairs" if counted else ""))
    return table(f"Worst-case TAR at FAR {rate(far)}", columns, rows)


def _worst_cell(space: SpaceResult, k: int, far: float) -> Cell:
    worst = space.worst_at(k, far)
    if worst is None or worst.times_chance is None:
        at = [point for point in space.points if (point.k, point.far) == (k, far)]
        needed = next((point.identities_needed for point in at if point.identities_needed), None)
        return Cell("not resolved" if at else NOT_MEASURED, f"{needed:,} calibrate identities needed" if needed else "")
    return Cell(point_tar(worst), f"{multiple(worst.times_chance)} chance, {worst.probe}")


def _kind(space: SpaceResult) -> str:
    if space.erasure is None:
        return "as they came"
    erasure = space.erasure
    return f"{'control, ' if erasure.control else ''}{erasure.rank} of {count(erasure.dim, 'dimension')} removed"


def _probes(space: SpaceResult, *, over_people: bool) -> Table:
    columns = ("probe", "k", "FAR", "TAR", "linked pairs", "FAR achieved", "chance", "times chance", "effective n")
    rows = [_probe_row(point) for point in space.points]
    if not over_people:  # both are the same
        return table(f"Every probe on {space.name}", columns, rows)
    means = ["–" if point.tar_over_people is None else percent(point.tar_over_people) for point in space.points]
    rows = [(*row, mean) for row, mean in zip(rows, means, strict=True)]
    return table(f"Every probe on {space.name}", (*columns, "TAR averaged over people"), rows)


def _probe_row(point: Point) -> tuple[Cell | str, ...]:
    named = Cell(point.probe, "worst case" if point.worst else "", strong=point.worst)
    head = (named, f"{point.k}", rate(point.far), Cell(point_tar(point), strong=point.worst))
    if point.tar is None or point.chance is None or point.times_chance is None or point.achieved_far is None:
        return (*head, "–", "–", "–", "–", "–")
    achieved = point.achieved_far
    return (
        *head,
        pairs(point.tar),
        Cell(rate(float(f"{achieved.value:.2g}")), pairs(achieved)),
        percent(point.chance),
        multiple(point.times_chance),
        "–" if point.tar.effective_n is None else f"{point.tar.effective_n:,.0f}",
    )


def _curve_figures(result: AuditResult) -> list[Figure]:
    """One chart for each k: the worst case of each space at the lowest rate, and the line of chance."""
    styles = looks(result)
    by_k = [(k, _worst_curves(result, k)) for k in result.protocol.k]
    return [_figure(k, shown, styles) for k, shown in by_k if any(_positive(curve) for _, curve in shown)]


def _worst_curves(result: AuditResult, k: int) -> list[tuple[SpaceResult, Curve]]:
    curves = []
    for space in result.spaces:
        worst = [point for point in space.points if point.worst and point.k == k]
        probe = min(worst, key=lambda point: point.far).probe if worst else None
        curves += [(space, curve) for curve in space.curves if curve.k == k and curve.probe == probe]
    return curves


def _positive(curve: Curve) -> list[tuple[float, float]]:
    return [(far, tar) for far, tar in zip(curve.far, curve.tar, strict=True) if far > 0 and tar > 0]


def _figure(k: int, shown: list[tuple[SpaceResult, Curve]], styles: dict[str, Look]) -> Figure:
    used = [styles[space.name] for space, _ in shown]
    drawn = [point for _, curve in shown for point in _positive(curve)]
    rows: Rows = [
        {"look": space.name, "far": far, "tar": tar} for space, curve in shown for far, tar in _positive(curve)
    ]
    left, right = min(far for far, _ in drawn), max(far for far, _ in drawn)
    low = min(0.1, *(tar for _, tar in drawn))  # room for marks beside curves that start high
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
        axis=alt.Axis(values=_marks(low, 1), format="~%"),
    )
    # The diagonal is drawn from where it enters the chart.
    start = max(left, low)
    diagonal = data([{"far": start, "tar": start}, {"far": right, "tar": right}])
    layers = [diagonal.mark_line(color=GREY, strokeWidth=1, opacity=0.8).encode(x=far, y=tar)] if start < right else []
    layers.append(data(rows).mark_line(strokeWidth=1.8).encode(x=far, y=tar, color=colour(used), strokeDash=dash(used)))
    ends = "; ".join(f"{space.name} reaches {percent(_tar_at(curve, 1e-3))} at FAR 1e-3" for space, curve in shown)
    label = f"TAR over FAR at k = {k}, both logarithmic, above the line of chance where TAR equals FAR: {ends}"
    return Figure(f"k = {k}", draw(layers, label), tuple(used), _curve_numbers(k, shown, left))


def _curve_numbers(k: int, shown: list[tuple[SpaceResult, Curve]], left: float) -> Table:
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


def _marks(low: float, high: float) -> list[float]:
    """Decades; where they are fewer than three, halves and fifths too."""
    decades = _decades(low, high)
    between = [step * 10.0**power for power in range(math.floor(math.log10(low)), 1) for step in (1, 2, 5)]
    return decades if len(decades) > 2 else [one for one in between if low * (1 - 1e-9) <= one <= high * (1 + 1e-9)]
