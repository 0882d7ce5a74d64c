"""report.html: one file that needs nothing else, drawn from an audit alone."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.tables import NOT_MEASURED, multiple, pairs
from unface.page.templates import page_file, render_page
from unface.report.opening import audit_opening
from unface.report.repeat import citation, repeat
from unface.report.trend import trend_section
from unface.result.audit import AuditResult, Headline, Point, SpaceResult
from unface.result.history import PastResult
from unface.result.numbers import Kept
from unface.result.parts import Section, parts_of
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
    figures = [_leak("Raw vectors, worst case", result.raw, head)]
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
    if point.context_adjusted is not None:
        counted += f"; adjusted for '{point.context_adjusted.context}': {point.context_adjusted.words}"
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
