"""If these fail, ``unface gate`` ends with another exit code than a build relies on, or does not say why."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.command import unface
from tests.kit.results import audited, change, erased, kept, raw
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
    assert both.out.splitlines()[-1] == "Failed: 1 of 2 rules failed (exit 3)."


def test_two_erasers_and_no_space_is_one_line_and_exit_1(tmp_path: Path) -> None:
    path = saved(audited(raw(), erased("isp"), erased("leace")), tmp_path)
    done = unface("gate", path, "--tar-max", 0.5, "--far", 1e-4)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("unface: rule 1 names no space and the audit has 2 erasers (isp, leace); ")
    assert done.err.count("\n") == 1
    assert unface("gate", path, "--tar-max", 0.5, "--far", 1e-4, "--space", "leace").code == 0
    assert unface("gate", path, "--retained-min", "knn=0.9", "--space", "leace").code == 4


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--tar-max", "5", "--far", "1e-4"], "--tar-max: 5.0 is not a share"),
        (["--tar-max", "nan", "--far", "1e-4"], "--tar-max: nan is not a share"),
        (["--tar-max", "0.1"], "--far: is missing; "),
        (["--tar-max", "0.1", "--far", "1e-4", "--k", "0"], "--k: 0 is not a whole number"),
        (["--retained-min", "knn"], "--retained-min: 'knn' is not MEASURE=SHARE, such as knn=0.9"),
        (["--retained-min", "knn=much"], "--retained-min: 'knn=much' is not MEASURE=SHARE"),
        (["--retained-min", "=0.9"], "--retained-min: '' is not the name of a measure"),
        (["--retained-min", "knn=90"], "--retained-min: 90.0 is not a share"),
    ],
)
def test_a_flag_that_makes_no_limit_is_one_line_and_exit_1(good: Path, flags: list[str], sentence: str) -> None:
    done = unface("gate", good, *flags)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith(f"unface: {sentence}")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "give --policy, or limits as flags: --tar-max with --far, or --retained-min"),
        (["--space", "isp"], "give --policy, or limits as flags: --tar-max with --far, or --retained-min"),
        (["--far", "1e-4"], "--far, --k and --probe go with --tar-max"),
        (["--policy", EXAMPLE, "--far", "1e-4"], "--policy holds all the rules; leave the other limits out"),
        (["--policy", EXAMPLE, "--retained-min", "knn=1"], "--policy holds all the rules; leave the other limits out"),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(good: Path, flags: list[object], sentence: str) -> None:
    done = unface("gate", good, *flags)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_bad_files_are_one_line_and_exit_1(good: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[[require]]\nfar = 1e-4\ntar_maximum = 0.1\n", encoding="utf-8")
    unknown = unface("gate", good, "--policy", policy)
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith(f"unface: {policy}: rule 1: unknown key 'tar_maximum'; ")
    newer = tmp_path / "newer.json"
    newer.write_text(good.read_text(encoding="utf-8").replace("unface.audit/2", "unface.audit/3"), encoding="utf-8")
    done = unface("gate", newer, "--policy", EXAMPLE)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"unface: {newer}: has schema 'unface.audit/3', this version reads 'unface.audit/2'; ")
    missing = unface("gate", tmp_path / "none.json", "--policy", EXAMPLE)
    assert (missing.code, missing.err) == (
        1,
        f"unface: {tmp_path / 'none.json'}: cannot be read (No such file or directory)\n",
    )


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


@pytest.mark.parametrize("verb", ["gate", "report"])
def test_a_folder_without_a_result_is_told_what_may_be_in_it(tmp_path: Path, verb: str) -> None:
    done = unface(verb, tmp_path, *(["--tar-max", 0.1, "--far", 1e-4] if verb == "gate" else []))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"unface: {tmp_path}: no result is in this folder; expected audit.json, validation.json, release.json, "
        "inversion.json, certificate.json or protection.json\n"
    )
