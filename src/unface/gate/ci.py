"""A gate's result and a comparison in the forms that CI systems show: SARIF, JUnit XML and Markdown."""

import hashlib
import json
import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import quote
from xml.etree import ElementTree

from unface._version import __version__
from unface.errors import UnfaceError, reason
from unface.gate.diff import Diff, Trend
from unface.gate.judge import GateResult, RuleResult
from unface.gate.rules import Verdict
from unface.gate.show import below, difference_of, percent_of, why, worth_showing
from unface.output.write import OutputError, write_file

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ELEMENT = {Verdict.PASSED: "system-out", Verdict.FAILED: "failure", Verdict.INCONCLUSIVE: "error"}
_LEVEL = {Verdict.FAILED: "error", Verdict.INCONCLUSIVE: "warning"}
_MARK = {Verdict.PASSED: "✅", Verdict.FAILED: "❌", Verdict.INCONCLUSIVE: "⚠️"}
_TREND = {Trend.WORSE: "❌", Trend.BETTER: "✅", Trend.SAME: "▫️", Trend.WIDE: "⚠️", Trend.VAGUE: "⚠️", Trend.MISSING: "⚠️"}
_SUMMARY = "GITHUB_STEP_SUMMARY"


def write_ci_file(content: bytes, path: Path, option: str) -> None:
    """Replaces what is there, by a rename once all is written."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; {option} takes a file")
    write_file(path, content, option=option)


def write_markdown(text: str, path: Path) -> None:
    """The file; the summary of a GitHub step is added to, since others write to it too."""
    if os.environ.get(_SUMMARY) != str(path):
        write_ci_file(text.encode(), path, "--markdown")
        return
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({reason(error)}); see to ${_SUMMARY}") from None


def sarif(result: GateResult, file: Path) -> bytes:
    """SARIF 2.1.0: the policy's rules, and a result for each that failed or is inconclusive, at the file judged.

    Rules that passed have no result: GitHub shows every result as an alert, and closes those that are gone.
    """
    names = _rule_ids(result.rules)
    uri = quote(PurePosixPath(os.path.relpath(file)).as_posix() if not file.is_absolute() else file.name)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": _plain(f"{rule.rule}: {rule.limit}")},
            "fullDescription": {"text": _plain(f"The policy requires: {rule.rule}, {rule.limit}.")},
            "help": {"text": "Do not release what failed or is inconclusive. docs/pipelines.md says what to do."},
            "defaultConfiguration": {"level": "error"},
        }
        for name, rule in zip(names, result.rules, strict=True)
    ]
    found = [
        {
            "ruleId": name,
            "ruleIndex": index,
            "level": _LEVEL[rule.verdict],
            "message": {"text": _plain(f"{rule.verdict.capitalize()}: {rule.rule}, {rule.limit}. {_sentence(rule)}")},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": 1},
                    }
                }
            ],
            "partialFingerprints": {"unfaceRule/v1": hashlib.sha256(f"{name}\x1f{rule.limit}".encode()).hexdigest()},
        }
        for index, (name, rule) in enumerate(zip(names, result.rules, strict=True))
        if rule.verdict is not Verdict.PASSED
    ]
    driver = {"name": "unface", "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": found,
        "columnKind": "unicodeCodePoints",
        "properties": {"source": result.source, "sourceSha256": result.source_sha256, "verdict": result.verdict},
    }
    log = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    return (json.dumps(log, indent=2, ensure_ascii=False) + "\n").encode()


def _rule_ids(rules: tuple[RuleResult, ...]) -> list[str]:
    """tar-in-isp-at-far-1e-4-every-k-worst-probe: the same as long as the rule is; numbered where two are alike."""
    names: list[str] = []
    for rule in rules:
        name = re.sub(r"[^a-z0-9]+", "-", rule.rule.lower()).strip("-") or "rule"
        same = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", one) is not None for one in names)
        names.append(f"{name}-{same + 1}" if same else name)
    return names


def _sentence(rule: RuleResult) -> str:
    return f"{rule.reason[:1].upper()}{rule.reason[1:]}; measured: {rule.measured or 'nothing'}."


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


def gate_markdown(result: GateResult) -> str:
    """A heading with the verdict, a table of the rules, and why each ended as it did."""
    lines = [f"### {_MARK[result.verdict]} unface gate: {result.verdict}", "", _escaped(result.summary), ""]
    lines += [f"Result: {_escaped(result.source)} (sha256 {_escaped(result.source_sha256[:12])})", ""]
    lines += ["| | rule | measured | limit |", "|---|---|---|---|"]
    for rule in result.rules:
        measured = str(rule.measured or "–")
        said = _escaped(rule.meaning)
        lines.append(f"| {_MARK[rule.verdict]} {rule.verdict} | {said} | {measured} | {rule.limit} |")
    lines += ["", *(f"{number}. {_escaped(why(rule))}" for number, rule in enumerate(result.rules, 1)), ""]
    if result.warnings:
        lines += [f"Warnings of the result: {result.warnings}; see its findings.", ""]
    return "\n".join(lines)


def diff_markdown(diff: Diff) -> str:
    """A heading with the verdict and a table of what changed."""
    mark = {0: "✅", 3: "❌", 4: "⚠️"}[diff.exit_code]
    lines = [f"### {mark} unface diff: {diff.verdict}", "", _escaped(diff.summary), ""]
    lines += [f"{_escaped(diff.old)} → {_escaped(diff.new)}", ""]
    if diff.rows:
        lines += ["| | number | old, % | new, % | difference in points |", "|---|---|---:|---:|---:|"]
    for row in worth_showing(diff):
        cells = (percent_of(row.old), percent_of(row.new), difference_of(row).replace("*", "\\*"))
        lines.append(f"| {_TREND[row.trend]} {row.trend} | {_escaped(row.name)} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{_escaped(line)}  " for line in below(diff)), ""])


def _escaped(text: str) -> str:
    """Names come from files: nothing in them may become markup, a link or another cell."""
    one_line = " ".join("".join(letter if letter.isprintable() else "?" for letter in text).split())
    # An address becomes a link by itself, also where its signs are escaped: a word joiner takes it apart.
    apart = re.sub(r"(?i)(?=//|@)|(?<=www)(?=\.)", "\u2060", one_line)
    return re.sub(r"([\\`*_{}\[\]<>|#!~$@&])", lambda sign: f"&#{ord(sign[0])};", apart)


def _plain(text: str) -> str:
    """Text of SARIF, in which [words](address) would be a link."""
    return text.replace("](", "\\](")
