"""If these fail, a gate's table, JUnit file or JSON belies its verdict, or a hostile name breaks out of them."""

import json
import os
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tests.auditing.made import point
from tests.gate.made import WARNING, audited, erased, gated, raw
from unface import UnfaceError
from unface.gate import GateResult, junit_xml, print_gate, write_ci_file

PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.5}
FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}
UNKNOWN: dict[str, object] = {"far": 1e-6, "tar_max": 0.5}
MATCHED = "photo pairs of one person matched, before erasure, at one false match in"
HOSTILE = 'x"/>]]><![CDATA[&<script>\x00\x1b[31m\ufffe\n[bold]'


@pytest.fixture
def mixed() -> GateResult:
    return gated(audited(raw(), findings=[WARNING]), PASSES, FAILS, UNKNOWN)


@pytest.fixture
def hostile() -> GateResult:
    result = audited(raw(), erased(HOSTILE, point(0.3, 0.2, 0.4, probe=HOSTILE)))
    result = result.model_copy(update={"source": result.source.model_copy(update={"name": HOSTILE})})
    return gated(result, PASSES, FAILS, {**PASSES, "probe": HOSTILE[::-1]})


def printed(result: GateResult, width: int = 120) -> str:
    page = StringIO()
    print_gate(result, Console(file=page, width=width, color_system=None))
    return page.getvalue()


def test_the_table_has_a_row_and_a_sentence_for_each_rule_and_ends_with_the_verdict(mixed: GateResult) -> None:
    lines = [line.rstrip() for line in printed(mixed, width=160).splitlines()]
    assert lines == [
        "faces.parquet: the worse end of each 95 % interval must be within its limit",
        f"   verdict       rule{'':80}measured             limit",
        f"1  passed        {MATCHED} 10,000     30.0 % [28.0, 32.0]  at most 50.0 %",
        f"2  failed        {MATCHED} 10,000     30.0 % [28.0, 32.0]  at most 1.0 %",
        f"3  inconclusive  {MATCHED} 1,000,000  –                    at most 50.0 %",
        "",
        "1  lda at k = 4: the upper end, 32.0 %, is within the limit (TAR in raw at FAR 1e-4, every k, worst probe)",
        "2  lda at k = 4: 30.0 % is more than 1.0 % (TAR in raw at FAR 1e-4, every k, worst probe)",
        "3  FAR 1e-6 was not measured in raw; the audit has 1e-4 (TAR in raw at FAR 1e-6, every k, worst probe)",
        "!  the result has 1 warning; see its findings",
        "",
        "Failed: 1 of 3 rules failed, 1 could not be evaluated (exit 3).",
    ]


def test_a_reason_that_rules_share_is_printed_once() -> None:
    text = printed(gated(audited(raw()), UNKNOWN, UNKNOWN))
    assert text.count("was not measured in raw") == 1
    assert "\n1, 2  FAR 1e-6 was not measured in raw" in text


def test_a_gate_that_could_evaluate_no_rule_says_so() -> None:
    assert printed(gated(audited(raw()), UNKNOWN)).startswith("faces.parquet: no rule could be evaluated\n")


def test_names_neither_steer_a_terminal_nor_are_taken_for_markup(hostile: GateResult) -> None:
    page = printed(hostile, width=400)
    assert not {"\x1b", "\x00"} & set(page)
    assert all("[bold]" in line or "]dlob[" in line for line in page.splitlines()[2:9] if line)
    assert len(page.splitlines()) == 11  # source, head, three rows, three reasons, verdict, and two left empty


def test_junit_has_a_failure_for_failed_and_an_error_for_inconclusive(mixed: GateResult) -> None:
    root = ElementTree.fromstring(junit_xml(mixed))
    (suite,) = root
    assert root.tag == "testsuites"
    assert suite.attrib == {
        "name": "unface gate: faces.parquet",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["error"]]
    assert [case.attrib["name"] for case in suite] == [
        f"rule {number}: {rule.rule}: {rule.limit}" for number, rule in enumerate(mixed.rules, 1)
    ]
    assert suite[1][0].attrib == {"message": "lda at k = 4: 30.0 % is more than 1.0 %", "type": "failed"}
    assert suite[1][0].text == "lda at k = 4: 30.0 % is more than 1.0 %; measured: 30.0 % [28.0, 32.0]"
    assert suite[2][0].text == "FAR 1e-6 was not measured in raw; the audit has 1e-4; measured: nothing"


def test_hostile_names_stay_text_in_junit(hostile: GateResult) -> None:
    (suite,) = ElementTree.fromstring(junit_xml(hostile))
    assert [case.tag for case in suite] == ["testcase"] * 3
    assert suite[1].attrib["name"] == f"rule 2: {hostile.rules[1].rule}: at most 1.0 %"
    assert 'x"/>]]><![CDATA[&<script>??[31m? [bold]' in suite.attrib["name"]
    assert [[child.tag for child in case.iter()] for case in suite] == [
        ["testcase", "system-out"],
        ["testcase", "failure"],
        ["testcase", "error"],
    ]


def test_the_json_holds_verdict_exit_code_and_the_deciding_numbers(mixed: GateResult) -> None:
    content = json.loads(json.dumps(mixed.as_dict()))
    assert (content["schema"], content["verdict"], content["exit_code"]) == ("unface.gate/2", "failed", 3)
    assert [rule["verdict"] for rule in content["rules"]] == ["passed", "failed", "inconclusive"]
    assert content["rules"][2]["measured"] is None
    assert content["rules"][1]["measured"] == {
        "value": 0.3,
        "low": 0.28,
        "high": 0.32,
        "level": 0.95,
        "limit": 0.01,
        "unit": "share",
        "probe": "lda",
        "k": 4,
        "far": 1e-4,
        "attack": None,
        "queries": None,
    }


def test_junit_replaces_an_earlier_file_and_leaves_nothing_else(mixed: GateResult, tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    path.write_text("old")
    write_ci_file(junit_xml(mixed), path, "--junit")
    assert path.read_bytes() == junit_xml(mixed)
    assert [file.name for file in tmp_path.iterdir()] == ["gate.xml"]


def test_a_full_disk_leaves_the_earlier_junit_as_it_was(
    mixed: GateResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "gate.xml"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UnfaceError) as caught:
        write_ci_file(junit_xml(mixed), path, "--junit")
    assert str(caught.value) == f"{path}: cannot be written (No space left on device); choose another --junit"
    assert (path.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)


def test_a_folder_in_the_place_of_junit_is_named(mixed: GateResult, tmp_path: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        write_ci_file(junit_xml(mixed), tmp_path, "--junit")
    assert str(caught.value) == f"{tmp_path}: is a folder; --junit takes a file"
    with pytest.raises(UnfaceError, match=r"cannot be written \(No such file or directory\)"):
        write_ci_file(junit_xml(mixed), tmp_path / "none" / "gate.xml", "--junit")
