"""A gate's result on the terminal and as JUnit XML."""

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from unface.errors import UnfaceError
from unface.gate.judge import GateResult
from unface.gate.rules import Verdict
from unface.output.write import write_file
from unface.page.tables import print_safely
from unface.result.words import count

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_ELEMENT = {Verdict.PASSED: "system-out", Verdict.FAILED: "failure", Verdict.INCONCLUSIVE: "error"}


def print_gate(result: GateResult, console: "Console") -> None:
    """A row for each rule, then a sentence for each that says why, the verdict last."""
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
        table.add_row(str(number), verdict, Text(rule.rule), Text(str(rule.measured or "–")), Text(rule.limit))
    levels = {rule.measured.level for rule in result.rules if rule.measured}
    intervals = f"the worse end of each {100 * min(levels):g} % interval must be within its limit" if levels else ""
    print_safely(console, Text(f"{result.source}: {intervals or 'no rule could be evaluated'}", style="dim"))
    print_safely(console, table)
    console.print()
    for number, rule in enumerate(result.rules, 1):
        print_safely(console, Text(f"{number}  {rule.reason}"), highlight=False)
    if result.warnings:
        print_safely(
            console, Text(f"!  the audit has {count(result.warnings, 'warning')}; see its findings", style="yellow")
        )
    print_safely(console, Text(f"\n{result.summary}", style=_STYLE[result.verdict]))


def write_junit(result: GateResult, path: Path) -> None:
    """Write the XML; replaces what is there, by a rename once all is written."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; --junit takes a file")
    write_file(path, junit_xml(result), option="--junit")


def junit_xml(result: GateResult) -> bytes:
    """A test case for each rule: failed is a failure, inconclusive an error. The same bytes for the same result."""
    counts = {
        "tests": str(len(result.rules)),
        "failures": str(result.count(Verdict.FAILED)),
        "errors": str(result.count(Verdict.INCONCLUSIVE)),
        "skipped": "0",
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"unface gate: {result.source}", **counts})
    for number, rule in enumerate(result.rules, 1):
        name = f"rule {number}: {rule.rule}: {rule.limit}"
        case = ElementTree.SubElement(suite, "testcase", {"classname": "unface.gate", "name": name, "time": "0"})
        element = ElementTree.SubElement(case, _ELEMENT[rule.verdict])
        element.text = f"{rule.reason}; measured: {rule.measured or 'nothing'}"
        if rule.verdict is not Verdict.PASSED:
            element.attrib.update(message=rule.reason, type=rule.verdict.value)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
