"""The tables of docs/erasure.md, from what was recorded of the audits."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

from studies.record_format import Difference, LeftOut, Measured, Record, Swept, Tar
from studies.tables import bare, ends, heading, kept, left_out, mark, plain_cell, row, swept, unbroken, worst
from unface import UnfaceError
from unface.auditing.words import rate

Records = Mapping[str, Record]

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


def worst_cases(records: Records, far: str, *audits: str) -> Iterator[str]:
    """Every audit's worst case at one rate, or of those whose names match."""
    yield from heading(HEADER)
    for label, record in ordered(matching(records, *audits), ENCODERS):
        if float(far) in record.fars:
            cells = [plain_cell(worst_case(record, space, float(far))) for space in SPACES]
            yield row([label, str(rank(record)), *cells])


def within_and_elsewhere(records: Records, faces: str, far: str) -> Iterator[str]:
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
        ranks = ", ".join(str(rank(record)) if record else "–" for record in of.values())
        yield row([encoder, unbroken(ranks), *(_cell_of(of[way], space, float(far)) for way, space in shown)])


def adjusted_cases(records: Records, far: str, *audits: str) -> Iterator[str]:
    """The same as the worst cases with surroundings as alike as strangers'; general encoders."""
    yield from heading(HEADER)
    for label, record in ordered(matching(records, *audits), GENERAL):
        points = [worst_case(record, space, float(far)) for space in SPACES]
        if any(point is not None and point.adjusted is not None for point in points):
            yield row([label, str(rank(record)), *map(_adjusted, points)])


def left_out_cases(records: Records, far: str, *audits: str) -> Iterator[str]:
    """Of all mated pairs, and without those more alike around the face than all but so many of strangers."""
    columns = [f"{space}, {which}" for space in ("raw", "ISP") for which in ("all", "1 ‰", "10 ‰", "100 ‰")]
    yield from heading(["encoder, set, erasers fitted", *columns, "mated pairs left %"])
    for label, record in ordered(matching(records, *audits), GENERAL):
        raw, isp = (_left_out(record, space, float(far)) for space in ("raw", "isp"))
        if raw and isp:
            left = ", ".join(f"{100 * tar.mated / raw[0].mated:.0f}" for tar in raw[1:])
            sign = mark(record.space("raw"), record.k, float(far))
            yield row([label, *(f"{sign}{bare(tar.accepted / tar.mated)}" for tar in (*raw, *isp)), left])


def kept_shares(records: Records, measure: str, *audits: str) -> Iterator[str]:
    """What is retained of one measure of utility."""
    yield from heading(["encoder, set, erasers fitted", "rank", "raw %", "ISP kept %", *HEADER[4:]])
    for label, record in ordered(matching(records, *audits), GENERAL):
        found = next((one for one in record.spaces[1].utility if one.measure == measure), None)
        if found is not None:
            shares = [kept(record.space(space), measure) for space in SPACES[1:]]
            yield row([label, str(rank(record)), f"{100 * found.raw:.1f}", *shares])


def sweeps(records: Records, audit: str, over: str) -> Iterator[str]:
    """Over ranks, or over identities."""
    found = [sweep for sweep in records[audit].sweeps if sweep.over == over] if audit in records else []
    for place, sweep in enumerate(found):
        yield from [""] if place else []
        yield f"{audit}: k = {sweep.k}, FAR {rate(sweep.far)}, {sweep.resolution}"
        yield ""
        yield from swept(sweep.points)


def over_ranks(records: Records, audit: str) -> Iterator[str]:
    """A sweep over ranks with its methods side by side, and what each keeps of k-NN and of a linear probe."""
    (sweep,) = (sweep for sweep in records[audit].sweeps if sweep.over == "rank")
    found = {(point.method, point.rank): point for point in sweep.points}
    methods = {"isp": "ISP", "leace": "LEACE", "pca": "label-free PCA", "random": "random"}
    yield from heading(["rank", *(cell for name in methods.values() for cell in (name, "k-NN, linear kept"))])
    yield row(["0 (raw)", _swept(found["raw", 0]), "100, 100", *[""] * (2 * len(methods) - 2)])
    for rank in sorted({point.rank for point in sweep.points if point.rank}):
        points = [found[method, rank] for method in methods]
        yield row([str(rank), *(cell for point in points for cell in (_swept(point), _useful(point)))])


def against(records: Records, other: str) -> Iterator[str]:
    """How often ISP and LEACE surely leave less, or more, than a control of equal rank."""
    yield from heading(["eraser", "FAR", "surely below", "cannot tell", "surely above"])
    for eraser in ("isp", "leace"):
        for far in (1e-3, 1e-4):
            found = differences(records, eraser, other, far)
            below, above = (sum(test) for test in zip(*map(surely, found), strict=True))
            yield row([eraser, rate(far), str(below), str(len(found) - below - above), str(above)])


def ordered(records: Records, encoders: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Records with their labels, as the tables list them"""
    known = {f"{encoder}_{faces}_{way}" for encoder in ENCODERS for faces in SETS for way in WAYS}
    if unknown := set(records) - known:
        raise UnfaceError(f"studies/summary.py: no place in the tables for {', '.join(sorted(unknown))}; name them")
    for encoder in encoders:
        for faces in SETS:
            for way, words in WAYS.items():
                record = records.get(f"{encoder}_{faces}_{way}")
                if record is not None:
                    yield f"{encoder}, {faces}, {words}", record


def matching(records: Records, *audits: str) -> Records:
    """Those whose names match one of the patterns, all if there are none; a pattern that matches none is a mistake."""
    patterns = audits or ("*",)
    if idle := [one for one in patterns if not any(fnmatch(name, one) for name in records)]:
        raise UnfaceError(f"docs/measured/erasure: no audit is named {idle[0]}")
    return {name: record for name, record in records.items() if any(fnmatch(name, one) for one in patterns)}


def differences(records: Records, eraser: str, other: str, far: float) -> list[Difference]:
    """Of every audit that has them, at the k that speaks for it; not of what is left when all is gone."""
    some = {name: record for name, record in records.items() if not name.endswith("_beyond")}
    found = (difference(record, eraser, other, far) for _, record in ordered(some, ENCODERS))
    return [one for one in found if one is not None]


def difference(record: Record, eraser: str, other: str, far: float) -> Difference | None:
    """Of one audit."""
    return next((one for one in record.space(eraser).changes if (one.against, one.far) == (other, far)), None)


def surely(one: Difference) -> tuple[bool, bool]:
    """Whether below zero, and whether above."""
    return one.points.high < 0, one.points.low > 0


def worst_case(record: Record, space: str, far: float) -> Measured | None:
    """At the k that speaks for the audit."""
    return worst(record.space(space), record.k, far)


def rank(record: Record) -> int:
    """That erasers and controls have in common."""
    return record.spaces[1].rank


def _swept(point: Swept) -> str:
    value, low, high = (f"{100 * share:.2f}" for share in (point.tar.value, point.tar.low, point.tar.high))
    return f"{value} {unbroken(f'[{low}, {high}]')} ×{point.tar.times_chance:,.0f}"


def _useful(point: Swept) -> str:
    return ", ".join(f"{100 * point.kept[measure]:.0f}" for measure in ("knn", "linear"))


def _cell_of(record: Record | None, space: str, far: float) -> str:
    return plain_cell(worst_case(record, space, far)) if record is not None and far in record.fars else "–"


def _left_out(record: Record, space: str, far: float) -> list[Tar | LeftOut]:
    """Of all pairs, then with ever more of them left out; nothing where surroundings or the rate are not measured."""
    point = worst_case(record, space, far)
    found = left_out(record.space(space), record.k, far)
    if not found or point is None or point.tar is None:
        return []
    if len(found) != CUTS:
        raise UnfaceError(f"{record.audit}: {space} was measured with {len(found)} cuts of surroundings, not {CUTS}")
    return [point.tar, *found]


def _adjusted(point: Measured | None) -> str:
    if point is None or point.tar is None or point.adjusted is None:
        return "–"
    return f"{point.mark}{bare(point.adjusted.value)} {ends(*point.adjusted[1:])}"
