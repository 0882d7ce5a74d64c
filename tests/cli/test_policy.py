"""If these fail, ``--policy`` of audit or report ends with another exit code, or measures before it refuses."""

from pathlib import Path

import pytest

from tests.cli.quick import QUICK
from tests.kit.command import unface
from tests.kit.page import Page


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
