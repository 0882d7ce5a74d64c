"""Tables and single figures of ``studies.erasure``, in Markdown, from what was recorded of its audits.

    python -m studies.tables [AUDITS]

prints every space, probe and k of a folder of audits, or of the recorded ones. ``docs/figures.py`` gives the other
functions to the templates of pages. An audit is named <encoder>_<set>_<way of fitting>; names may be patterns where
several audits are meant.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from studies.measured import heading, row
from studies.record import HOME, Difference, LeftOut, Measured, Record, RecordedSpace, Swept, Tar, read_records
from unface import UnfaceError
from unface.probe import PAPER_PROBES
from unface.result.words import interval, percent, rate

Records = Mapping[str, Record]
Found = TypeVar("Found")

ENCODERS = (
    *("sscd-int8", "sscd-distilled", "mobilenet-v2", "efficientnet-lite0", "augnet-r50", "dinov2-s-focus"),
    *("sface", "arcface-mbf", "edgeface-s", "mobilefacenet-tflite", "dlib", "facenet"),
)
GENERAL = ENCODERS[:6]
SETS = ("celeba20", "celeba5", "lfw", "celeba9k")
WAYS = {
    "apart": "within, roles apart",
    "shared": "within, roles shared (paper)",
    "beyond": "within, roles apart, all it spans gone",
    "on-celeba5": "on celeba5",
    "on-celeba9k": "on celeba9k",
}
CUTS = 3
SPACES = ("raw", "isp", "leace", "random", "pca")
HEADER = ["encoder, set, erasers fitted", "rank", "raw", "ISP", "LEACE", "random", "label-free PCA"]


def main() -> None:
    """Print a section for each audit."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else HOME
    if not (records := read_records(folder)):
        raise SystemExit(f"{folder}: no audit in it; give what studies.erasure wrote")
    for line in audit_sections(records):
        print(line)


# Everything about one audit.


def audit_sections(records: Records) -> Iterator[str]:
    """A section for each audit."""
    for name, record in records.items():
        yield from (f"### {name}", "", record.verdict, "")
        yield from (*spaces_table(record), "", *left_out_table(record), *probes_table(record), "")
        for sweep in record.sweeps:
            yield from (f"Over {sweep.over}: k = {sweep.k}, FAR {rate(sweep.far)}, {sweep.resolution}", "")
            yield from (*swept_table(sweep.points, sweep.far), "")


def spaces_table(record: Record) -> Iterator[str]:
    """Spaces by k and rate; context-adjusted where it was measured; utility kept."""
    measures = list(dict.fromkeys(kept.measure for space in record.spaces for kept in space.utility))
    rates = (f"TAR % at FAR {rate(far)}" for far in record.fars)
    yield from heading(["space", "k", *rates, *(f"{measure} kept %" for measure in measures)])
    for space in record.spaces:
        for k in record.ks:
            cells = [cell(space.worst(k, far)) for far in record.fars]
            yield row([_ranked(space), str(k), *cells, *(kept_cell(space, measure) for measure in measures)])


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
            cells = []
            for far in record.fars:
                shares = ", ".join(bare(left.accepted / left.mated) for left in space.fewer_pairs(k, far))
                cells.append(f"{_mark(space.worst(k, far))}{shares}" if shares else "–")
            yield row([_ranked(space), str(k), *cells])
    yield ""


def probes_table(record: Record) -> Iterator[str]:
    """Every probe, raw and after each eraser that is no control."""
    shown = [space for space in record.spaces if not space.control]
    yield from heading(["k", "probe", *(f"{space.name}, FAR {rate(far)}" for far in record.fars for space in shown)])
    for k in record.ks:
        for probe in record.probes:
            points = [space.point(probe, k, far) for far in record.fars for space in shown]
            yield row([str(k), probe, *(cell(point) for point in points)])


def swept_table(points: Iterable[Swept], far: float) -> Iterator[str]:
    """Ranks or numbers of identities, one line each."""
    yield from heading(["method", "rank", "fit identities", "TAR %", "× chance", "kept"])
    for point in points:
        useful = ", ".join(f"{measure} {percent(share)}" for measure, share in point.kept.items())
        counts = [str(point.rank), f"{point.fit_identities:,}"]
        yield row([point.method, *counts, tar_cell(point.tar), multiple(point.tar, far), useful])


# One table over many audits.


def worst_table(records: Records, far: float, *audits: str) -> Iterator[str]:
    """The worst case at one rate."""
    yield from heading(HEADER)
    for label, record in ordered(matching(records, *audits), ENCODERS):
        if far in record.fars:
            yield row([label, str(record.rank), *(plain_cell(record.worst(space, far)) for space in SPACES)])


def within_and_elsewhere(records: Records, faces: str, far: float) -> Iterator[str]:
    """As the paper sets its tables: a line for each encoder; ISP fitted within, and on celeba5 beside both controls."""
    shown = {
        ("apart", "raw"): "raw",
        ("apart", "isp"): "ISP, within",
        ("shared", "raw"): "raw, roles shared",
        ("shared", "isp"): "ISP, within, roles shared",
        ("on-celeba5", "isp"): "ISP, on celeba5",
        ("on-celeba5", "random"): "random, on celeba5",
        ("on-celeba5", "pca"): "label-free PCA, on celeba5",
    }
    yield from heading(["encoder", "ranks", *shown.values()])
    for encoder in ENCODERS:
        of = {way: records.get(f"{encoder}_{faces}_{way}") for way in ("apart", "shared", "on-celeba5")}
        ranks = ", ".join(str(record.rank) if record else "–" for record in of.values())
        cells = (
            plain_cell(record.worst(space, far)) if (record := of[way]) and far in record.fars else "–"
            for way, space in shown
        )
        yield row([encoder, unbroken(ranks), *cells])


def adjusted_table(records: Records, far: float, *audits: str) -> Iterator[str]:
    """The worst case of general encoders with mated pairs reweighted to surroundings as alike as strangers'."""
    yield from heading(HEADER)
    for label, record in ordered(matching(records, *audits), GENERAL):
        points = [record.worst(space, far) for space in SPACES]
        if any(point is not None and point.adjusted is not None for point in points):
            yield row([label, str(record.rank), *map(_adjusted_cell, points)])


def left_out_overview(records: Records, far: float, *audits: str) -> Iterator[str]:
    """Of all mated pairs, and without those more alike around the face than all but so many of strangers."""
    columns = [f"{space}, {which}" for space in ("raw", "ISP") for which in ("all", "1 ‰", "10 ‰", "100 ‰")]
    yield from heading(["encoder, set, erasers fitted", *columns, "mated pairs left %"])
    for label, record in ordered(matching(records, *audits), GENERAL):
        raw, isp = (_all_and_left_out(record, space, far) for space in ("raw", "isp"))
        if raw and isp:
            left = ", ".join(f"{100 * tar.mated / raw[0].mated:.0f}" for tar in raw[1:])
            mark = _mark(record.worst("raw", far))
            yield row([label, *(f"{mark}{bare(tar.accepted / tar.mated)}" for tar in (*raw, *isp)), left])


def kept_table(records: Records, measure: str, *audits: str) -> Iterator[str]:
    """What is kept of one measure of utility."""
    yield from heading(["encoder, set, erasers fitted", "rank", "raw %", "ISP kept %", *HEADER[4:]])
    for label, record in ordered(matching(records, *audits), GENERAL):
        for retained in record.spaces[1].utility:
            if retained.measure == measure:
                shares = [kept_cell(record.space(space), measure) for space in SPACES[1:]]
                yield row([label, str(record.rank), f"{100 * retained.raw:.1f}", *shares])


def sweep_tables(records: Records, audit: str, over: str) -> Iterator[str]:
    """Over ranks, or over identities."""
    for sweep in _there(records.get(audit), audit).sweeps:
        if sweep.over == over:
            yield from (f"{audit}: k = {sweep.k}, FAR {rate(sweep.far)}, {sweep.resolution}", "")
            yield from (*swept_table(sweep.points, sweep.far), "")


def rank_table(records: Records, audit: str) -> Iterator[str]:
    """A sweep over ranks with its methods side by side, and what each keeps of k-NN and of a linear probe."""
    (sweep,) = (sweep for sweep in records[audit].sweeps if sweep.over == "rank")
    points = {(point.method, point.rank): point for point in sweep.points}
    methods = {"isp": "ISP", "leace": "LEACE", "pca": "label-free PCA", "random": "random"}
    yield from heading(["rank", *(title for name in methods.values() for title in (name, "k-NN, linear kept"))])
    yield row(["0 (raw)", _fine_cell(points["raw", 0].tar, sweep.far), "100, 100", *[""] * (2 * len(methods) - 2)])
    for rank in sorted({rank for _, rank in points if rank}):
        cells = []
        for point in (points[method, rank] for method in methods):
            useful = ", ".join(f"{100 * point.kept[measure]:.0f}" for measure in ("knn", "linear"))
            cells += [_fine_cell(point.tar, sweep.far), useful]
        yield row([str(rank), *cells])


def against_table(records: Records, other: str) -> Iterator[str]:
    """How often ISP and LEACE leave less, or more, than a control of equal rank, with an interval that excludes 0."""
    yield from heading(["eraser", "FAR", "leaves less", "inconclusive", "leaves more"])
    for eraser in ("isp", "leace"):
        for far in (1e-3, 1e-4):
            all_of_them, less, more = (int(count(records, eraser, other, far)) for count in (compared, below, above))
            yield row([eraser, rate(far), str(less), str(all_of_them - less - more), str(more)])


# Single figures, as sentences show them.


def tar(records: Records, audit: str, space: str, far: float) -> str:
    """Worst-case TAR in percent."""
    return bare(_tar(records, audit, space, far).value)


def worst_tar(records: Records, audit: str, space: str, far: float) -> float:
    """The same as a share."""
    return _tar(records, audit, space, far).value


def tar_interval(records: Records, audit: str, space: str, far: float) -> str:
    """The same with its interval."""
    return tar_cell(_tar(records, audit, space, far))


def times_chance(records: Records, audit: str, space: str, far: float) -> str:
    """As a multiple of chance."""
    return multiple(_tar(records, audit, space, far), far)


def tar_adjusted(records: Records, audit: str, space: str, far: float) -> str:
    """Adjusted for context, in percent."""
    return bare(_adjusted(records, audit, space, far))


def removed(records: Records, audit: str, space: str, far: float) -> str:
    """The share of the raw TAR that is gone, in percent."""
    return _gone(_tar(records, audit, "raw", far).value, _tar(records, audit, space, far).value)


def removed_adjusted(records: Records, audit: str, space: str, far: float) -> str:
    """The same of the TAR adjusted for context."""
    return _gone(_adjusted(records, audit, "raw", far), _adjusted(records, audit, space, far))


def same_shoot(records: Records, audit: str, space: str, far: float) -> str:
    """The share of TAR that is gone when it is adjusted for context, in percent."""
    return _gone(_tar(records, audit, space, far).value, _adjusted(records, audit, space, far))


def lead(records: Records, audit: str, eraser: str, other: str, far: float) -> str:
    """By how many points an eraser leaves less than another space, with the paired interval."""
    change = _there(difference(_there(records.get(audit), audit), eraser, other, far), audit, eraser, other, far)
    value, high, low = (f"−{bare(end)}" if end > 0 else bare(-end) for end in change.points)
    return f"{value} [{low}, {high}]"


def compared(records: Records, eraser: str, other: str, far: float, *audits: str) -> str:
    """How many paired differences there are."""
    return str(len(differences(matching(records, *audits), eraser, other, far)))


def below(records: Records, eraser: str, other: str, far: float, *audits: str) -> str:
    """How many of them have an interval below zero."""
    return str(sum(one.points.high < 0 for one in differences(matching(records, *audits), eraser, other, far)))


def above(records: Records, eraser: str, other: str, far: float, *audits: str) -> str:
    """How many of them have an interval above zero."""
    return str(sum(one.points.low > 0 for one in differences(matching(records, *audits), eraser, other, far)))


def chosen(records: Records, far: float, *probes: str) -> str:
    """In how many worst cases of the whole panel, raw, after ISP and after LEACE, one of these probes is chosen."""
    points = [record.worst(space, far) for record, space in _cases(records)]
    return str(sum(point is not None and (not probes or point.probe in probes) for point in points))


def weaker(records: Records, far: float, probe: str, other: str) -> str:
    """In how many of these cases a probe accepts less than another, at the same k."""
    count = 0
    for record, space in _cases(records):
        one, two = (record.space(space).point(name, record.k, far) for name in (probe, other))
        if one is not None and two is not None and one.tar is not None and two.tar is not None:
            count += one.tar.value < two.tar.value
    return str(count)


def kept(records: Records, measure: str, space: str, *audits: str) -> str:
    """The least and the most of a measure that is kept, in percent."""
    some = matching(records, *audits).values()
    utility = [one for record in some for one in record.space(space).utility]
    return _range([f"{100 * one.kept.value:.0f}" for one in utility if one.measure == measure], measure, *audits)


def directions(records: Records, audits: str) -> str:
    """Principal components of the people fitted on that have 1 % of the first singular value or more."""
    some = matching(records, audits).items()
    return _range([str(_there(record.space("pca").telling, name)) for name, record in some], audits)


def identities(records: Records, audit: str, role: str) -> str:
    """In one role; ``fit`` is who erasers were fitted on, wherever they came from."""
    record = _there(records.get(audit), audit)
    return f"{record.spaces[1].fit_identities if role == 'fit' else record.identities[role]:,}"


def rank(records: Records, audit: str) -> str:
    """How many dimensions were removed."""
    return str(_there(records.get(audit), audit).rank)


def last_direction(records: Records, audit: str, space: str) -> str:
    """Singular value of the last direction removed, in percent of the first."""
    return bare(_there(_there(records.get(audit), audit).space(space).last_direction, audit, space))


def shuffled(records: Records) -> str:
    """Measurements with identities shuffled, over all audits."""
    return str(sum(record.shuffled for record in records.values()))


def at_chance(records: Records) -> str:
    """How many of them were at chance."""
    return str(sum(record.shuffled_at_chance for record in records.values()))


# Which audits, and how their numbers are written.


def ordered(records: Records, encoders: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Records with their labels, as the tables list them."""
    known = {f"{encoder}_{faces}_{way}" for encoder in ENCODERS for faces in SETS for way in WAYS}
    if unknown := set(records) - known:
        raise UnfaceError(f"studies/tables.py: no place in the tables for {', '.join(sorted(unknown))}; name them")
    for encoder in encoders:
        for faces in SETS:
            for way, words in WAYS.items():
                if record := records.get(f"{encoder}_{faces}_{way}"):
                    yield f"{encoder}, {faces}, {words}", record


def matching(records: Records, *audits: str) -> Records:
    """Those whose names match one of the patterns, all if there are none; a pattern that matches none is a mistake."""
    patterns = audits or ("*",)
    if idle := [one for one in patterns if not any(fnmatch(name, one) for name in records)]:
        raise UnfaceError(f"docs/measured/erasure: no audit is named {idle[0]}")
    return {name: record for name, record in records.items() if any(fnmatch(name, one) for one in patterns)}


def differences(records: Records, eraser: str, other: str, far: float) -> list[Difference]:
    """Of every audit that has them; not of what is left when all is gone."""
    some = {name: record for name, record in records.items() if not name.endswith("_beyond")}
    changes = (difference(record, eraser, other, far) for _, record in ordered(some, ENCODERS))
    return [change for change in changes if change is not None]


def difference(record: Record, eraser: str, other: str, far: float) -> Difference | None:
    """Of one audit."""
    return next((one for one in record.space(eraser).changes if (one.against, one.far) == (other, far)), None)


def cell(point: Measured | None) -> str:
    """Value, interval, multiple of chance; context-adjusted behind a slash."""
    if point is None or point.adjusted is None:
        return plain_cell(point)
    return f"{plain_cell(point)} / {bare(point.adjusted.value)} {_ends(*point.adjusted[1:])}"


def plain_cell(point: Measured | None) -> str:
    """Value, interval, multiple of chance."""
    if point is None or point.tar is None:
        return "refused"
    return f"{point.mark}{tar_cell(point.tar)} ×{multiple(point.tar, point.far)}"


def multiple(tar: Tar, far: float) -> str:
    """Of chance, which is the target FAR; audits of before 0.2.0 divided by the achieved one, and recorded that."""
    return f"{tar.value / far:,.0f}"


def tar_cell(tar: Tar) -> str:
    """Value and interval."""
    return f"{bare(tar.value)} {_ends(tar.low, tar.high)}"


def kept_cell(space: RecordedSpace, measure: str) -> str:
    """The share of a measure that is kept."""
    for retained in space.utility:
        if retained.measure == measure:
            value, low, high = (f"{100 * end:.0f}" for end in retained.kept)
            return f"{value} {unbroken(f'[{low}, {high}]')}"
    return "100"


def bare(share: float) -> str:
    """In percent, without the sign."""
    return percent(share).removesuffix(" %")


def unbroken(text: str) -> str:
    """With spaces that no line breaks at."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _adjusted_cell(point: Measured | None) -> str:
    if point is None or point.tar is None or point.adjusted is None:
        return "–"
    return f"{point.mark}{bare(point.adjusted.value)} {_ends(*point.adjusted[1:])}"


def _fine_cell(tar: Tar, far: float) -> str:
    value, low, high = (f"{100 * share:.2f}" for share in (tar.value, tar.low, tar.high))
    return f"{value} {unbroken(f'[{low}, {high}]')} ×{multiple(tar, far)}"


def _ends(low: float, high: float) -> str:
    return unbroken(interval(low, high))


def _mark(point: Measured | None) -> str:
    return "" if point is None else point.mark


def _ranked(space: RecordedSpace) -> str:
    return f"{space.name} {space.rank}" if space.rank else space.name


def _range(numbers: list[str], *words: str) -> str:
    least, most = min(_there(numbers, *words), key=int), max(numbers, key=int)
    return least if least == most else f"{least} to {most}"


def _gone(whole: float, rest: float) -> str:
    return f"{100 * (1 - rest / whole):.0f}"


def _tar(records: Records, audit: str, space: str, far: float) -> Tar:
    point = _there(_there(records.get(audit), audit).worst(space, far), audit, space, far)
    return _there(point.tar, audit, space, far)


def _adjusted(records: Records, audit: str, space: str, far: float) -> float:
    point = _there(_there(records.get(audit), audit).worst(space, far), audit, space, far)
    return _there(point.adjusted, audit, space, far).value


def _all_and_left_out(record: Record, space: str, far: float) -> list[Tar | LeftOut]:
    """Of all pairs, then with ever more of them left out; nothing where surroundings or the rate are not measured."""
    point = record.worst(space, far)
    fewer = record.space(space).fewer_pairs(record.k, far)
    if not fewer or point is None or point.tar is None:
        return []
    if len(fewer) != CUTS:
        raise UnfaceError(f"{record.audit}: {space} was measured with {len(fewer)} cuts of surroundings, not {CUTS}")
    return [point.tar, *fewer]


def _cases(records: Records) -> Iterator[tuple[Record, str]]:
    """Spaces that every probe attacked; audits that differ in who erasers were fitted on share a raw one."""
    for name, record in records.items():
        if set(PAPER_PROBES) <= set(record.probes) and not name.endswith("_beyond"):
            yield from ((record, space) for space in ("raw", "isp", "leace") if space != "raw" or "_on-" not in name)


def _there(value: Found | None, *words: object) -> Found:
    if not value:
        raise UnfaceError(f"docs/measured/erasure: nothing of {' '.join(map(str, words))}; is the audit recorded?")
    return value


if __name__ == "__main__":
    main()
