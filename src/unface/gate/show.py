"""A gate's result and a comparison on the terminal; eighty columns are enough."""

from typing import TYPE_CHECKING

from unface.gate.diff import Diff, Difference, Trend
from unface.gate.judge import GateResult, RuleResult
from unface.gate.rules import Verdict
from unface.page.tables import difference, print_safely, terminal_table
from unface.result.words import count, in_percent

if TYPE_CHECKING:
    from rich.console import Console

    from unface.result.numbers import Estimate

_STYLE = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_TREND = {
    Trend.WORSE: "bold red",
    Trend.BETTER: "green",
    Trend.WIDE: "yellow",
    Trend.VAGUE: "yellow",
    Trend.MISSING: "yellow",
}
_EXIT = {0: "green", 3: "bold red", 4: "bold yellow"}


def print_gate(result: GateResult, console: "Console") -> None:
    """A row for each rule in plain words, then why, with the rule in its own terms; the verdict last."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("verdict", no_wrap=True)
    table.add_column("rule")
    table.add_column("measured")
    table.add_column("limit")
    for number, rule in enumerate(result.rules, 1):
        verdict = Text(rule.verdict, style=_STYLE[rule.verdict])
        table.add_row(str(number), verdict, Text(rule.meaning), Text(str(rule.measured or "–")), Text(rule.limit))
    levels = {rule.measured.level for rule in result.rules if rule.measured}
    intervals = f"the worse end of each {100 * min(levels):g} % interval must be within its limit" if levels else ""
    print_safely(console, Text(f"{result.source}: {intervals or 'no rule could be evaluated'}", style="dim"))
    print_safely(console, table)
    console.print()
    reasons: dict[str, list[int]] = {}
    for number, rule in enumerate(result.rules, 1):
        reasons.setdefault(rule.reason, []).append(number)
    for reason, numbers in reasons.items():
        text = reason if len(numbers) > 1 else why(result.rules[numbers[0] - 1])
        print_safely(console, Text(f"{', '.join(map(str, numbers))}  {text}"))
    if result.warnings:
        print_safely(
            console, Text(f"!  the result has {count(result.warnings, 'warning')}; see its findings", style="yellow")
        )
    print_safely(console, Text(f"\n{result.summary}", style=_STYLE[result.verdict]))


def why(rule: RuleResult) -> str:
    """Why a rule ended as it did, with the rule in its own terms."""
    return rule.reason if rule.rule == rule.meaning else f"{rule.reason} ({rule.rule})"


def print_decision(result: GateResult, console: "Console", of: str = "") -> None:
    """The verdict in one line, and why for each rule that did not hold; ``of`` says which of several results."""
    from rich.text import Text

    lead = f"{of}: " if of else ""
    print_safely(console, Text(f"{lead}{result.summary}", style=_STYLE[result.verdict]))
    for number, rule in enumerate(result.rules, 1):
        if rule.verdict is not Verdict.PASSED:
            text = f"  rule {number} {rule.verdict}: {rule.meaning}, {rule.limit}. {rule.reason}"
            print_safely(console, Text(text))
    console.print()


def print_diff(diff: Diff, console: "Console") -> None:
    """What changed, the numbers that results are quoted by first, then the verdict."""
    from rich.text import Text

    same = diff.old == diff.new
    print_safely(console, Text(f"{diff.old}: old and new result" if same else f"{diff.old} → {diff.new}", style="dim"))
    shown = worth_showing(diff)
    table = terminal_table("In percent; differences in points, with intervals")
    table.add_column("")
    for column in ("old", "new", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    where = None
    for row in shown:
        if row.where != where and row.where:
            table.add_row(Text(row.where, style="bold"))
        where = row.where
        cells = [percent_of(row.old), percent_of(row.new), difference_of(row)]
        trend = Text("") if row.trend is Trend.SAME else Text(row.trend, style=_TREND[row.trend])
        table.add_row(Text(f"{row.what}, {row.at}"), *cells, trend)
    if shown:
        print_safely(console, table)
    for line in below(diff):
        print_safely(console, Text(line, style="dim"))
    print_safely(console, Text(f"\n{diff.summary}", style=_EXIT[diff.exit_code]))


def worth_showing(diff: Diff) -> list[Difference]:
    """The numbers that results are quoted by, and all that changed or could not be compared; by space."""
    rows = [row for row in diff.rows if row.headline or row.trend is not Trend.SAME]
    places = list(dict.fromkeys(row.where for row in rows))
    return sorted(rows, key=lambda row: places.index(row.where))


def below(diff: Diff) -> list[str]:
    """What to know about a comparison, in lines."""
    left = len(diff.rows) - len(worth_showing(diff))
    lines = [f"{count(left, 'more number')} without a clear change."] if left else []
    lines += [f"Only in the new result: {count(diff.added, 'number')}."] if diff.added else []
    reasons = dict.fromkeys(row.why for row in diff.rows if row.why)
    lines += [f"Not compared: {why}." for why in reasons]
    return [*lines, *diff.notes, "All intervals hold together at 95 %."] if diff.rows else lines


def percent_of(found: "Estimate | None") -> str:
    """6.6, or a dash."""
    return "–" if found is None else in_percent(found.value)


def difference_of(row: Difference) -> str:
    """−4.0 [−4.3, −3.7], with a star where it is paired."""
    if row.difference is None:
        return "–"
    star = "*" if row.people is not None else ""
    return f"{difference(row.difference.value, row.difference.low, row.difference.high)}{star}"
