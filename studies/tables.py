"""The tables of ``studies.erasure``: every space, probe and k, in Markdown: ``python -m studies.tables [AUDITS]``."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from studies.record import HOME, read_records
from studies.record_format import LeftOut, Measured, Record, RecordedSpace, Swept, Tar
from unface.auditing.words import interval, percent, rate


def main() -> None:
    """Print everything that a folder of audits holds, or what was recorded of the audits that pages show."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else HOME
    if not (records := read_records(folder)):
        raise SystemExit(f"{folder}: no audit in it; give what studies.erasure wrote")
    for line in every_probe(records):
        print(line)


def every_probe(records: Mapping[str, Record]) -> Iterator[str]:
    """A section for each audit."""
    for name, record in records.items():
        yield from ("", f"### {name}", "", record.verdict, "")
        yield from (*worst_table(record), "", *left_out_table(record), *probe_table(record), "", *sweep_table(record))


def worst_table(record: Record) -> Iterator[str]:
    """Spaces by k and rate; context-adjusted where it was measured; utility kept."""
    measures = list(dict.fromkeys(kept.measure for space in record.spaces for kept in space.utility))
    rates = (f"TAR % at FAR {rate(far)}" for far in record.fars)
    yield from heading(["space", "k", *rates, *(f"{measure} kept %" for measure in measures)])
    for space in record.spaces:
        for k in record.ks:
            cells = [cell(worst(space, k, far)) for far in record.fars]
            yield row([ranked(space), str(k), *cells, *(kept(space, measure) for measure in measures)])


def left_out_table(record: Record) -> Iterator[str]:
    """The worst case without pairs of like surroundings, the fewest left out first."""
    shown = [space for space in record.spaces if space.left_out]
    if not shown:
        return
    yield "Without mated pairs more alike around the face than all but 1 ‰, 10 ‰ and 100 ‰ of strangers:"
    yield ""
    yield from heading(["space", "k", *(f"TAR % at FAR {rate(far)}" for far in record.fars)])
    for space in shown:
        for k in record.ks:
            yield row([ranked(space), str(k), *(_left_out_cell(space, k, far) for far in record.fars)])
    yield ""


def probe_table(record: Record) -> Iterator[str]:
    """Every probe, raw and after each eraser that is no control."""
    shown = [space for space in record.spaces if not space.control]
    yield from heading(["k", "probe", *(f"{space.name}, FAR {rate(far)}" for far in record.fars for space in shown)])
    for k in record.ks:
        for probe in record.probes:
            points = [find(space, probe, k, far) for far in record.fars for space in shown]
            yield row([str(k), probe, *(cell(point) for point in points)])


def sweep_table(record: Record) -> Iterator[str]:
    """Ranks or numbers of identities, one line each."""
    for sweep in record.sweeps:
        yield f"Over {sweep.over}: k = {sweep.k}, FAR {rate(sweep.far)}, {sweep.resolution}"
        yield ""
        yield from swept(sweep.points)
        yield ""


def swept(points: Iterable[Swept]) -> Iterator[str]:
    """One sweep."""
    yield from heading(["method", "rank", "fit identities", "TAR %", "× chance", "kept"])
    for point in points:
        useful = ", ".join(f"{measure} {percent(share)}" for measure, share in point.kept.items())
        counts = [str(point.rank), f"{point.fit_identities:,}"]
        yield row([point.method, *counts, tar_of(point.tar), f"{point.tar.times_chance:,.0f}", useful])


def worst(space: RecordedSpace, k: int, far: float) -> Measured | None:
    """The point that speaks for a space."""
    return next((p for p in space.points if p.worst and (p.k, p.far) == (k, far)), None)


def left_out(space: RecordedSpace, k: int, far: float) -> list[LeftOut]:
    """The fewest left out first."""
    return [left for left in space.left_out[::-1] if (left.k, left.far) == (k, far)]


def mark(space: RecordedSpace, k: int, far: float) -> str:
    """~ where the rate is coarse."""
    point = worst(space, k, far)
    return "" if point is None else point.mark


def _left_out_cell(space: RecordedSpace, k: int, far: float) -> str:
    shares = ", ".join(bare(left.accepted / left.mated) for left in left_out(space, k, far))
    return f"{mark(space, k, far)}{shares}" if shares else "–"


def find(space: RecordedSpace, probe: str, k: int, far: float) -> Measured | None:
    """One probe's point."""
    return next((p for p in space.points if (p.probe, p.k, p.far) == (probe, k, far)), None)


def cell(point: Measured | None) -> str:
    """Value, interval, multiple of chance; context-adjusted behind a slash."""
    if point is None or point.adjusted is None:
        return plain_cell(point)
    return f"{plain_cell(point)} / {bare(point.adjusted.value)} {ends(*point.adjusted[1:])}"


def plain_cell(point: Measured | None) -> str:
    """Value, interval, multiple of chance."""
    if point is None or point.tar is None:
        return "refused"
    return f"{point.mark}{tar_of(point.tar)} ×{point.tar.times_chance:,.0f}"


def tar_of(tar: Tar) -> str:
    """Value and interval."""
    return f"{bare(tar.value)} {ends(tar.low, tar.high)}"


def ends(low: float, high: float) -> str:
    """An interval that no line breaks in two."""
    return unbroken(interval(low, high))


def unbroken(text: str) -> str:
    """With spaces that no line breaks at."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def bare(share: float) -> str:
    """In percent, without saying so."""
    return percent(share).removesuffix(" %")


def ranked(space: RecordedSpace) -> str:
    """With its rank."""
    return f"{space.name} {space.rank}" if space.rank else space.name


def kept(space: RecordedSpace, measure: str) -> str:
    """The share of a measure that is retained."""
    found = next((one.kept for one in space.utility if one.measure == measure), None)
    if found is None:
        return "100"
    value, low, high = (100 * end for end in found)
    return f"{value:.0f} {unbroken(f'[{low:.0f}, {high:.0f}]')}"


def heading(cells: list[str]) -> list[str]:
    """The first two lines of a Markdown table."""
    return [row(cells), row(["---"] * len(cells))]


def row(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
