"""inversion.html and the same on the terminal: drawn from inversion.json alone."""

import os
from collections.abc import Sequence
from pathlib import Path

import altair as alt
from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.charts import ERASERS, Figure, Look, Rows, data, draw
from unface.page.tables import Cell, Table, bounded, difference, print_safely, remarks, table, terminal_table
from unface.page.templates import render_page
from unface.report.opening import inversion_opening
from unface.result.inversion import RAW, InversionCell, InversionResult, InversionSuccess, inverted
from unface.result.validation import ALL_JUDGES
from unface.result.words import count, in_percent, interval, percent, rate

_OWN_WORDS = ("raw", "isp", "keeper", "pca", "random", "leace", "sal", "alsuv", "bob", "translate", "diffmi", "decoder")
"""Names that may stand in a drawing; others are shown as numbers there, and in words in the table beside it."""


def write_inversion(result: InversionResult, path: str | os.PathLike[str], decision: GateResult | None = None) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    write_file(Path(path), render_inversion(result, decision).encode(), option="--out")
    return Path(path)


def render_inversion(result: InversionResult, decision: GateResult | None = None) -> str:
    """The page; the same bytes for the same file and ``decision``, a policy's."""
    headline = result.headline
    far = None if headline is None else headline.point.far
    figures = [] if far is None else [_heat_map(result, far), _over_steps(result, far)]
    return render_page(
        "unface.report:inversion.html.jinja",
        result=result,
        opening=inversion_opening(result, decision),
        far=far,
        headline=[] if far is None or not result.valid else _headline_cells(result, far),
        figures=[figure for figure in figures if figure is not None],
        success=None if far is None else _success_table(result, far),
        controls=None if far is None else _control_table(result, far),
        reached=_reached_table(result),
        judges=_judge_table(result),
    )


def print_inversion(result: InversionResult, console: Console) -> None:
    """The verdict, success by attack and space beside its controls, findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    people, judges = result.people, [one.name for one in result.judges if one.independent] or ["nobody independent"]
    who = f"{count(people.targets, 'person', 'people')}{' who do not exist' if people.generated else ''}"
    prior = "" if result.prior is None else f"; prior {result.prior.name} at {result.prior.size} px"
    told = f"{result.encoder.name}: {who}, one vector each{prior}; judged by {', '.join(judges)}."
    print_safely(console, Text(told, style="dim"))
    headline = result.headline
    far = None if headline is None else headline.point.far
    if far is not None:
        console.print()
        print_safely(console, _terminal(result, far))
        for line in _lines_below(result, far):
            print_safely(console, Text(line, style="dim"))
    console.print()
    for remark in remarks(result.findings, result.not_measured):
        print_safely(console, remark)


def _terminal(result: InversionResult, far: float) -> TerminalTable:
    made = terminal_table(f"Passes for the person, in % of targets, at FAR {rate(far)}")
    made.add_column("attack, space", max_width=18, overflow="fold")
    for name in ("same photo", "other photos", "chance", "cosine", "2nd"):
        made.add_column(name, justify="right", no_wrap=True)
    second = {space.name: space.second for space in result.spaces}
    attack = ""
    for cell in sorted(result.cells, key=lambda one: [each.attack for each in result.cells].index(one.attack)):
        point = cell.point(far)
        if point is None:
            continue
        if attack != cell.attack:
            attack = cell.attack
            made.add_row(Text(attack, style="bold"))
        shares = [
            "–" if share is None else f"{in_percent(share.value)} {interval(share.low, share.high)}"
            for share in (point.same, point.other)
        ]
        beside = second.get(cell.space)
        style = "dim" if cell.converged is False else ""
        made.add_row(
            f"  {cell.space}",
            *shares,
            in_percent(point.derangement.value),
            "–" if cell.reached is None else f"{cell.reached.value:.2f}",
            "–" if beside is None else f"{beside.value:.2f}",
            style=style,
        )
    return made


def _lines_below(result: InversionResult, far: float) -> list[str]:
    lines = ["chance: against everybody else; cosine: reached; 2nd: that of another real photo."]
    ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (far, ALL_JUDGES)), None)
    if ceiling is not None:
        lines.append(f"Ceiling, a real second photo: {bounded(ceiling.other)}.")
    shown = next((cell for cell in result.cells if cell.controls), None)
    if shown is not None:
        said = [
            f"{one.name} {percent(share)}" for one in shown.controls if (share := _control(one.at, far)) is not None
        ]
        lines.append(f"Controls on {shown.space}, same photo: {', '.join(said)}.")
    for change in result.changes:
        if change.far == far:
            found = change.other or change.same
            points = difference(-found.value, -found.high, -found.low)
            lines.append(f"{change.attack}, {change.space} against raw: {points} points.")
    if result.cells:
        lines.append(f"For each target: {_passes(result.cells[0])}.")
    return lines


def _control(points: Sequence[InversionSuccess], far: float) -> float | None:
    return next((one.same.value for one in points if (one.far, one.judge) == (far, ALL_JUDGES)), None)


def _passes(cell: InversionCell) -> str:
    each = cell.each
    return (
        f"{each.encoder_forward:,.0f} passes through the encoder and {each.encoder_backward:,.0f} back, "
        f"{each.seconds:.1f} s ({cell.attack})"
    )


def _headline_cells(result: InversionResult, far: float) -> list[tuple[str, str, str]]:
    headline = result.headline
    assert headline is not None, "there is a rate where there is a headline"
    share = inverted(headline.point)
    target = "other photos of the person" if headline.point.other is not None else "the photo it was made from"
    attack = f"{interval(share.low, share.high)} match {target}; attack {headline.attack}"
    made = "Faces" if headline.gives_pictures else "Templates"
    cells = [(f"{made} made from a vector", percent(share.value), attack)]
    cells.append(("By chance", percent(headline.point.derangement.value), "match somebody else"))
    ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (far, ALL_JUDGES)), None)
    if ceiling is not None:
        cells.append(("A real second photo (ceiling)", percent(ceiling.other.value), "match other photos of them"))
    return cells


def _heat_map(result: InversionResult, far: float) -> Figure | None:
    """Attack × space, coloured by success."""
    attacks, spaces = (
        list(dict.fromkeys(names)) for names in zip(*((c.attack, c.space) for c in result.cells), strict=True)
    )
    rows: Rows = []
    for cell in result.cells:
        point = cell.point(far)
        if point is not None:
            value = inverted(point).value
            place = {"x": _drawn(cell.space, spaces, "space"), "y": _drawn(cell.attack, attacks, "attack")}
            rows.append({**place, "value": value, "text": in_percent(value)})
    if not rows:
        return None
    x = alt.X("x:N", title=None, sort=None, axis=alt.Axis(labelAngle=0, domain=False, ticks=False))
    y = alt.Y("y:N", title=None, sort=None, axis=alt.Axis(domain=False, ticks=False, minExtent=60))
    shade = alt.Color("value:Q", scale=alt.Scale(domain=[0, 1], range=["#eef2f6", ERASERS[0]]), legend=None)
    layers = [data(rows).mark_rect().encode(x=x, y=y, color=shade)]
    light = [row for row in rows if float(row["value"]) <= 0.5]
    # Cells keep their colours on dark paper, so their text does too; INK would turn light there.
    for ink, of in (("black", light), ("white", [row for row in rows if row not in light])):
        layers.append(data(of).mark_text(fontSize=12, color=ink).encode(x=x, y=y, text="text:N"))
    said = "; ".join(f"{row['y']} on {row['x']} {row['text']} %" for row in rows)
    label = f"Share of reconstructions that pass for the person, by attack and space, at FAR {rate(far)}: {said}."
    height = max(60, 44 * len(attacks))
    drawn = draw(layers, label, width=max(200, 72 * len(spaces)), height=height)
    return Figure("Attack by space, % that pass for the person", drawn)


def _drawn(name: str, names: Sequence[str], kind: str) -> str:
    word = name.split(":", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    taken = [one for one in names if one.split(":")[0].split(" ")[0] == word]
    return word if word in _OWN_WORDS and len(taken) == 1 else f"{kind} {list(names).index(name) + 1}"


def _over_steps(result: InversionResult, far: float) -> Figure | None:
    """Success of the latent search over its steps, where several were run on one space."""
    found = [
        (float(cell.settings["steps"]), inverted(point))
        for cell in result.cells
        if cell.space == RAW and cell.attack.startswith("alsuv") and "steps" in cell.settings
        if (point := cell.point(far)) is not None
    ]
    if len({steps for steps, _ in found}) < 2:
        return None
    found.sort(key=lambda one: one[0])
    rows: Rows = [{"x": steps, "y": share.value, "low": share.low, "high": share.high} for steps, share in found]
    x = alt.X(
        "x:Q",
        title="steps",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(grid=False, values=[s for s, _ in found], format="d"),
    )
    y = alt.Y("y:Q", title="inverted", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    layers = [
        data(rows)
        .mark_area(opacity=0.15, color=ERASERS[0])
        .encode(x=x, y=alt.Y("low:Q", title="inverted"), y2="high:Q"),
        data(rows).mark_line(color=ERASERS[0], point=True).encode(x=x, y=y),
    ]
    lines = [[Cell(f"{steps:g}"), Cell(bounded(share))] for steps, share in found]
    shown = table(f"Latent search over its steps, raw vectors, FAR {rate(far)}", ("steps", "inverted"), lines)
    said = "; ".join(f"{steps:g} steps {percent(share.value)}" for steps, share in found)
    look = Look("latent search", ERASERS[0], (1, 0), "circle")
    return Figure(
        "Success over the budget", draw(layers, f"Inverted over steps, at FAR {rate(far)}: {said}."), (look,), shown
    )


def _success_table(result: InversionResult, far: float) -> Table:
    rows = []
    for cell in result.cells:
        point = cell.point(far)
        if point is not None:
            other = "–" if point.other is None else bounded(point.other)
            small = "did not converge: a failure says nothing" if cell.converged is False else ""
            rows.append(
                [
                    Cell(f"{cell.attack}, {cell.space}", small),
                    Cell(bounded(point.same)),
                    Cell(other),
                    Cell(percent(point.derangement.value)),
                ]
            )
    caption = f"Passes for the person at FAR {rate(far)}, all judges"
    return table(caption, ("attack and space", "the attacked photo", "other photos", "other people (chance)"), rows)


def _control_table(result: InversionResult, far: float) -> Table | None:
    rows = []
    for space in result.spaces:
        cell = next((one for one in result.cells if one.space == space.name and one.controls), None)
        for control in [] if cell is None else cell.controls:
            point = next((one for one in control.at if (one.far, one.judge) == (far, ALL_JUDGES)), None)
            if point is not None:
                other = "–" if point.other is None else bounded(point.other)
                cosine = "–" if control.cosine is None else f"{control.cosine.value:.2f}"
                rows.append(
                    [Cell(f"{control.name}, {space.name}"), Cell(bounded(point.same)), Cell(other), Cell(cosine)]
                )
    for one in result.ceiling:
        if (one.far, one.judge) == (far, ALL_JUDGES):
            rows.append([Cell("ceiling: another real photo"), Cell("–"), Cell(bounded(one.other)), Cell("–")])
    caption = f"Controls at FAR {rate(far)}: faces that nobody optimised, and real ones"
    return (
        table(caption, ("face", "the attacked photo", "other photos", "cosine with the target"), rows) if rows else None
    )


def _reached_table(result: InversionResult) -> Table:
    spaces = {space.name: space for space in result.spaces}
    rows = []
    for cell in result.cells:
        space, each = spaces[cell.space], cell.each
        second = "–" if space.second is None else f"{space.second.value:.2f}"
        reached = "–" if cell.reached is None else f"{cell.reached.value:.2f}"
        cost = f"{each.encoder_forward:,.0f} / {each.encoder_backward:,.0f}"
        cells = [reached, second, f"{space.strangers.value:.2f}", cost, f"{each.seconds:.2f}"]
        rows.append([Cell(f"{cell.attack}, {cell.space}", ", ".join(cell.knows)), *(Cell(one) for one in cells)])
    columns = ("attack and space", "cosine reached", "another real photo", "strangers", "passes / back", "seconds")
    return table("Median cosine with the stored vector, and the cost of one target", columns, rows)


def _judge_table(result: InversionResult) -> Table:
    rows = []
    for judge in result.judges:
        thresholds = ", ".join(
            f"{one.cosine:.3f} at {rate(one.far)}{' (coarse)' if one.resolution == 'coarse' else ''}"
            for one in judge.thresholds
        )
        error = judge.equal_error
        paper = "–" if error is None else f"{error.cosine:.3f}, FAR {percent(error.far)}"
        rows.append(
            [
                Cell(judge.name, "" if judge.independent else "judges templates of its own alone"),
                Cell(thresholds),
                Cell(paper),
            ]
        )
    return table("Judges", ("judge", "cosine at FAR", "at equal error, as the paper accepts"), rows)
