"""The tables of a page, made again from audits: ``python -m studies.summary AUDITS docs/erasure.md``.

A page marks each place with ``<!-- NAME ARGUMENT -->`` … ``<!-- end -->``; what stands between is replaced.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from studies.tables import kept, row, worst
from unface.auditing import AuditResult, load_audit
from unface.auditing.schema import Point, SpaceResult
from unface.auditing.words import interval, percent, rate

ENCODERS = (
    *("sscd-int8", "sscd-distilled", "mobilenet-v2", "efficientnet-lite0", "augnet-r50", "dinov2-s-focus"),
    *("sface", "arcface-mbf", "edgeface-s", "mobilefacenet-tflite", "dlib", "facenet"),
)
GENERAL = ENCODERS[:6]
SETS = ("celeba20", "celeba5", "lfw", "celeba9k")
WAYS = {
    "apart": "within, roles apart",
    "shared": "within, roles shared (paper)",
    "on-celeba5": "on celeba5",
    "on-celeba9k": "on celeba9k",
}
SPACES = ("raw", "isp", "leace", "random", "pca")
HEADER = ["encoder, set, erasers fitted", "rank", "raw", "ISP", "LEACE", "random", "label-free PCA"]
K = 4


def main() -> None:
    """Fill the page."""
    folder, page = map(Path, sys.argv[1:3])
    audits = {path.parent.name: load_audit(path) for path in folder.glob("*/audit.json")}
    page.write_text(filled(page.read_text(encoding="utf-8"), audits), encoding="utf-8")


def filled(text: str, audits: dict[str, AuditResult]) -> str:
    """The page with every marked table made again."""

    def made(mark: re.Match[str]) -> str:
        lines = TABLES[mark["name"]](audits, mark["argument"])
        return "\n".join([mark["open"], "", *lines, "", "<!-- end -->"])

    marks = rf"(?P<open><!-- (?P<name>{'|'.join(TABLES)}) (?P<argument>\S+) -->)\n.*?<!-- end -->"
    return re.sub(marks, made, text, flags=re.S)


def worst_cases(audits: dict[str, AuditResult], far: str) -> Iterator[str]:
    """Every audit's worst case at one rate."""
    yield from _header(HEADER)
    for label, result in ordered(audits, ENCODERS):
        if float(far) in result.protocol.fars:
            cells = [_value(_worst(result, space, float(far))) for space in SPACES]
            yield row([label, str(_rank(result)), *cells])


def adjusted(audits: dict[str, AuditResult], far: str) -> Iterator[str]:
    """The same with surroundings as alike as strangers'; general encoders."""
    yield from _header(HEADER)
    for label, result in ordered(audits, GENERAL):
        points = [_worst(result, space, float(far)) for space in SPACES]
        if any(point is not None and point.context_adjusted is not None for point in points):
            yield row([label, str(_rank(result)), *map(_adjusted_value, points)])


def kept_shares(audits: dict[str, AuditResult], measure: str) -> Iterator[str]:
    """What is retained of one measure of utility."""
    yield from _header(["encoder, set, erasers fitted", "rank", "raw %", "ISP kept %", *HEADER[4:]])
    for label, result in ordered(audits, GENERAL):
        found = next((one for one in result.spaces[1].utility if one.measure == measure), None)
        if found is not None:
            shares = [kept(_space(result, space), measure) for space in SPACES[1:]]
            yield row([label, str(_rank(result)), f"{100 * found.raw.value:.1f}", *shares])


def sweep(audits: dict[str, AuditResult], argument: str) -> Iterator[str]:
    """One sweep of one audit, given as audit:over."""
    name, _, over = argument.partition(":")
    for found in [] if name not in audits else [one for one in audits[name].sweeps if one.over == over]:
        yield f"{name}: k = {found.k}, FAR {rate(found.far)}, {found.resolution}"
        yield ""
        yield from _header(["method", "rank", "fit identities", "TAR %", "× chance", "kept"])
        for point in found.points:
            tar = f"{percent(point.tar.value).removesuffix(' %')} {interval(point.tar.low, point.tar.high)}"
            useful = ", ".join(f"{one.measure} {percent(one.retained.value)}" for one in point.utility)
            fit = f"{point.fit_identities:,}"
            yield row([point.method, str(point.rank), fit, tar, f"{point.times_chance:,.0f}", useful])


def against(audits: dict[str, AuditResult], other: str) -> Iterator[str]:
    """How often ISP and LEACE surely leave less, or more, than a control of equal rank."""
    yield from _header(["eraser", "FAR", "surely below", "cannot tell", "surely above"])
    for eraser in ("isp", "leace"):
        for far in (1e-3, 1e-4):
            changes = [
                change
                for _, result in ordered(audits, ENCODERS)
                for change in _space(result, eraser).changes
                if (change.against, change.far, change.k) == (other, far, _k(result))
            ]
            below, above = (sum(test) for test in zip(*((c.high < 0, c.low > 0) for c in changes), strict=True))
            yield row([eraser, rate(far), str(below), str(len(changes) - below - above), str(above)])


TABLES = {"worst": worst_cases, "adjusted": adjusted, "kept": kept_shares, "sweep": sweep, "against": against}


def ordered(audits: dict[str, AuditResult], encoders: tuple[str, ...]) -> Iterator[tuple[str, AuditResult]]:
    """Audits with their labels, as the tables list them."""
    for encoder in encoders:
        for faces in SETS:
            for way, words in WAYS.items():
                result = audits.get(f"{encoder}_{faces}_{way}")
                if result is not None:
                    yield f"{encoder}, {faces}, {words}", result


def _k(result: AuditResult) -> int:
    return K if K in result.protocol.ks else result.protocol.ks[0]


def _worst(result: AuditResult, space: str, far: float) -> Point | None:
    return worst(_space(result, space), _k(result), far)


def _space(result: AuditResult, name: str) -> SpaceResult:
    return next(space for space in result.spaces if space.name == name)


def _rank(result: AuditResult) -> int:
    erasure = result.spaces[1].erasure
    return 0 if erasure is None else erasure.rank


def _value(point: Point | None) -> str:
    if point is None or point.tar is None or point.times_chance is None:
        return "refused"
    coarse = "~" if point.resolution == "coarse" else ""
    value = percent(point.tar.value).removesuffix(" %")
    return f"{coarse}{value} {interval(point.tar.low, point.tar.high)} ×{point.times_chance:,.0f}"


def _adjusted_value(point: Point | None) -> str:
    found = None if point is None else point.context_adjusted
    if point is None or point.tar is None or found is None or found.value is None:
        return "–"
    coarse = "~" if point.resolution == "coarse" else ""
    return f"{coarse}{percent(found.value).removesuffix(' %')} {interval(found.low, found.high)}"


def _header(cells: list[str]) -> Iterator[str]:
    yield row(cells)
    yield row(["---"] * len(cells))


if __name__ == "__main__":
    main()
