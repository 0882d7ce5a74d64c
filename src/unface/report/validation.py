"""validation.html and the same on the terminal: drawn from validation.json alone.

And quiz.html, on which people say who the reconstructions show. It holds faces, and loads and sends nothing.
"""

import base64
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import altair as alt
from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.charts import ERASERS, GREY, INK, SHAPES, Figure, Look, Rows, colour, dash, data, draw, shape
from unface.page.tables import NOT_MEASURED, Cell, Table, bounded, print_safely, remarks, table, terminal_table
from unface.page.templates import page_file, render_page
from unface.report.opening import validation_opening
from unface.report.trend import trend_section
from unface.result.history import PastResult
from unface.result.numbers import Share
from unface.result.validation import (
    ALL_JUDGES,
    AttackResult,
    Hardening,
    JudgeThreshold,
    Success,
    ValidationResult,
    measured,
)
from unface.result.words import count, in_percent, interval, percent, rate

_MOST_ATTACKS = 3
"""Columns of the terminal table, which has eighty letters."""


def write_validation(
    result: ValidationResult,
    path: str | os.PathLike[str],
    history: Sequence[PastResult] = (),
    decision: GateResult | None = None,
) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    write_file(Path(path), render_validation(result, history, decision).encode(), option="--out")
    return Path(path)


def render_validation(
    result: ValidationResult, history: Sequence[PastResult] = (), decision: GateResult | None = None
) -> str:
    """The page; the same bytes for the same file and ``decision``, a policy's. With a history it has a trend."""
    far = _headline_far(result)
    opening, steps = validation_opening(result, decision, advice(result)), advice(result)
    return render_page(
        "unface.report:validation.html.jinja",
        result=result,
        far=far,
        figures=[] if far is None else _figures(result, far),
        success=None if far is None else _success_table(result, far),
        rates=_rates_table(result),
        judges=_judge_table(result),
        hardening=_hardening_table(result.hardening) if result.hardening else None,
        opening=opening,
        advice=[step for step in steps if step not in opening.steps],
        headline=_headline_cells(result) if result.valid else [],
        trend=trend_section(history, result),
    )


def print_validation(result: ValidationResult, console: Console) -> None:
    """The verdict, success over questions, hardening, findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    asked, enrolled = result.asked, result.enrolled
    people = f"{count(enrolled.people, 'person', 'people')}{' who do not exist' if enrolled.generated else ''}"
    print_safely(
        console,
        Text(
            f"{result.target.name}: {people}, {asked.counted:,} questions counted, {asked.answered:,} answered; "
            f"attacker's encoder {result.attacker.encoder}; judged by {', '.join(one.name for one in result.judges)}.",
            style="dim",
        ),
    )
    far = _headline_far(result)
    if far is not None:
        console.print()
        print_safely(console, _terminal(result, far))
        for line in _lines_below(result, far):
            print_safely(console, Text(line, style="dim"))
    if result.hardening:
        console.print()
        print_safely(console, _terminal_hardening(result.hardening))
    console.print()
    for remark in remarks(result.findings, result.not_measured):
        print_safely(console, remark)


def advice(result: ValidationResult) -> list[str]:
    """What to do about it, the most effective first."""
    headline = result.headline
    if headline is None:
        return []
    steps = [
        "Limit how many comparisons one enrolled person can ever receive, over all clients together. A limit for each "
        "client or each minute only slows the attack down.",
        "Answer only accepted or rejected. Clients rarely need a score, and a decision tells an attacker far less.",
    ]
    if headline.point.queries < result.asked.budget:
        asked = f"{headline.point.queries} of {result.asked.budget} about a person were asked"
        more = (
            f"Ask more questions before you rely on this: {asked}. Give more people in --queries, or --queries nobody."
        )
        steps.insert(0, more)
    share = measured(headline.point)
    weak = [one for one in result.hardening if one.measure.startswith("scores rounded") and one.other is not None]
    # Where the attack fails anyhow, rounding cannot be blamed for anything.
    if weak and share is not None and share.low > headline.point.far:
        said = "; ".join(f"{one.measure}: {percent(one.other.value)}" for one in weak if one.other is not None)
        steps.append(f"Do not rely on rounding. The best attack still succeeds with rounded answers: {said}.")
    steps += [
        "Require a login, compare a live capture rather than an uploaded picture, and look for a client that sends "
        "many different faces for one person.",
        "Validate again after each change, and check it with a gate: set success_max in a policy.",
    ]
    return steps


def _headline_far(result: ValidationResult) -> float | None:
    headline = result.headline
    return None if headline is None else headline.point.far


def _headline_cells(result: ValidationResult) -> list[tuple[str, str, str]]:
    """(what, value, small) of the three numbers to look at."""
    headline = result.headline
    if headline is None:
        return []
    point, cells = headline.point, []
    for what, share in (("Other photos of the person", point.other), ("The enrolled photo", point.same)):
        if share is not None:
            cells.append(
                (what, percent(share.value), f"{interval(share.low, share.high)} %, chance {percent(point.chance)}")
            )
    ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (point.far, ALL_JUDGES)), None)
    if ceiling is not None:
        text = f"{interval(ceiling.other.low, ceiling.other.high)} %"
        cells.append(("A real second photo (ceiling)", percent(ceiling.other.value), text))
    return cells


def _queries(result: ValidationResult, far: float) -> list[int]:
    return sorted({point.queries for attack in result.attacks for point in attack.at if point.far == far})


def _looks(result: ValidationResult) -> list[Look]:
    return [
        Look(attack.name, ERASERS[at % len(ERASERS)], (1, 0), SHAPES[at % len(SHAPES)])
        for at, attack in enumerate(result.attacks)
    ]


def _figures(result: ValidationResult, far: float) -> list[Figure]:
    figures = [
        _curve(result, far, "other", "Other photos of the person"),
        _curve(result, far, "same", "The enrolled photo"),
    ]
    return [figure for figure in figures if figure is not None]


def _curve(result: ValidationResult, far: float, kind: str, title: str) -> Figure | None:
    """Success over questions on a logarithmic axis, its band, chance and ceiling."""
    shown = _looks(result)
    rows: Rows = []
    for attack in result.attacks:
        for point in attack.at:
            share: Share | None = getattr(point, kind)
            if (point.far, point.judge) == (far, ALL_JUDGES) and share is not None:
                ends: dict[str, float | int | str] = {"y": share.value, "low": share.low, "high": share.high}
                rows.append({"x": point.queries, "look": attack.name, **ends})
    if not rows:
        return None
    numbers = _queries(result, far)
    scale = alt.Scale(type="log", domain=[numbers[0], max(numbers[-1], numbers[0] + 1)], nice=False)
    x = alt.X(
        "x:Q", title="questions about a person", scale=scale, axis=alt.Axis(grid=False, values=numbers, format="d")
    )
    y = alt.Y("y:Q", title="recovered", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    band = (
        data(rows)
        .mark_area(opacity=0.15)
        .encode(x=x, y=alt.Y("low:Q", title="recovered"), y2="high:Q", color=colour(shown))
    )
    line = data(rows).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(shown), strokeDash=dash(shown))
    dots = (
        data(rows).mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=colour(shown), shape=shape(shown))
    )
    layers, looks = [band, line, dots], list(shown)
    chance = max(point.chance for attack in result.attacks for point in attack.at if point.far == far)
    lines = [("chance", chance, GREY, (2, 2))]
    ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (far, ALL_JUDGES)), None)
    if ceiling is not None and kind == "other":
        lines.append(("ceiling: a real second photo", ceiling.other.value, INK, (6, 3)))
    for name, value, ink, dashes in lines:
        across: Rows = [{"x": numbers[0], "y": value}, {"x": max(numbers[-1], numbers[0] + 1), "y": value}]
        layers.append(data(across).mark_line(color=ink, strokeWidth=1.5, strokeDash=list(dashes)).encode(x=x, y=y))
        looks.append(Look(name, ink, dashes, "circle"))
    last = [row for row in rows if row["x"] == numbers[-1]]
    said = "; ".join(f"{row['look']} {percent(float(row['y']))}" for row in last)
    label = f"{title}: recovered over questions, at FAR {rate(far)}. After {numbers[-1]} questions: {said}."
    return Figure(title, draw(layers, label), tuple(looks), _curve_table(result, far, kind, title))


def _curve_table(result: ValidationResult, far: float, kind: str, title: str) -> Table:
    rows = []
    for queries in _queries(result, far):
        cells = [_cell(attack.point(queries, far), kind) for attack in result.attacks]
        rows.append([Cell(f"{queries:,}"), *cells])
    return table(f"{title}, FAR {rate(far)}", ("questions", *(attack.name for attack in result.attacks)), rows)


def _cell(point: Success | None, kind: str) -> Cell:
    share: Share | None = None if point is None else getattr(point, kind)
    if share is None:
        return Cell(NOT_MEASURED)
    return Cell(bounded(share), f"{share.numerator:,} of {share.denominator:,} comparisons")


def _success_table(result: ValidationResult, far: float) -> Table:
    """Every judge after all questions, and shuffled answers beside it."""
    last = _queries(result, far)[-1]
    rows = []
    for attack in result.attacks:
        control = next((one for one in result.shuffled if one.name == attack.name), None)
        for judge in (*(one.name for one in result.judges), ALL_JUDGES):
            point = attack.point(last, far, judge)
            if point is None or (judge == ALL_JUDGES and len(result.judges) == 1):
                continue
            shuffled = None if control is None else control.point(last, far, judge)
            who = "all judges" if judge == ALL_JUDGES else judge
            cells = (_cell(point, "other"), _cell(point, "same"), Cell(percent(point.chance)), _cell(shuffled, "other"))
            rows.append([Cell(attack.name, who, strong=judge == ALL_JUDGES), *cells])
    caption = f"After {last:,} questions, FAR {rate(far)}"
    return table(caption, ("attack", "other photos", "enrolled photo", "chance", "shuffled answers, other"), rows)


def _rates_table(result: ValidationResult) -> Table | None:
    """The worst attack after all questions at every rate."""
    rows = []
    for far in result.far:
        worst = result.worst(far, _queries(result, far)[-1])
        if worst is not None:
            cells = [_cell(worst.point, "other"), _cell(worst.point, "same"), Cell(percent(worst.point.chance))]
            rows.append([Cell(rate(far)), Cell(worst.attack), *cells])
    return (
        table("The worst attack at each FAR", ("FAR", "attack", "other photos", "enrolled photo", "chance"), rows)
        if rows
        else None
    )


def _judge_table(result: ValidationResult) -> Table:
    rows = []
    for judge in result.judges:
        thresholds = _thresholds(judge.thresholds)
        if judge.template_thresholds:
            thresholds = f"pictures {thresholds}; templates {_thresholds(judge.template_thresholds)}"
        part = "independent" if judge.independent else "the attacker's own encoder"
        rows.append([Cell(judge.name, part), Cell(thresholds), Cell("; ".join(judge.notes) or "–")])
    return table("Judges", ("recogniser", "cosine to reach, at FAR", "notes"), rows)


def _thresholds(known: list[JudgeThreshold]) -> str:
    return ", ".join(
        f"{one.cosine:.3f} at {rate(one.far)}{' (coarse)' if one.resolution == 'coarse' else ''}" for one in known
    )


def _half(one: Hardening) -> str:
    if one.queries_to_half is None:
        return f"not within {one.largest:,}"
    found = one.queries_to_half
    return f"{found.value:,.0f} [{found.low:,.0f}, {found.high:,.0f}]"


def _hardening_table(hardening: list[Hardening]) -> Table:
    rows = [
        [
            Cell(one.measure, one.note),
            Cell(_half(one)),
            Cell(bounded(one.other) if one.other else NOT_MEASURED, f"after {one.largest:,}"),
        ]
        for one in hardening
    ]
    caption = f"What a change to the answers buys, best attack, other photos, FAR {rate(hardening[0].far)}"
    return table(caption, ("answers", "questions until half are recovered", "recovered"), rows)


def _terminal(result: ValidationResult, far: float) -> TerminalTable:
    shown = _best_attacks(result, far)
    made = terminal_table(f"Recovered, in % of comparisons with other photos, at FAR {rate(far)}")
    made.add_column("questions", justify="right", no_wrap=True)
    for attack in shown:
        made.add_column(attack.name, justify="right", no_wrap=True)
    for queries in _queries(result, far):
        cells = []
        for attack in shown:
            point = attack.point(queries, far)
            share = None if point is None else point.other or point.same
            cells.append("–" if share is None else f"{in_percent(share.value)} {interval(share.low, share.high)}")
        made.add_row(f"{queries:,}", *cells)
    return made


def _best_attacks(result: ValidationResult, far: float) -> list[AttackResult]:
    last = _queries(result, far)[-1]

    def reached(attack: AttackResult) -> float:
        point = attack.point(last, far)
        share = None if point is None else point.other or point.same
        return -1.0 if share is None else share.value

    best = sorted(result.attacks, key=reached, reverse=True)[:_MOST_ATTACKS]
    return [attack for attack in result.attacks if attack in best]


def _lines_below(result: ValidationResult, far: float) -> list[str]:
    headline = result.headline
    lines = []
    if headline is not None and headline.point.same is not None:
        same = headline.point.same
        lines.append(f"Against the enrolled photo: {bounded(same)} ({headline.attack}).")
    ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (far, ALL_JUDGES)), None)
    if ceiling is not None:
        lines.append(f"Ceiling, a real second photo: {bounded(ceiling.other)}.")
    if headline is not None:
        lines.append(f"Chance, the same templates against other people: {percent(headline.point.chance)}.")
    return lines


def _terminal_hardening(hardening: list[Hardening]) -> TerminalTable:
    made = terminal_table("Hardening: questions until half of the comparisons succeed")
    made.add_column("answers", max_width=44)
    made.add_column("questions", justify="right", no_wrap=True)
    made.add_column("recovered %", justify="right", no_wrap=True)
    for one in hardening:
        made.add_row(one.measure, _half(one), "–" if one.other is None else in_percent(one.other.value))
    return made


_SIDE = 224


def render_quiz(quiz: str, items: list[tuple[bytes, list[bytes]]]) -> str:
    """Of (face, candidates) in their order; ``quiz`` is the hash that answers carry."""
    shown = [{"face": _picture(face), "candidates": [_picture(one) for one in others]} for face, others in items]
    return render_page(
        "unface.report:quiz.html.jinja",
        script=page_file("unface.report:quiz.js"),
        items={"quiz": quiz, "items": shown},
    )


def _picture(content: bytes) -> str:
    """Reduced and without anything that a camera wrote into it."""
    from PIL import Image  # only a quiz needs Pillow; the core draws this page without it

    with Image.open(BytesIO(content)) as opened:
        picture = opened.convert("RGB")
    picture.thumbnail((_SIDE, _SIDE))
    made = BytesIO()
    picture.save(made, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(made.getvalue()).decode()}"
