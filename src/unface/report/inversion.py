"""inversion.json on the terminal: drawn from the file alone."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from unface.page.tables import bounded, difference, print_safely, terminal_table
from unface.result.inversion import InversionCell, InversionResult, InversionSuccess
from unface.result.validation import ALL_JUDGES
from unface.result.words import count, in_percent, interval, percent, rate

_MARK = {"invalid": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "dim")}


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
    for finding in result.findings:
        mark, style = _MARK[finding.severity]
        print_safely(console, Text(f"{mark} {finding.about}: {finding.text}", style=style))
    for missing in result.not_measured:
        print_safely(console, Text(f"· not measured: {missing}", style="dim"))


def _terminal(result: InversionResult, far: float) -> TerminalTable:
    made = terminal_table(f"Passes for the person, in % of targets, at FAR {rate(far)}")
    made.add_column("attack", max_width=14)
    made.add_column("space", max_width=10)
    for name in ("same photo", "other photos", "chance", "cosine", "2nd"):
        made.add_column(name, justify="right", no_wrap=True)
    second = {space.name: space.second for space in result.spaces}
    for cell in result.cells:
        point = cell.point(far)
        if point is None:
            continue
        shares = [
            "–" if share is None else f"{in_percent(share.value)} {interval(share.low, share.high)}"
            for share in (point.same, point.other)
        ]
        beside = second.get(cell.space)
        style = "dim" if cell.converged is False else ""
        made.add_row(
            cell.attack,
            cell.space,
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
