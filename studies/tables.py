"""The tables of ``studies.erasure``: worst case of every space, in Markdown, from the audits alone."""

import sys
from collections.abc import Iterator
from pathlib import Path

from unface.auditing import AuditResult, load_audit
from unface.auditing.schema import Kept, Point, SpaceResult, SweepPoint
from unface.auditing.words import interval, percent, rate


def main() -> None:
    """Print everything that a folder of audits holds."""
    for path in sorted(Path(sys.argv[1]).glob("*/audit.json")):
        result = load_audit(path)
        print(f"\n### {path.parent.name}\n\n{result.verdict}\n")
        for line in (*worst_table(result), "", *probe_table(result), "", *sweep_table(result)):
            print(line)


def worst_table(result: AuditResult) -> Iterator[str]:
    """Spaces by k and rate; context-adjusted where it was measured; utility kept."""
    fars = result.protocol.fars
    measures = list(dict.fromkeys(kept.measure for space in result.spaces for kept in space.utility))
    header = ["space", "k", *(f"TAR % at FAR {rate(far)}" for far in fars), *(f"{m} kept %" for m in measures)]
    yield row(header)
    yield row(["---"] * len(header))
    for space in result.spaces:
        for k in result.protocol.ks:
            cells = [cell(worst(space, k, far)) for far in fars]
            yield row([name(space), str(k), *cells, *(kept(space, measure) for measure in measures)])


def probe_table(result: AuditResult) -> Iterator[str]:
    """Every probe, raw and after each eraser that is no control."""
    fars = result.protocol.fars
    shown = [space for space in result.spaces if space.erasure is None or not space.erasure.control]
    yield row(["k", "probe", *(f"{space.name}, FAR {rate(far)}" for far in fars for space in shown)])
    yield row(["---"] * (2 + len(fars) * len(shown)))
    for k in result.protocol.ks:
        for probe in result.protocol.probes:
            points = [find(space, probe, k, far) for far in fars for space in shown]
            yield row([str(k), probe, *(cell(point) for point in points)])


def sweep_table(result: AuditResult) -> Iterator[str]:
    """Ranks or numbers of identities, one line each."""
    for sweep in result.sweeps:
        yield f"Over {sweep.over}: k = {sweep.k}, FAR {rate(sweep.far)}, {sweep.resolution}"
        yield ""
        yield row(["method", "rank", "fit identities", "TAR %", "× chance", "kept"])
        yield row(["---"] * 6)
        yield from (row(swept(point)) for point in sweep.points)
        yield ""


def swept(point: SweepPoint) -> list[str]:
    """The cells of one point of a sweep."""
    tar = f"{percent(point.tar.value).removesuffix(' %')} {interval(point.tar.low, point.tar.high)}"
    useful = ", ".join(f"{one.measure} {percent(one.retained.value)}" for one in point.utility)
    return [point.method, str(point.rank), str(point.fit_identities), tar, f"{point.times_chance:,.0f}", useful]


def worst(space: SpaceResult, k: int, far: float) -> Point | None:
    """The point that speaks for a space."""
    return next((p for p in space.points if p.worst and (p.k, p.far) == (k, far)), None)


def find(space: SpaceResult, probe: str, k: int, far: float) -> Point | None:
    """One probe's point."""
    return next((p for p in space.points if (p.probe, p.k, p.far) == (probe, k, far)), None)


def cell(point: Point | None) -> str:
    """Value, interval, multiple of chance; context-adjusted behind a slash."""
    if point is None or point.tar is None or point.times_chance is None:
        return "refused"
    coarse = "~" if point.resolution == "coarse" else ""
    text = f"{coarse}{percent(point.tar.value).removesuffix(' %')} {interval(point.tar.low, point.tar.high)}"
    text += f" ×{point.times_chance:,.0f}"
    adjusted = point.context_adjusted
    if adjusted is not None and adjusted.value is not None:
        text += f" / {percent(adjusted.value).removesuffix(' %')} {interval(adjusted.low, adjusted.high)}"
    return text


def name(space: SpaceResult) -> str:
    """With its rank."""
    return space.name if space.erasure is None else f"{space.name} {space.erasure.rank}"


def kept(space: SpaceResult, measure: str) -> str:
    """The share of a measure that is retained."""
    found: Kept | None = next((one for one in space.utility if one.measure == measure), None)
    if found is None:
        return "100"
    low, high = (100 * end for end in (found.retained.low, found.retained.high))
    return f"{100 * found.retained.value:.0f} [{low:.0f}, {high:.0f}]"


def row(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
