"""If these fail, a CI system cannot read what the gate writes for it, or shows another verdict than the gate's."""

import html
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import schemas
from tests.kit.command import unface
from tests.kit.documents import decision_line, terminal
from tests.kit.gating import FAILS, PASSES, UNKNOWN, gated, mixed
from tests.kit.golden import declare, golden
from tests.kit.results import WARNING, audited, erased, full_audit, point, raw
from unface import UnfaceError
from unface.gate import (
    Diff,
    GateResult,
    compare,
    diff_markdown,
    gate_markdown,
    junit_xml,
    sarif,
    write_ci_file,
    write_markdown,
)

GATES: dict[str, Callable[[], GateResult]] = {
    "passed": lambda: gated(audited(raw()), PASSES),
    "failed": lambda: gated(audited(raw(), findings=[WARNING]), PASSES, FAILS, UNKNOWN),
    "inconclusive": lambda: gated(audited(raw()), UNKNOWN, UNKNOWN, PASSES),
}
DIFFS: dict[str, Callable[[], Diff]] = {
    "worse": lambda: compare(audited(raw(), erased()), audited(raw(), erased("isp", point(0.03, 0.025, 0.035)))),
    "inconclusive": lambda: compare(audited(raw(), erased()), audited(raw())),
    "added": lambda: compare(audited(raw()), audited(raw(), erased())),
    "no-regression": lambda: compare(full_audit(), full_audit()),
}
declare(*(f"gate/{name}.{form}" for name in GATES for form in ("txt", "md", "sarif", "xml")))
declare(*(f"diff/{name}.{form}" for name in DIFFS for form in ("txt", "md")))


@pytest.mark.parametrize("name", GATES)
def test_a_gate_reads_as_it_did_wherever_it_is_shown(name: str) -> None:
    result = GATES[name]()
    golden(f"{terminal(result)}\n{decision_line(result)}\n{decision_line(result, 'sface')}", f"gate/{name}.txt")
    golden(gate_markdown(result), f"gate/{name}.md")
    golden(sarif(result, Path("out/my audit.json")).decode(), f"gate/{name}.sarif")
    golden(junit_xml(result).decode(), f"gate/{name}.xml")


@pytest.mark.parametrize("name", DIFFS)
def test_a_comparison_reads_as_it_did_wherever_it_is_shown(name: str) -> None:
    diff = DIFFS[name]()
    golden(terminal(diff), f"diff/{name}.txt")
    golden(diff_markdown(diff), f"diff/{name}.md")
    assert max(map(len, terminal(diff).splitlines())) <= 80


def test_sarif_is_valid_by_the_schema_of_oasis() -> None:
    schema = schemas.sarif_schema()
    for make in GATES.values():
        assert schemas.problems(json.loads(sarif(make(), Path("audit/audit.json"))), schema) == []
    broken = json.loads(sarif(mixed(), Path("audit.json")))
    broken["runs"][0]["results"][0]["level"] = "grave"
    del broken["runs"][0]["tool"]
    assert len(schemas.problems(broken, schema)) == 2


def test_sarif_has_every_rule_and_a_result_for_each_that_did_not_pass() -> None:
    (run,) = json.loads(sarif(mixed(), Path("out/my audit.json")))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules[1] == f"{rules[0]}-2", "the same rule with another limit"
    assert len(set(rules)) == 3
    assert [(one["ruleId"], one["ruleIndex"], one["level"]) for one in run["results"]] == [
        (rules[1], 1, "error"),
        (rules[2], 2, "warning"),
    ]
    assert str(mixed().rules[1].measured) in run["results"][0]["message"]["text"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "out/my%20audit.json", "uriBaseId": "%SRCROOT%"}
    alike = json.loads(sarif(gated(audited(raw()), FAILS, FAILS, FAILS, PASSES), Path("a.json")))["runs"][0]
    assert [rule["id"].removeprefix(rules[0]) for rule in alike["tool"]["driver"]["rules"]] == ["", "-2", "-3", "-4"]


def test_a_path_of_this_machine_does_not_get_into_sarif(tmp_path: Path) -> None:
    text = sarif(mixed(), tmp_path / "audit.json").decode()
    assert str(tmp_path) not in text
    assert '"uri": "audit.json"' in text


def test_the_same_rule_keeps_its_fingerprint_when_its_number_changes() -> None:
    alone = gated(audited(raw(point(0.2, 0.1, 0.3))), FAILS)

    def prints(result: GateResult) -> list[dict[str, str]]:
        (run,) = json.loads(sarif(result, Path("audit.json")))["runs"]
        return [one["partialFingerprints"] for one in run["results"]]

    assert prints(alone) == prints(gated(audited(raw()), FAILS))
    assert len({json.dumps(one) for one in prints(mixed())}) == 2


def test_junit_has_a_failure_for_failed_and_an_error_for_inconclusive() -> None:
    root = ElementTree.fromstring(junit_xml(mixed()))
    (suite,) = root
    assert root.tag == "testsuites"
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["error"]]
    assert [rule.limit in case.attrib["name"] for case, rule in zip(suite, mixed().rules, strict=True)] == [True] * 3
    assert suite[1][0].attrib == {"message": mixed().rules[1].reason, "type": "failed"}
    assert str(mixed().rules[1].measured) in (suite[1][0].text or "")


def test_markdown_has_the_verdict_first_and_a_row_for_each_rule() -> None:
    lines = gate_markdown(mixed()).splitlines()
    assert lines[0].startswith("### ❌ ")
    rows = [line for line in lines if line.startswith("| ") and "rule" not in line]
    assert [row.split()[1] for row in rows] == ["✅", "❌", "⚠️"]
    assert str(mixed().rules[0].measured) in rows[0]


def test_a_reason_that_rules_share_is_printed_once() -> None:
    result = GATES["inconclusive"]()
    assert terminal(result, width=300).count(result.rules[0].reason) == 1


def test_verdicts_have_their_colours_and_nothing_else_has() -> None:
    text = terminal(GATES["failed"](), width=200, colour=True)
    for said in ("\x1b[32mpassed      \x1b[0m", "\x1b[1;31mfailed      \x1b[0m", "\x1b[1;33minconclusive\x1b[0m"):
        assert said in text
    reasons = [line for line in text.splitlines() if line.startswith(("1  ", "2  ", "3  ")) and "\x1b" not in line]
    assert len(reasons) == 3, "numbers are not highlighted"
    worse = terminal(DIFFS["worse"](), width=200, colour=True).splitlines()
    assert sum("\x1b[1;31mworse\x1b[0m" in line for line in worse) == 2
    assert worse[-1].startswith("\x1b[1;31m")


def test_a_verdict_is_never_broken_by_a_narrow_terminal() -> None:
    text = terminal(mixed(), width=48)
    verdicts = ["passed", "failed", "inconclusive"]
    assert [word for word in verdicts if f"  {word} " in text] == verdicts
    assert max(map(len, text.splitlines())) <= 48
    diff = DIFFS["worse"]()
    assert any(line.rstrip().endswith("]  worse") for line in terminal(diff, width=50).splitlines())


def test_the_command_writes_all_forms_and_adds_to_a_step_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audited(raw()).save(tmp_path / "audit")
    summary, log = tmp_path / "summary.md", tmp_path / "gate.sarif"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    flags = ("--tar-max", 0.01, "--far", 1e-4)
    done = unface("gate", result, *flags, "--markdown", summary, "--sarif", log, "--junit", tmp_path / "x.xml")
    assert done.code == 3
    assert summary.read_text().startswith("before\n### ❌ ")
    assert json.loads(log.read_text())["version"] == "2.1.0"
    assert ElementTree.parse(tmp_path / "x.xml").getroot().attrib["failures"] == "1"
    other = tmp_path / "other.md"
    other.write_text("before\n")
    unface("gate", result, *flags, "--markdown", other, "--quiet")
    assert other.read_text().startswith("### ❌")
    assert unface("gate", result, *flags, "--markdown", "-").out == other.read_text()


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--json", "--markdown", "-"], 2),
        (["--sarif", "."], 1),
        (["--sarif", "audit/audit.json"], 1),
        (["--sarif", "a.x", "--markdown", "a.x"], 1),
        (["--markdown", "no/such.md"], 1),
    ],
)
def test_what_cannot_be_written_is_refused_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    audited(raw()).save(tmp_path / "audit")
    done = unface("gate", "audit/audit.json", "--tar-max", 0.5, "--far", 1e-4, *flags)
    assert (done.code, done.out) == (code, "")
    assert [path.name for path in tmp_path.rglob("*")] == ["audit", "audit.json"]


def test_a_summary_of_a_step_is_added_to_and_every_other_file_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, other = tmp_path / "summary.md", tmp_path / "other.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for path in (summary, summary, other, other):
        write_markdown("Zoë\n", path)
    assert (summary.read_text("utf-8"), other.read_text("utf-8")) == ("Zoë\nZoë\n", "Zoë\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UnfaceError, match="GITHUB_STEP_SUMMARY"):
        write_markdown("x", tmp_path)


def test_a_ci_file_replaces_an_earlier_one_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gate.xml"
    path.write_text("old")
    write_ci_file(junit_xml(mixed()), path, "--junit")
    assert path.read_bytes() == junit_xml(mixed())

    def fsync(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UnfaceError, match=r"gate\.xml: .*--junit"):
        write_ci_file(b"new", path, "--junit")
    assert path.read_bytes() == junit_xml(mixed())
    with pytest.raises(UnfaceError, match="--junit"):
        write_ci_file(b"new", tmp_path, "--junit")
    assert [file.name for file in tmp_path.iterdir()] == ["gate.xml"]


LINKS = [
    "https://evil.example/x",
    "www.evil.example",
    "mail@evil.example",
    "[ok](https://evil.example)",
    "//evil.example",
]


@pytest.mark.parametrize("name", LINKS)
def test_no_name_becomes_a_link(name: str) -> None:
    """A name in a result comes from whoever made the vectors; what is shown of it must not be clickable."""
    result = replace(GATES["failed"](), source=name, source_sha256=f"`{name}"[:12])
    shown = html.unescape(gate_markdown(result))
    assert "evil" in shown
    for link in ("://", "www.", "l@"):
        assert link not in shown
    assert "`" not in gate_markdown(result)
    rules = tuple(replace(rule, rule=name) for rule in result.rules)
    log = json.loads(sarif(replace(result, rules=rules), Path("audit.json")))
    texts = [found["message"]["text"] for found in log["runs"][0]["results"]]
    assert texts
    assert not [text for text in texts if re.search(r"(?<!\\)\]\(", text)]
