"""A gate as JUnit XML, one test case for each rule: failed is a failure, cannot tell an error."""

from pathlib import Path
from xml.etree import ElementTree

from unface.errors import UnfaceError
from unface.gate.outcome import Verdict
from unface.gate.result import GateResult
from unface.gate.words import measured
from unface.output.write import write_file

_ELEMENT = {Verdict.FAILED: "failure", Verdict.CANNOT_TELL: "error"}


def write_junit(result: GateResult, path: Path) -> None:
    """Write the XML; replaces what is there, by a rename once all is written."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; --junit takes a file")
    write_file(path, junit_xml(result), option="--junit")


def junit_xml(result: GateResult) -> bytes:
    """The same bytes for the same result."""
    counts = {
        "tests": str(len(result.rules)),
        "failures": str(result.count(Verdict.FAILED)),
        "errors": str(result.count(Verdict.CANNOT_TELL)),
        "skipped": "0",
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"unface gate: {result.source}", **counts})
    for number, judged in enumerate(result.rules, 1):
        name = f"rule {number}: {judged.rule}: {judged.limit}"
        case = ElementTree.SubElement(suite, "testcase", {"classname": "unface.gate", "name": name, "time": "0"})
        number_said = f"measured: {measured(judged.found)}" if judged.found else "measured: nothing"
        if judged.verdict in _ELEMENT:
            said = {"message": judged.reason, "type": judged.verdict.value}
            ElementTree.SubElement(case, _ELEMENT[judged.verdict], said).text = f"{judged.reason}; {number_said}"
        else:
            ElementTree.SubElement(case, "system-out").text = f"{judged.reason}; {number_said}"
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
