"""What people read of a result: its page, terminal table, card and charts. Every test draws them through this file."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from rich.console import Console

from tests.kit.page import Element, Page
from tests.kit.results import AnyResult
from unface.gate import Diff, GateResult, print_decision, print_diff, print_gate
from unface.report.attribution import Shown, print_attribution, render_attribution
from unface.report.certificate import print_certificate, render_certificate
from unface.report.html import render_report
from unface.report.inversion import print_inversion, render_inversion
from unface.report.protection import print_protection, render_protection
from unface.report.release import FacePair, print_release, render_release, write_release
from unface.report.side_by_side import print_side_by_side, render_side_by_side
from unface.report.table import print_audit
from unface.report.validation import print_validation, render_validation
from unface.result.attribution import AttributionResult
from unface.result.audit import AuditResult
from unface.result.certificate import CertificateResult
from unface.result.history import PastResult
from unface.result.inversion import InversionResult
from unface.result.parts import parts_of
from unface.result.protection import ProtectionResult
from unface.result.release import ReleaseResult
from unface.result.validation import ValidationResult
from unface.result.verdict import verdict

WIDTH = 80
Layer = dict[str, Any]


def page(result: AnyResult, decision: GateResult | None = None, history: Sequence[PastResult] = ()) -> str:
    """The page of a result of any kind."""
    drawn: dict[type, Callable[[Any], str]] = {
        AuditResult: lambda one: render_report(one, history, decision),
        ValidationResult: lambda one: render_validation(one, history, decision),
        ReleaseResult: lambda one: render_release(one, (), history, decision),
        InversionResult: lambda one: render_inversion(one, decision),
        CertificateResult: lambda one: render_certificate(one, decision),
        ProtectionResult: lambda one: render_protection(one, decision),
        AttributionResult: lambda one: render_attribution(one),  # noqa: PLW0108 - it has another parameter
    }
    return drawn[type(result)](result)


def encoders_page(audits: Mapping[str, AuditResult], decisions: Mapping[str, GateResult] | None = None) -> str:
    """The page that compares one audit for each encoder."""
    return render_side_by_side(audits, {name: f"{name}/report.html" for name in audits}, decisions)


def attribution_page_with_faces(result: AttributionResult, faces: Sequence[Sequence[Shown]]) -> str:
    """The page with photographs, which its reader has asked for."""
    return render_attribution(result, faces)


def write_release_page_with_faces(result: ReleaseResult, path: Path, faces: Sequence[tuple[str, bytes, bytes]]) -> Path:
    """The same for a release: pairs of a released face and its nearest training picture."""
    return write_release(result, path, [FacePair(*pair) for pair in faces])


def terminal(
    shown: AnyResult | GateResult | Diff | Mapping[str, AuditResult],
    decision: GateResult | None = None,
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """What a command prints of a result, a gate, a comparison, or audits side by side; with escape codes if asked."""
    text = StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=text, width=width, color_system=system, force_terminal=colour or None)
    printed: dict[type, Callable[[Any, Console], None]] = {
        GateResult: print_gate,
        Diff: print_diff,
        AuditResult: lambda one, on: print_audit(one, on, decision),
        ValidationResult: print_validation,
        ReleaseResult: print_release,
        InversionResult: print_inversion,
        CertificateResult: print_certificate,
        ProtectionResult: print_protection,
        AttributionResult: print_attribution,
        dict: print_side_by_side,
    }
    printed[type(shown)](shown, console)
    return text.getvalue()


def decision_line(decision: GateResult, of: str = "") -> str:
    """The verdict as a command prints it above its own result."""
    text = StringIO()
    print_decision(decision, Console(file=text, width=WIDTH, color_system=None), of=of)
    return text.getvalue()


def concluded(result: AuditResult) -> AuditResult:
    """A made-up audit with the findings, the verdict and the gaps that ``unface.audit`` would write into it."""
    parts = parts_of(result)
    severities = ("invalid", "warning", "note")
    findings = [*(one for part in parts for one in part.findings(result)), *result.findings]
    findings.sort(key=lambda one: severities.index(one.severity))
    missing = [one for part in parts for one in part.not_measured(result)]
    valid = not any(one.severity == "invalid" for one in findings)
    found = result.model_copy(update={"findings": findings, "valid": valid, "not_measured": missing})
    return found.model_copy(update={"verdict": verdict(found)})


def card(result: AnyResult) -> str:
    """The result as a notebook shows it."""
    html: str = result._repr_html_()  # type: ignore[union-attr] # IPython's name for it
    return html


@dataclass(frozen=True)
class Chart:
    """What is drawn: each layer with its mark, its rows and its channels."""

    layers: list[Layer]

    def rows(self, layer: int = -1) -> list[dict[str, Any]]:
        return list(self.layers[layer]["rows"])


@contextmanager
def undrawn() -> Iterator[list[Chart]]:
    """Charts are collected instead of being turned into SVG, which takes most of a page's time."""
    drawn: list[Chart] = []

    def draw(spec: dict[str, Any]) -> str:
        drawn.append(Chart([_layer(spec, one) for one in spec["layer"]]))
        return '<svg width="344" height="250"></svg>'

    with patch("vl_convert.vegalite_to_svg", draw):
        yield drawn


def _layer(spec: dict[str, Any], one: dict[str, Any]) -> Layer:
    data = one.get("data") or spec.get("data") or {}
    rows = data.get("values")
    if rows is None:
        sets = {**spec.get("datasets", {}), **one.get("datasets", {})}
        rows = sets[data["name"]] if "name" in data else next(iter(sets.values()), [])
    return {"mark": one["mark"], "rows": rows, "channels": one.get("encoding", {})}


def lines(html: str) -> str:
    """A page as text: a line for each paragraph, table row and heading, which is marked by as many # as its level."""
    parsed = Page(html)
    blocks = {"p", "li", "dt", "dd", "pre", "figcaption", "summary", "caption", "title"}
    headings = {f"h{level}": level for level in range(1, 7)}
    found: list[str] = []
    for element in parsed.elements:
        if any(outer.tag in blocks or outer.tag == "tr" for outer in element.within):
            continue
        words = element.words
        if element.tag in headings:
            found += ["", f"{'#' * headings[element.tag]} {words}"]
        elif element.tag == "tr":
            cells = [_cell(parsed, one) for one in parsed.elements if element in one.within and one.tag in ("td", "th")]
            found.append(f"| {' | '.join(cells)} |")
        elif element.tag == "svg" and "aria-label" in element.attributes:
            found.append(f"[{element.attributes['aria-label']}]")
        elif element.tag == "pre":
            found += [f"    {line}" for line in element.text.strip().split("\n")]
        elif element.tag in blocks or (
            element.tag in ("small", "div", "span") and _is_leaf(parsed, element, blocks | {"tr", "svg", *headings})
        ):
            found += [words] if words else []
    return "\n".join(found).strip("\n") + "\n"


def _cell(parsed: Page, cell: Element) -> str:
    """Its words, in stars where it is the one to look at."""
    strong = any(cell in one.within for one in parsed.elements if one.tag == "strong")
    return f"*{cell.words}*" if strong else cell.words


def repeated(result: AuditResult) -> tuple[str, str]:
    """The command and the Python call by which the page of an audit says that it can be repeated."""
    return _repeated(result.file_text())


@cache
def _repeated(file_text: str) -> tuple[str, str]:
    with undrawn():
        shown = Page(page(AuditResult.model_validate_json(file_text)))
    command, call = (one.text.strip() for one in shown.all("pre") if one.inside("section", id="repeat"))
    return command, call


def _is_leaf(parsed: Page, element: Element, blocks: set[str]) -> bool:
    """Whether text stands in it that no block inside or around it shows."""
    if any(outer.tag in ("small", "span") for outer in element.within):
        return False
    if any(outer.tag == "div" and outer.text.strip() == element.text.strip() for outer in element.within):
        return False
    return not any(
        inner.tag in {*blocks, "div", "small", "tr", "svg"} for inner in parsed.elements if element in inner.within
    )


def chart_lines(charts: Sequence[Chart], most: int = 12) -> str:
    """Charts as text: marks, scales and rows with four digits; of many rows the first and the last."""
    found: list[str] = []
    for number, chart in enumerate(charts, 1):
        found += ["", f"## Chart {number}"]
        for layer in chart.layers:
            mark = layer["mark"] if isinstance(layer["mark"], str) else layer["mark"]["type"]
            channels = [_channel(name, one) for name, one in layer["channels"].items()]
            found.append(f"{mark}: {'; '.join(channels)}")
            rows = layer["rows"]
            half = most // 2
            shown = rows if len(rows) <= most else [*rows[:half], *rows[-half:]]
            found += [f"    {', '.join(f'{key} {_number(value)}' for key, value in row.items())}" for row in shown]
            found += [f"    {len(rows)} rows"] if len(rows) > most else []
    return "\n".join(found) + "\n" if found else ""


def _channel(name: str, one: dict[str, Any]) -> str:
    title = one.get("title")
    scale = one.get("scale") or {}
    said = "".join(f", {key} {_number(scale[key])}" for key in ("type", "domain", "range") if key in scale)
    return f"{name} = {one.get('field', one.get('value'))}{f' ({title})' if title else ''}{said}"


def _number(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_number, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(text: str) -> str:
    """One line, with single spaces."""
    return re.sub(r"\s+", " ", text).strip()
