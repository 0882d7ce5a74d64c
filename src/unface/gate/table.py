"""A gate on the terminal: one row for each rule, below it one sentence for each that says why, the verdict last."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unface.auditing.words import count
from unface.gate.outcome import Verdict
from unface.gate.result import GateResult
from unface.gate.words import measured

_STYLE = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.CANNOT_TELL: "bold yellow"}


def print_gate(result: GateResult, console: Console) -> None:
    """Print a gate's result."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("verdict", no_wrap=True)
    table.add_column("rule")
    table.add_column("measured")
    table.add_column("limit")
    for number, judged in enumerate(result.rules, 1):
        verdict = Text(judged.verdict, style=_STYLE[judged.verdict])
        found = measured(judged.found) if judged.found else "–"
        table.add_row(str(number), verdict, Text(judged.rule), Text(found), Text(judged.limit))
    console.print(Text(f"{result.source}: {_intervals(result)}", style="dim"))
    console.print(table)
    console.print()
    for number, judged in enumerate(result.rules, 1):
        console.print(Text(f"{number}  {judged.reason}"), highlight=False)
    if result.warnings:
        console.print(Text(f"!  the audit has {count(result.warnings, 'warning')}; read what it says", style="yellow"))
    console.print(Text(f"\n{result.summary}", style=_STYLE[result.verdict]))


def _intervals(result: GateResult) -> str:
    levels = {judged.found.level for judged in result.rules if judged.found}
    return f"{100 * min(levels):g} % intervals, whose far end must pass" if levels else "nothing could be compared"
