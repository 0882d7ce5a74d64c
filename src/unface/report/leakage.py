"""TAR as tables: the worst case of each space first, then every probe, then what was put to the controls."""

from unface.auditing.schema import AuditResult, ContextAdjusted, Point, SpaceResult
from unface.auditing.words import count, interval, percent, rate
from unface.report.cells import NOT_MEASURED, Cell, Table, bounded, multiple, pairs, point_tar, table


def worst_tables(result: AuditResult) -> list[Table]:
    """One table for each rate: spaces by k, the worst case in each cell."""
    return [_worst_at(result, far) for far in result.protocol.fars]


def probe_tables(result: AuditResult) -> list[tuple[str, Table]]:
    """Every probe of every space."""
    return [(space.name, _probes(space)) for space in result.spaces]


def context_table(result: AuditResult) -> Table | None:
    """The worst cases with the shoot taken out of them."""
    rows = [
        (space.name, f"{point.k}", rate(point.far), point_tar(point), *_adjusted(point.context_adjusted))
        for space in result.spaces
        for point in space.points
        if point.context_adjusted
    ]
    if not rows:
        return None
    columns = ("space", "k", "FAR", "TAR", "TAR, surroundings alike", "accepted pairs that share them", "overlap")
    return table("Worst case with mated pairs reweighted to the surroundings of strangers", columns, rows)


def _adjusted(found: ContextAdjusted) -> tuple[str, str, str]:
    value = "cannot be told apart"
    if found.value is not None:
        value = f"{percent(found.value)} {interval(found.low, found.high)}"
    suspects = percent(found.suspects.value) if found.suspects else "no pair accepted"
    return value, suspects, percent(found.overlap)


def control_table(result: AuditResult) -> Table:
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
    return table("Identities shuffled among images", ("probe", "k", "FAR", "TAR", "chance", "outcome"), rows)


def _worst_at(result: AuditResult, far: float) -> Table:
    rows = []
    for space in result.spaces:
        named = Cell(space.name, _kind(space))
        rows.append((named, *(_worst_cell(space, k, far) for k in result.protocol.ks)))
    columns = ["space"]
    for k in result.protocol.ks:
        counted = next((p.tar for p in result.raw.points if p.k == k and p.far == far and p.tar), None)
        columns.append(f"k = {k}" + (f", of {counted.denominator:,} pairs" if counted else ""))
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


def _probes(space: SpaceResult) -> Table:
    columns = ("probe", "k", "FAR", "TAR", "linked pairs", "FAR achieved", "chance", "times chance", "effective n")
    return table(f"Every probe on {space.name}", columns, [_probe_row(point) for point in space.points])


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
        f"{point.tar.effective_n:,.0f}",
    )
