"""If these fail, a CI system cannot read what the gate writes for it, or shows another verdict than the gate's."""

import json
from pathlib import Path

import pytest

from tests import schemas
from tests.auditing.made import point
from tests.cli.command import unface
from tests.gate.made import WARNING, audited, erased, gated, raw
from unface.gate import GateResult, gate_markdown, sarif

PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.5}
FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}
UNKNOWN: dict[str, object] = {"far": 1e-6, "tar_max": 0.5}
HOSTILE = 'x"/>]]>|`&<script>[a](http://b)\x00\x1b[31m\ufffe\n# heading'


@pytest.fixture
def mixed() -> GateResult:
    return gated(audited(raw(), findings=[WARNING]), PASSES, FAILS, UNKNOWN)


@pytest.fixture
def hostile() -> GateResult:
    result = audited(raw(), erased(HOSTILE, point(0.3, 0.2, 0.4, probe=HOSTILE)))
    result = result.model_copy(update={"source": result.source.model_copy(update={"name": HOSTILE})})
    return gated(result, PASSES, FAILS, {**PASSES, "probe": HOSTILE[::-1]})


def test_sarif_is_valid_by_the_schema_of_oasis(mixed: GateResult, hostile: GateResult) -> None:
    schema = schemas.sarif_schema()
    passed = gated(audited(raw()), PASSES)
    for result in (mixed, hostile, passed):
        assert schemas.problems(json.loads(sarif(result, Path("audit/audit.json"))), schema) == []
    broken = json.loads(sarif(mixed, Path("audit.json")))
    broken["runs"][0]["results"][0]["level"] = "grave"
    del broken["runs"][0]["tool"]
    assert len(schemas.problems(broken, schema)) == 2


def test_sarif_has_every_rule_and_a_result_for_each_that_did_not_pass(mixed: GateResult) -> None:
    (run,) = json.loads(sarif(mixed, Path("out/my audit.json")))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    first = "tar-in-raw-at-far-1e-4-every-k-worst-probe"
    assert rules == [first, f"{first}-2", "tar-in-raw-at-far-1e-6-every-k-worst-probe"]
    assert [(one["ruleId"], one["ruleIndex"], one["level"]) for one in run["results"]] == [
        (rules[1], 1, "error"),
        (rules[2], 2, "warning"),
    ]
    assert run["results"][0]["message"]["text"] == (
        "Failed: TAR in raw at FAR 1e-4, every k, worst probe, at most 1.0 %. "
        "Lda at k = 4: 30.0 % is more than 1.0 %; measured: 30.0 % [28.0, 32.0]."
    )
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "out/my%20audit.json", "uriBaseId": "%SRCROOT%"}
    assert json.loads(sarif(gated(audited(raw()), PASSES), Path("a.json")))["runs"][0]["results"] == []


def test_a_path_of_this_machine_does_not_get_into_sarif(mixed: GateResult, tmp_path: Path) -> None:
    text = sarif(mixed, tmp_path / "audit.json").decode()
    assert str(tmp_path) not in text
    assert '"uri": "audit.json"' in text


def test_the_same_rule_keeps_its_fingerprint_when_its_number_changes(mixed: GateResult) -> None:
    alone = gated(audited(raw(point(0.2, 0.1, 0.3))), FAILS)

    def prints(result: GateResult) -> list[dict[str, str]]:
        (run,) = json.loads(sarif(result, Path("audit.json")))["runs"]
        return [one["partialFingerprints"] for one in run["results"]]

    assert prints(alone) == prints(gated(audited(raw()), FAILS))
    assert len({json.dumps(one) for one in prints(mixed)}) == 2


def test_markdown_has_the_verdict_a_row_for_each_rule_and_why(mixed: GateResult) -> None:
    lines = gate_markdown(mixed).splitlines()
    assert lines[0] == "### ❌ unface gate: failed"
    assert lines[2] == "Failed: 1 of 3 rules failed, 1 could not be evaluated (exit 3)."
    said = "photo pairs of one person matched, before erasure, at one false match in 10,000"
    assert lines[8] == f"| ✅ passed | {said} | 30.0 % [28.0, 32.0] | at most 50.0 % |"
    assert lines[10].startswith("| ⚠️ inconclusive | ")
    assert lines[13] == "2. lda at k = 4: 30.0 % is more than 1.0 % (TAR in raw at FAR 1e-4, every k, worst probe)"
    assert lines[-1] == "Warnings of the result: 1; see its findings."


def test_names_become_neither_markup_nor_cells(hostile: GateResult) -> None:
    text = gate_markdown(hostile)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "rule" not in line]
    assert all(row.count("|") == 5 for row in rows)
    assert not any(sign in text for sign in ("<script", "](http", "`&", "\x1b", "\n# heading"))


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
    assert "Failed: 1 of 1 rule failed" in done.out
    assert summary.read_text().startswith("before\n### ❌ unface gate: failed\n")
    assert json.loads(log.read_text())["version"] == "2.1.0"
    other = tmp_path / "other.md"
    other.write_text("before\n")
    unface("gate", result, *flags, "--markdown", other, "--quiet")
    assert other.read_text().startswith("### ❌")
    assert unface("gate", result, *flags, "--markdown", "-").out == other.read_text()


@pytest.mark.parametrize(
    ("flags", "sentence", "code"),
    [
        (["--json", "--markdown", "-"], "both print", 2),
        (["--sarif", "."], ".: is a folder; --sarif takes a file", 1),
        (["--sarif", "audit/audit.json"], "is named twice", 1),
        (["--sarif", "a.x", "--markdown", "a.x"], "is named twice", 1),
        (["--markdown", "no/such.md"], "cannot be written", 1),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], sentence: str, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    audited(raw()).save(tmp_path / "audit")
    done = unface("gate", "audit/audit.json", "--tar-max", 0.5, "--far", 1e-4, *flags)
    assert done.code == code
    assert sentence in done.err
