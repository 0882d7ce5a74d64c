"""If these fail, ``unface gate`` ends with another exit code than a build relies on, or does not say why."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.command import unface
from tests.kit.results import audited, change, erased, kept, raw
from tests.refusals.table import require_refusal
from unface.result.audit import AuditResult

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.toml"
GOOD = audited(raw(), erased(changes=[change(-0.03, -0.04, -0.02)], utility=[kept(0.9, 0.85, 0.95)]))


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return saved(GOOD, tmp_path)


def saved(result: AuditResult, folder: Path) -> Path:
    return result.save(folder / "audit")


def test_a_good_audit_passes_the_example_policy(good: Path) -> None:
    done = unface("gate", good, "--policy", EXAMPLE)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("Passed: 3 rules held")


def test_usefulness_is_asked_for_by_measure(good: Path) -> None:
    assert unface("gate", good, "--retained-min", "knn=0.85").code == 0
    assert unface("gate", good, "--retained-min", "knn=0.86").code == 3
    assert unface("gate", good, "--retained-min", "linear=0.1").code == 4
    both = unface("gate", good, "--retained-min", "knn=0.8", "--retained-min", "knn=0.88", "--space", "isp")
    assert both.code == 3


def test_two_erasers_and_no_space_is_one_line_and_exit_1(tmp_path: Path) -> None:
    path = saved(audited(raw(), erased("isp"), erased("leace")), tmp_path)
    done = unface("gate", path, "--tar-max", 0.5, "--far", 1e-4)
    require_refusal(done, "policy", None, "rule 1 ", "isp, leace", "--space")
    assert unface("gate", path, "--tar-max", 0.5, "--far", 1e-4, "--space", "leace").code == 0
    assert unface("gate", path, "--retained-min", "knn=0.9", "--space", "leace").code == 4


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], "--policy --tar-max --far --retained-min"),
        (["--space", "isp"], "--policy --tar-max --far --retained-min"),
        (["--far", "1e-4"], "--far --k --probe --tar-max"),
        (["--policy", EXAMPLE, "--far", "1e-4"], "--policy"),
        (["--policy", EXAMPLE, "--retained-min", "knn=1"], "--policy"),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(good: Path, flags: list[object], names: str) -> None:
    done = unface("gate", good, *flags)
    assert (done.code, done.out) == (2, "")
    assert all(name in done.err for name in names.split())


@pytest.mark.parametrize(("limit", "code"), [(0.5, 0), (0.005, 3)])
def test_quiet_prints_nothing_and_ends_alike(good: Path, limit: float, code: int) -> None:
    done = unface("gate", good, "--tar-max", limit, "--far", 1e-4, "--quiet")
    assert (done.code, done.out, done.err) == (code, "", "")


def test_junit_never_replaces_what_is_read(good: Path, tmp_path: Path) -> None:
    before = good.read_bytes()
    link = tmp_path / "link.xml"
    link.symlink_to(good)
    for audit, junit in ((good, good), (good, link), (good.parent, good)):
        done = unface("gate", audit, "--policy", EXAMPLE, "--junit", junit)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"unface: {junit}: is named twice; ")
    assert good.read_bytes() == before


def test_the_installed_program_ends_with_the_same_codes(good: Path) -> None:
    def run(*arguments: object) -> int:
        command = [sys.executable, "-m", "unface", "gate", str(good), *map(str, arguments), "--quiet"]
        return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode

    assert run("--policy", EXAMPLE) == 0
    assert run("--tar-max", 0.005, "--far", 1e-4) == 3
    assert run("--tar-max", 0.5, "--far", 1e-6) == 4
