"""If these fail, the program ends with another code, or says more or less than one line, when something is wrong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.quick import QUICK
from tests.kit.command import unface
from unface import __version__
from unface.memory import _shown, memory_budget


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["audit", "faces.parquet"],
        ["audit", "faces.parquet", "--out", "x", "--unknown"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "0"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "many"],
        ["audit", "faces.parquet", "--out", "x", "--images", "1"],
        ["audit", "faces.parquet", "--out", "x", "--bootstraps", "99"],
        ["audit", "faces.parquet", "--out", "x", "--seed", "-1"],
        ["audit", "faces.parquet", "--out", "x", "--threads", "0"],
        ["audit", "a.parquet", "b.parquet", "--out", "x"],
        ["measure"],
        ["--unknown"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_two_says_why_and_makes_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = unface(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Usage: ")
    assert "\nError: " in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_printed() -> None:
    done = unface("--version")
    assert (done.code, done.out, done.err) == (0, f"unface {__version__}\n", "")


def test_after_two_dashes_the_memory_budget_is_no_option(tmp_path: Path) -> None:
    assert unface("gate", tmp_path, "--", "--memory", "1k").err.startswith("Usage: ")


def test_a_memory_budget_without_a_size_says_so_and_takes_no_other_word_for_it(tmp_path: Path) -> None:
    done = unface("gate", tmp_path, "--memory")
    assert (done.code, "Option '--memory' requires an argument" in done.err) == (2, True)


def test_the_schema_is_json_of_an_audit_result() -> None:
    done = unface("schema")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["title"] == "AuditResult"
    assert found["additionalProperties"] is False
    assert "listings" not in found["properties"]
    assert found["properties"]["schema"]["const"] == "unface.audit/2"


def test_the_installed_program_ends_with_the_same_codes(faces: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "unface", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    missing = run("audit", tmp_path / "none.parquet", "--out", tmp_path / "out")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "unface: none.parquet: no such file or directory\n"
    assert run("audit").returncode == 2
    done = run("audit", faces, "--out", tmp_path / "out", "--json", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (tmp_path / "out" / "audit.json").read_text(encoding="utf-8")


def test_running_out_of_memory_is_one_line(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("unface.auditing.attack.run_panel", too_much)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"unface: needs more memory than the budget of {_shown(memory_budget())}; raise --memory\n"
    assert not (tmp_path / "out").exists()


def test_an_interrupt_exits_130_and_writes_nothing(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("unface.auditing.attack.run_panel", interrupted)
    before = signal.getsignal(signal.SIGINT)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (130, "")
    assert done.err == "unface: interrupted; no file was left half-written\n"
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "out").exists()


def test_a_terminal_without_our_signs_is_no_reason_to_fail(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert done.returncode == 0
    assert b"? worst case" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_output_that_cannot_be_written_is_one_line(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert (
        done.stderr
        == b"unface: cannot write the output (No space left on device); see to that and give the same command again\n"
    )
