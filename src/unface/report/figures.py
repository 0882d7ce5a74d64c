"""The few numbers that stand beside the verdict."""

from dataclasses import dataclass

from unface.auditing import Point, headline
from unface.auditing.schema import AuditResult, Kept, SpaceResult
from unface.auditing.words import factor, interval, percent, rate
from unface.report.cells import NOT_MEASURED, pairs


@dataclass(frozen=True)
class KeyFigure:
    """A number, how sure it is, and what it was counted on."""

    title: str
    value: str
    interval: str = ""
    counted: str = ""


def key_figures(result: AuditResult) -> list[KeyFigure]:
    """Worst case before and after each eraser, as multiples of chance, and what is left of usefulness.

    None where the audit is invalid: a number that looks like one would be quoted.
    """
    if not result.valid:
        return []
    head = headline(result.raw.points)
    found = [_leak("Raw vectors, worst case", result.raw, head)]
    found += [_leak(f"After {space.name}, worst case", space, head) for space in result.erased]
    if not result.erased:
        found.append(KeyFigure("After an eraser", NOT_MEASURED))
    found.append(_chance([result.raw, *result.erased], head))
    found += [_useful(space) for space in result.erased]
    return found


def _leak(title: str, space: SpaceResult, head: Point | None) -> KeyFigure:
    point = _like(space, head)
    if point is None or point.tar is None:
        return KeyFigure(title, "not resolved", counted="too few calibrate identities for the rates asked for")
    counted = f"{pairs(point.tar)} photo pairs of one person linked; {point.tar.identities:,} people; {_where(point)}"
    own = headline(space.points)
    if own is not None and own.tar is not None and own.k != point.k:
        counted += f"; {percent(own.tar.value)} at k = {own.k}, where this space leaks most"
    return KeyFigure(title, percent(point.tar.value), interval(point.tar.low, point.tar.high), counted)


def _chance(spaces: list[SpaceResult], head: Point | None) -> KeyFigure:
    names, values, ends, counted = [], [], [], []
    for space in spaces:
        point = _like(space, head)
        if point is None or point.tar is None or point.chance is None or point.achieved_far is None:
            continue
        names.append(space.name)
        values.append(factor(point.tar.value / point.chance))
        ends.append(f"[{factor(point.tar.low / point.chance)}, {factor(point.tar.high / point.chance)}]")
        counted.append(f"{space.name}: chance {percent(point.chance)}, {pairs(point.achieved_far)} strangers accepted")
    if not names:
        return KeyFigure("Times chance", "not resolved")
    title = "Times chance" if len(names) == 1 else f"Times chance: {' → '.join(names)}"
    return KeyFigure(title, f"{' → '.join(values)}\u00a0×", " → ".join(ends), "; ".join(counted))


def _like(space: SpaceResult, head: Point | None) -> Point | None:
    """The worst case of a space at the k and rate of the verdict, so that numbers beside each other compare."""
    return None if head is None else space.worst_at(head.k, head.far)


def _useful(space: SpaceResult) -> KeyFigure:
    title = f"Usefulness kept after {space.name}"
    if not space.utility:
        return KeyFigure(title, NOT_MEASURED)
    least: Kept = min(space.utility, key=lambda kept: kept.retained.value)
    which = f"{least.measure} on {least.on}, {least.queries:,} queries"
    if len(space.utility) > 1:
        which += f"; the least of {len(space.utility)} measures"
    return KeyFigure(title, percent(least.retained.value), interval(least.retained.low, least.retained.high), which)


def _where(point: Point) -> str:
    coarse = ", coarse" if point.resolution == "coarse" else ""
    return f"{point.probe}, k = {point.k}, FAR {rate(point.far)}{coarse}"
