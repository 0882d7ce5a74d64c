"""report.html: one file that needs nothing else, drawn from an audit alone; and how to run that audit again."""

import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.tables import NOT_MEASURED, bounded, multiple, pairs
from unface.page.templates import page_file, render_page
from unface.report.opening import audit_opening
from unface.report.trend import trend_section
from unface.result.audit import AuditResult, Headline, Point, SpaceResult
from unface.result.history import PastResult
from unface.result.numbers import Kept
from unface.result.parts import Option, Section, parts_of
from unface.result.verdict import leaks_more
from unface.result.words import interval, percent, rate


def write_report(
    result: AuditResult,
    path: str | os.PathLike[str],
    history: Sequence[PastResult] = (),
    decision: GateResult | None = None,
) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    write_file(Path(path), render_report(result, history, decision).encode(), option="--out")
    return Path(path)


def render_report(result: AuditResult, history: Sequence[PastResult] = (), decision: GateResult | None = None) -> str:
    """The page; the same bytes for the same audit and ``decision``, a policy's. With a history it has a trend."""
    pieces = [piece for part in parts_of(result) for piece in part.page(result)]
    trend = trend_section(history, result)
    pieces = [*([trend] if trend else []), *pieces]
    return render_page(
        "unface.report:report.html.jinja",
        script=page_file("report.js"),
        result=result,
        opening=audit_opening(result, decision),
        figures=key_figures(result),
        sections=sorted((piece for piece in pieces if isinstance(piece, Section)), key=lambda one: one.order),
        absent=[piece for piece in pieces if isinstance(piece, str)],
        repeat=repeat(result),
        citation=citation(result),
        audit_sha256=hashlib.sha256(result.file_text().encode()).hexdigest(),
    )


@dataclass(frozen=True)
class KeyFigure:
    """A number, how certain it is, and what it was counted on."""

    title: str
    value: str
    interval: str = ""
    counted: str = ""


def key_figures(result: AuditResult) -> list[KeyFigure]:
    """Worst case before and after each eraser, and what is left of usefulness.

    None where the audit is invalid: a number that looks like one would be quoted.
    """
    if not result.valid:
        return []
    head = result.headline
    figures = [_leak(f"{'Raw' if result.erased_by is None else 'These'} vectors, worst case", result.raw, head)]
    figures += [_leak(f"After {space.name}, worst case", space, head) for space in result.erased]
    if not result.erased:
        figures.append(KeyFigure("After an eraser", NOT_MEASURED))
    figures += [_useful(space) for space in result.erased]
    return figures


def _leak(title: str, space: SpaceResult, head: Headline | None) -> KeyFigure:
    point = None if head is None else head.of(space)
    if head is None or point is None or point.tar is None:
        return KeyFigure(title, "not resolved", counted="too few calibrate identities for the rates asked for")
    counted = f"{pairs(point.tar)} photo pairs of one person matched; {point.tar.identities:,} people; {_where(point)}"
    if point.times_chance is not None and point.achieved_far is not None:
        achieved = f"{percent(point.achieved_far.value)} of pairs of different people matched"
        counted = f"{multiple(point.times_chance)} chance; {counted}; {achieved}"
    more = leaks_more(space, head)
    if more is not None and more.tar is not None:
        counted += f"; {percent(more.tar.value)} at k = {more.k}, where this space leaks most"
    adjusted = point.context_adjusted
    if adjusted is not None:
        counted += f"; adjusted for '{adjusted.context}': {adjusted.words}"
    if adjusted is not None and adjusted.apart is not None:
        counted += f"; pairs from different groups: {bounded(adjusted.apart)}"
    return KeyFigure(title, percent(point.tar.value), interval(point.tar.low, point.tar.high), counted)


def _useful(space: SpaceResult) -> KeyFigure:
    title = f"Usefulness kept after {space.name}"
    useful = [kept for kept in space.utility if kept.is_usefulness]
    if not useful:
        return KeyFigure(title, NOT_MEASURED, counted="needs vectors of a task: --utility")
    least: Kept = min(useful, key=lambda kept: kept.retained.value)
    which = f"{least.measure} on {least.on}, {least.queries:,} queries"
    if len(useful) > 1:
        which += f"; the least of {len(useful)} measures"
    return KeyFigure(title, percent(least.retained.value), interval(least.retained.low, least.retained.high), which)


def _where(point: Point) -> str:
    coarse = ", coarse" if point.resolution == "coarse" else ""
    return f"{point.probe}, k = {point.k}, FAR {rate(point.far)}{coarse}"


@dataclass(frozen=True)
class Repeat:
    """The same audit as a command and as a call, with what neither can know."""

    command: str
    call: str
    unknown: list[str]


def repeat(result: AuditResult) -> Repeat:
    """A file is called by its name; where it lay is not recorded."""
    protocol = _protocol(result)
    asked = [option for part in parts_of(result) for option in part.repeat(result)]
    words = [word for option in (*protocol, *asked) if option.flag for word in _words(option)]
    command = " \\\n    ".join([f"unface audit {shlex.quote(result.source.name)}", *words, "--out audit"])
    settings = "".join(f"        {option.keyword}={option.value},\n" for option in protocol)
    keywords = "".join(f"    {option.keyword}={option.value},\n" for option in asked if option.keyword)
    parts = "".join(f"        {option.value},\n" for option in asked if option.value and not option.keyword)
    parts = f"[\n{parts}    ]" if parts else "[]"
    call = f"import unface.auditing\n\nunface.audit(\n    {result.source.name!r},\n{keywords}    parts={parts},\n"
    call += f"    protocol=unface.Protocol(\n{settings}    ),\n)"
    return Repeat(command, call, _unknown(result))


def citation(result: AuditResult) -> str:
    """One paragraph that names the audit beyond doubt."""
    source, run = result.source, result.run
    sha256 = hashlib.sha256(result.file_text().encode()).hexdigest()
    return (
        f"unface {run.unface}, identity audit of {source.name} (vectors sha256 {source.sha256}), {run.started[:10]}; "
        f"variant {result.protocol.variant}, seed {result.protocol.seed}, split sha256 {result.roles.sha256}; "
        f"audit.json sha256 {sha256}."
    )


def _protocol(result: AuditResult) -> list[Option]:
    protocol = result.protocol
    ks: list[int | str] = list(protocol.k)
    if not result.curated.equal:  # more than most people have would be refused
        ks = ["all" if k == result.curated.most else k for k in ks]
    settings: dict[str, str | int | list[float] | list[int | str] | list[str] | None] = {
        "far": protocol.far,
        "k": ks,
        "seeds": protocol.seeds,
        "probe": protocol.probe,
        "images": result.curated.images,
        "variant": protocol.variant,
        "bootstrap": protocol.bootstrap,
        "bootstraps": protocol.bootstraps,
        "seed": protocol.seed,
        "impostor_quota": protocol.impostor_quota,
    }
    refused = {point.far for point in result.raw.points if point.resolution == "refused"}
    if refused:
        # Asked for by name, they would be refused; of the default ones they are left out.
        usual = protocol.far == [1e-3, 1e-4]
        settings["far"] = None if usual else [far for far in protocol.far if far not in refused]
    options = _reading(result)
    for name, value in settings.items():
        if value is not None:
            items = value if isinstance(value, list) else [value]
            text = ",".join(rate(item) if isinstance(item, float) else str(item) for item in items)
            options.append(Option(f"--{name.replace('_', '-')}", (text,), keyword=name, value=repr(value)))
    return options


def _reading(result: AuditResult) -> list[Option]:
    """How the source was read."""
    source, options = result.source, []
    for name, column in source.columns.items():
        flag = f"--{name}" if name in ("group", "context") else f"--{name}-column"
        options.append(Option(flag, (column,), keyword=name, value=repr(column)))
    if source.sample is not None:
        options.append(Option("--sample", (str(source.sample),), keyword="sample", value=str(source.sample)))
    if source.bad_rows is not None:
        options.append(Option("--bad-rows", ("drop",), keyword="bad_rows", value="'drop'"))
    return options


def _unknown(result: AuditResult) -> list[str]:
    unknown = ["in which folder the files are; run it there"]
    if "://" in result.source.name:
        unknown = ["the user, password and options of the connection; set PGHOST, PGUSER, PGPASSWORD or QDRANT_API_KEY"]
    if result.roles.seed is None:
        unknown.append("the column that held your own roles")
    if "attribution" in result.parts:
        unknown.append(
            "the pictures: face-context attribution needs them as the source, with --encoder and --attribution"
        )
    erasures = [space.erasure for space in result.erased if space.erasure]
    if any(erasure.fit_identities is None for erasure in erasures):
        unknown.append("the file of the ready projection, known by its sha256 alone")
    if len({erasure.rank for erasure in erasures}) > 1:
        rules = dict.fromkeys(erasure.rank_rule for erasure in erasures)
        unknown.append(f"the rule of the ranks as an option: {'; '.join(rules)}")
    return unknown


def _words(option: Option) -> list[str]:
    return [f"{option.flag} {shlex.quote(value)}" for value in option.values] or [option.flag]
