"""If these fail, ``--policy`` of audit or report ends with another exit code, or measures before it refuses."""

from pathlib import Path

import pytest

from tests.cli.command import unface
from tests.cli.quick import QUICK
from tests.page.read_page import Page


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def policy(folder: Path, *rules: str) -> Path:
    path = folder / "policy.toml"
    path.write_text("".join(f"[[require]]\n{rule}\n" for rule in rules), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("limit", "code", "line"),
    [
        ("tar_max = 0.99", 0, "Passed: 1 rule held, for the attackers, rates and people of this test (exit 0)."),
        ("tar_max = 0.01", 3, "Failed: 1 of 1 rule failed (exit 3)."),
        (
            "tar_max = 0.5\nspace = 'isp'",
            4,
            "Inconclusive: 1 of 1 rule could not be evaluated, which does not count as a pass (exit 4).",
        ),
    ],
    ids=["passed", "failed", "inconclusive"],
)
def test_the_verdict_is_the_first_line_and_the_exit_code_and_opens_the_page(
    faces: Path, tmp_path: Path, limit: str, code: int, line: str
) -> None:
    rules = policy(tmp_path, f"far = 0.05\ncoarse = 'allow'\n{limit}")
    done = unface("audit", faces, *QUICK, "--no-maps", "--album", "none", "--out", tmp_path / "a", "--policy", rules)
    assert (done.code, done.err) == (code, "")
    assert done.out.splitlines()[0] == line
    state = line.partition(":")[0]
    written = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert Page(written).one("p", **{"class": "state"}).words.endswith(state)
    assert unface("gate", tmp_path / "a", "--policy", rules).code == code
    again = unface("report", tmp_path / "a", "--policy", rules, "--out", tmp_path / "again.html")
    assert again.code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == written
    assert unface("report", tmp_path / "a", "--out", tmp_path / "bare.html").code == 0
    assert "No policy set" in (tmp_path / "bare.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rule", "options", "why"),
    [
        ("far = 1e-5\ntar_max = 0.1", "", "rule 1 asks for FAR 1e-5, and this audit measures 1e-3, 1e-4; add --far "),
        ("far = 1e-5\nbeats = 'pca'", "--far 1e-3", "asks for FAR 1e-5, and this audit measures 1e-3; add --far 1e-3,"),
        (
            "far = 1e-3\ntar_max = 0.1\nk = 3",
            "--far 1e-3 --k 1,2",
            "asks for k = 3, and this audit measures k = 1, 2; add --k 1,2,3",
        ),
        ("utility = 'knn'\nretained_min = 0.9", "", "asks for knn, which needs a set to measure it on; add --utility"),
        ("far = 1e-3\ntar_max = 0.1", "--eraser isp,sal", "names no space and there will be 2 erasers; add space ="),
        ("success_max = 0.1\nfar = 1e-3\nqueries = 9", "", "is about what 'unface validate' writes; leave it to 'unfa"),
        ("far = 1e-3\ntar_max = 0.1\ncontext_adjusted = true", "", "needs a column; add --group or --context"),
    ],
    ids=["far", "far of an improvement", "k", "utility", "space", "validation", "context"],
)
def test_what_the_audit_will_not_measure_is_refused_before_anything_is_read(
    tmp_path: Path, rule: str, options: str, why: str
) -> None:
    """There is no such file: it was not looked for."""
    rules, out = policy(tmp_path, rule), tmp_path / "audit"
    done = unface("audit", tmp_path / "absent.parquet", *options.split(), "--policy", rules, "--out", out)
    assert (done.code, done.out) == (1, "")
    assert why in done.err
    assert f"--policy {rules}: rule 1 " in done.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("rule", "options", "why"),
    [
        ("far = 1e-4\ntar_max = 0.1", "", "FAR 1e-4 needs at least"),
        (
            "far = 0.05\ntar_max = 0.1\nk = 3",
            "--far 0.05",
            "asks for k = 3, and this audit measures k = 1, 4",
        ),
        ("far = 0.05\ntar_max = 0.1\nk = 16", "--far 0.05", "give more pictures of each person and --images 16"),
    ],
    ids=["far", "k", "k beyond the pictures"],
)
def test_what_the_set_does_not_allow_is_refused_before_anything_is_measured(
    faces: Path, tmp_path: Path, rule: str, options: str, why: str
) -> None:
    done = unface("audit", faces, *options.split(), "--policy", policy(tmp_path, rule), "--out", tmp_path / "audit")
    assert (done.code, done.out) == (1, "")
    assert why in done.err
    assert not (tmp_path / "audit").exists()


def test_a_rule_about_the_higher_default_rate_does_not_ask_for_the_lower(faces: Path, tmp_path: Path) -> None:
    """Forty people allow neither: the one that is named is the one that the rule needs."""
    rules = policy(tmp_path, "far = 1e-3\ntar_max = 0.1")
    done = unface("audit", faces, "--policy", rules, "--out", tmp_path / "audit")
    assert done.code == 1
    assert "FAR 1e-3 needs at least" in done.err


def test_help_says_the_exit_codes() -> None:
    shown = " ".join(unface("audit", "--help").out.split())
    assert "passed (0), failed (3) or inconclusive (4)" in shown
