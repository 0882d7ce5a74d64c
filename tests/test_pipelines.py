"""If these fail, the GitHub Action, the pre-commit hook or the container does something else than the pages say."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import schemas
from tests.kit.results import audited, point, raw

ROOT = Path(__file__).resolve().parents[1]
POLICY = "[[require]]\nfar = 1e-4\ntar_max = {}\n"


def action() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with an audit of 30 % TAR, one that is worse, a policy, and ``unface`` on the path."""
    audited(raw()).save(tmp_path / "audit")
    audited(raw(point(0.6, 0.58, 0.62))).save(tmp_path / "worse")
    (tmp_path / "policy.toml").write_text(POLICY.format(0.5))
    program = tmp_path / "bin" / "unface"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m unface "$@"\n')
    program.chmod(0o755)
    return tmp_path


def run_step(name: str, folder: Path, **given: str) -> tuple[int, str]:
    """A step's script as GitHub runs it: bash, its inputs as variables."""
    (step,) = (one for one in action()["runs"]["steps"] if one.get("name") == name)
    inputs = {key: str(one.get("default", "")) for key, one in action()["inputs"].items()} | given
    env = {
        key: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], value)
        for key, value in step["env"].items()
    }
    env |= {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_OUTPUT": str(folder / "output")}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        script, cwd=folder, env={**os.environ, **env, "PATH": path}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_action_is_valid_by_githubs_schema() -> None:
    schema = schemas.action_schema()
    assert schemas.problems(action(), schema) == []
    broken = action()
    del broken["runs"]["using"]
    assert schemas.problems(broken, schema)


def test_a_linter_of_actions_finds_nothing() -> None:
    program = Path(sys.executable).parent / "zizmor"
    if not program.exists():
        pytest.skip("zizmor is not installed, which lints actions (pip install '.[test]')")
    words = [str(program), "--offline", "--no-progress", "action.yml"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_input_is_pasted_into_a_script() -> None:
    """An input that a pull request can choose must not become part of a command."""
    assert all("${{" not in step.get("run", "") for step in action()["runs"]["steps"])


@pytest.mark.parametrize(
    ("limit", "baseline", "code", "verdict"),
    [(0.5, "", 0, "passed"), (0.01, "", 3, "failed"), (0.5, "audit", 0, "passed"), (0.01, "worse", 3, "failed")],
)
def test_the_gate_step_ends_with_the_verdict_and_leaves_its_files(
    folder: Path, limit: float, baseline: str, code: int, verdict: str
) -> None:
    (folder / "policy.toml").write_text(POLICY.format(limit))
    assert run_step("Gate", folder, baseline=baseline, history="history.jsonl")[0] == code
    assert (folder / "output").read_text().splitlines() == [
        f"verdict={verdict}",
        "sarif=unface.sarif",
        "junit=unface.xml",
    ]
    assert all((folder / name).is_file() for name in ("unface.sarif", "unface.xml", "history.jsonl"))
    summary = (folder / "summary.md").read_text()
    assert summary.count("### ") == (2 if baseline else 1)


def test_the_gate_step_fails_on_a_regression_and_on_a_missing_policy(folder: Path) -> None:
    (folder / "policy.toml").write_text(POLICY.format(0.9))
    code, _ = run_step("Gate", folder, baseline="audit", result="worse")
    assert code == 3
    assert "unface diff: worse" in (folder / "summary.md").read_text()
    code, said = run_step("Gate", folder, policy="none.toml")
    assert code == 1
    assert "none.toml: cannot be read" in said


def test_the_audit_step_passes_each_line_as_one_option(folder: Path) -> None:
    program = folder / "bin" / "unface"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    code, said = run_step("Audit", folder, source="my faces.parquet", **{"audit-args": "--far=1e-3\n\n--rank=8\n"})
    assert (code, said.splitlines()) == (
        0,
        ["audit", "my faces.parquet", "--out", "audit", "--far=1e-3", "--rank=8"],
    )
    assert run_step("Audit", folder, source="x")[1].splitlines() == ["audit", "x", "--out", "audit"]


def test_the_hook_gates_the_committed_result(folder: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {"id", "name", "entry", "language"} <= hook.keys()
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    changed = ["audit/audit.json", "validation.json", "policy.toml", "a/policy.toml"]
    assert all(re.search(hook["files"], name) for name in changed)
    assert not any(re.search(hook["files"], name) for name in ["audit/report.html", "myaudit.json", "policy.toml.bak"])
    words = [*shlex.split(hook["entry"]), *hook["args"]]
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for limit, code in ((0.5, 0), (0.01, 3)):
        (folder / "policy.toml").write_text(POLICY.format(limit))
        done = subprocess.run(words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, check=False)
        assert done.returncode == code


def test_the_container_installs_the_wheel_and_starts_the_program_without_root() -> None:
    """As far as this can be tested without a container: what it copies is there, what it starts is installed."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    known = {"FROM", "ARG", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in steps} <= known
    found = {name: value for name, value in steps if name != "RUN"}
    *copied, _ = found["COPY"].split()
    assert copied == ["dist/unface-*.whl", "constraints.txt"]
    assert (ROOT / "constraints.txt").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert yaml.safe_load(found["ENTRYPOINT"]) == list(project["scripts"])
    minimum = project["requires-python"].removeprefix(">=")
    assert found["FROM"].startswith(f"python:{minimum}-")
    assert found["USER"] == "unface"
    for name, script in steps:
        if name == "RUN":
            subprocess.run(["sh", "-n", "-c", script], check=True)
