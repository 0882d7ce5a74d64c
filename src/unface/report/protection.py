"""protection.html and the same on the terminal: drawn from protection.json alone."""

import os
from pathlib import Path

import altair as alt
from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.charts import ERASERS, GREY, INK, SHAPES, Figure, Look, Rows, colour, data, draw, shape
from unface.page.tables import (
    NOT_MEASURED,
    Cell,
    Table,
    bounded,
    difference,
    print_safely,
    remarks,
    table,
    terminal_table,
)
from unface.page.templates import render_page
from unface.report.opening import protection_opening
from unface.result.numbers import Estimate, Share
from unface.result.protection import PAPER_K, AttackerResult, MethodResult, ProtectionResult
from unface.result.words import count, in_percent, interval, percent, rate

_KINDS = {
    "recogniser": "as published",
    "trained on the release": "learned from the released pictures",
    "fine-tuned": "learned from pairs that the attacker made with the public model",
    "imitation": "protects the query with the public model first",
}


def write_protection(
    result: ProtectionResult, path: str | os.PathLike[str], decision: GateResult | None = None
) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    page = Path(path)
    write_file(page, render_protection(result, decision).encode(), option="--out")
    return page


def render_protection(result: ProtectionResult, decision: GateResult | None = None) -> str:
    """The page; the same bytes for the same file and ``decision``, a policy's."""
    return render_page(
        "unface.report:protection.html.jinja",
        result=result,
        opening=protection_opening(result, decision, advice(result)),
        curve=_curve(result),
        methods=_methods_table(result),
        attackers=_attackers_table(result.audited) if result.audited.attackers else None,
        galleries=_gallery_table(result.audited),
        others=[_attackers_table(one) for one in result.methods if one is not result.audited and one.attackers],
    )


def print_protection(result: ProtectionResult, console: Console) -> None:
    """The verdict, methods, attackers, findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    facts = result.release
    about = (
        f"{facts.name}: {facts.pictures:,} released pictures of {facts.people:,} people, from which recognisers learn; "
        f"attackers look for {result.measured_people:,} of these people, with thresholds from "
        f"{result.calibrate_people:,} others."
    )
    print_safely(console, Text(about, style="dim"))
    console.print()
    print_safely(console, _terminal_methods(result))
    if result.audited.attackers:
        console.print()
        print_safely(console, _terminal_attackers(result.audited))
    if result.second is not None:
        console.print()
        for line in _second_lines(result):
            print_safely(console, Text(line))
    console.print()
    for remark in remarks(result.findings, result.not_measured):
        print_safely(console, remark)


def advice(result: ProtectionResult) -> list[str]:
    """What to do about it, the most effective first."""
    if result.links:
        return [
            "Treat this release as personal data: give it to people who could be given the originals.",
            "Hide more of each picture (--mask-ratio) and measure again; the curve shows what that costs.",
        ]
    missing = []
    if any("--attacker-people" in one for one in result.not_measured):
        missing.append("Add the strongest attacker, who learns from protected pictures: audit with --attacker-people.")
    if not result.audited.utility:
        missing.append(
            "Find out whether the release is good for anything: audit with --pairs. A model that learned too little "
            "hides people too, because it shows nobody."
        )
    return [
        *missing,
        "Repeat this with more people and with other recognisers: what these attackers missed, another may find.",
        "Keep the mask seed secret and use it for every later release of these pictures.",
    ]


def _share(found: Share | None) -> str:
    return NOT_MEASURED if found is None else bounded(found)


def _difference(method: MethodResult, originals: MethodResult | None) -> str:
    if originals is None or originals is method or not (method.utility and originals.utility):
        return ""
    less = method.utility[0].less(originals.utility[0])
    return "" if less is None else f"{difference(less.value, less.low, less.high)} points to originals"


def _learned_from(method: MethodResult) -> str:
    pictures, people = count(method.pictures, "picture"), count(method.people, "person", "people")
    return f"learned from {pictures} of {people}" if method.utility else f"{pictures} of {people}"


def _methods_table(result: ProtectionResult) -> Table:
    rows = []
    for method in result.methods:
        worst, found = method.worst, method.accuracy
        risk = None if worst is None else worst.risk(PAPER_K, "other")
        seeds = len(method.utility[0].seeds) if method.utility else 0
        rows.append(
            [
                Cell(method.label, _learned_from(method), strong=method.audited),
                Cell(NOT_MEASURED if found is None else _accuracy(found), _difference(method, result.originals)),
                Cell(f"{seeds}" if seeds else "–"),
                Cell("–" if worst is None else worst.name),
                Cell("–" if worst is None else _share(worst.other)),
                Cell(
                    "–" if risk is None else bounded(risk.share),
                    "" if risk is None else f"chance {percent(risk.chance)}",
                ),
            ]
        )
    name = result.audited.utility[0].name if result.audited.utility else "pairs"
    heads = (
        "method", f"accuracy on {name}", "seeds", "worst attacker", "TAR, another picture", f"retrieval, K = {PAPER_K}",
    )  # fmt: skip
    return table("What each set is good for, and who is linked", heads, rows)


def _attackers_table(method: MethodResult) -> Table:
    worst = method.worst
    rows = [
        [
            Cell(one.name, _KINDS[one.kind], strong=one is worst),
            Cell(bounded(one.same)),
            Cell(_share(one.other)),
            Cell(percent(one.achieved_far), f"target {rate(one.far)}"),
            *(
                Cell(
                    "–" if risk is None else bounded(risk.share),
                    "" if risk is None else f"chance {percent(risk.chance)}",
                )
                for risk in (one.risk(PAPER_K, "same"), one.risk(PAPER_K, "other"))
            ),
        ]
        for one in method.attackers
    ]
    heads = (
        "attacker", "TAR, same picture", "TAR, another picture", "strangers accepted",
        f"retrieval, same, K = {PAPER_K}", f"retrieval, another, K = {PAPER_K}",
    )  # fmt: skip
    return table(f"Attackers of {method.label}", heads, rows)


def _gallery_table(method: MethodResult) -> Table | None:
    worst = method.worst
    if worst is None or not worst.retrieval:
        return None
    rows = [
        [
            Cell(f"{one.identities:,}", f"{one.released:,} faces"),
            Cell(f"{one.k}"),
            Cell({"same": "the same picture", "other": "another picture", "any": "a picture"}[one.pictures]),
            Cell(bounded(one.share)),
            Cell(percent(one.chance)),
        ]
        for one in worst.retrieval
    ]
    heads = ("people in the gallery", "K", "query is", "found", "chance")
    return table(f"Retrieval risk R(A, S, K) of {worst.name}", heads, rows)


def _accuracy(found: Estimate) -> str:
    return f"{percent(found.value)} {interval(found.low, found.high)}"


def _curve(result: ProtectionResult) -> Figure | None:
    """Risk to the right, utility upwards; the ratios of one method are joined."""
    drawn = []
    for method in result.methods:
        worst, found = method.worst, method.accuracy
        if worst is not None and worst.other is not None and found is not None:
            drawn.append((method, worst.other, found))
    if len(drawn) < 2:
        return None
    names = list(dict.fromkeys(method.name for method, _, _ in drawn))
    palette = [INK, *ERASERS, GREY]
    looks = [Look(name, palette[at % len(palette)], (1, 0), SHAPES[at % len(SHAPES)]) for at, name in enumerate(names)]
    rows: Rows = [
        {
            "x": share.value,
            "low_x": share.low,
            "high_x": share.high,
            "y": found.value,
            "low": found.low,
            "high": found.high,
            "look": method.name,
            "order": 0 if method.ratio is None else method.ratio,
            "text": "" if method.ratio is None else f"{method.ratio:.0%}",
        }
        for method, share, found in drawn
    ]
    bottom = max(0.0, min(0.5, *(found.low for _, _, found in drawn)))
    across, up, axis = alt.Scale(domain=[0, 1]), alt.Scale(domain=[bottom, 1]), alt.Axis(format="%", tickCount=5)
    risk, use = "risk: released faces that are linked", "utility: pairs verified"
    x, low_x = (alt.X(f"{name}:Q", title=risk, scale=across, axis=axis) for name in ("x", "low_x"))
    y, low = (alt.Y(f"{name}:Q", title=use, scale=up, axis=axis) for name in ("y", "low"))
    layers = [
        data(rows).mark_rule(opacity=0.4).encode(x=x, y=low, y2="high:Q", color=colour(looks)),
        data(rows).mark_rule(opacity=0.4).encode(x=low_x, x2="high_x:Q", y=y, color=colour(looks)),
        data(rows).mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour(looks), order="order:Q", detail="look:N"),
        data(rows)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(x=x, y=y, color=colour(looks), shape=shape(looks)),
        data(rows)
        .mark_text(dx=6, dy=-8, align="left", fontSize=11)
        .encode(x=x, y=y, text="text:N", color=colour(looks)),
    ]
    said = "; ".join(
        f"{method.label}: utility {percent(found.value)}, risk {percent(share.value)}" for method, share, found in drawn
    )
    title = "Utility and risk"
    note = "Up is useful, left is private. Numbers beside points: the share of each picture that was hidden."
    return Figure(title, draw(layers, f"{title}. {said}."), tuple(looks), note=note)


def _terminal_methods(result: ProtectionResult) -> TerminalTable:
    name = result.audited.utility[0].name if result.audited.utility else "pairs"
    made = terminal_table(f"Accuracy on {name}, and what the worst attacker of each links (TAR, another picture)")
    made.add_column("method", max_width=24, overflow="fold")
    for head in ("hidden", "accuracy %", "TAR %", f"R(K={PAPER_K}) %"):
        made.add_column(head, justify="right", no_wrap=True)
    for method in result.methods:
        worst, found = method.worst, method.accuracy
        risk = None if worst is None else worst.risk(PAPER_K, "other")
        made.add_row(
            method.name,
            "–" if method.ratio is None else f"{method.ratio:.0%}",
            "–" if found is None else f"{in_percent(found.value)} {interval(found.low, found.high)}",
            "–" if worst is None or worst.other is None else _short(worst.other),
            "–" if risk is None else in_percent(risk.share.value),
        )
    return made


def _terminal_attackers(method: MethodResult) -> TerminalTable:
    first: AttackerResult = method.attackers[0]
    made = terminal_table(f"Attackers of {method.label}, at FAR {rate(first.far)}; * the worst, chosen on other people")
    made.add_column("attacker", max_width=28, overflow="fold")
    for head in ("same picture %", "another picture %", "strangers %"):
        made.add_column(head, justify="right", no_wrap=True)
    for one in method.attackers:
        made.add_row(
            f"{one.name}{' *' if one is method.worst else ''}",
            _short(one.same),
            "–" if one.other is None else _short(one.other),
            in_percent(one.achieved_far),
        )
    return made


def _second_lines(result: ProtectionResult) -> list[str]:
    second = result.second
    assert second is not None
    return [
        f"Two releases show {percent(second.same_seed_shown)} of each picture with the same mask seed, "
        f"{percent(second.other_seed_shown)} with another.",
        f"With another seed, the attacker '{second.attacker}' links {percent(second.both.value)} "
        f"instead of {percent(second.one.value)}.",
    ]


def _short(found: Estimate) -> str:
    return f"{in_percent(found.value)} {interval(found.low, found.high)}"
