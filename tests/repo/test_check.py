"""If these fail, ``make check`` passes over the tests of a change, runs past its minute, or hides what it left out."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.check import KEPT, ROOT, Change, Children, Known, Stage, changes, check, choose, stages, write_known

GOOD = Stage("style", (sys.executable, "-c", ""))
BAD = Stage("types", (sys.executable, "-c", "print('count.py:3: error'); raise SystemExit(1)"))
ENDLESS = Stage("types", (sys.executable, "-c", "import time; time.sleep(60)"))
FILES = {
    ".gitignore": ".pytest_cache/",
    "README.md": "toy",
    "src/toy/__init__.py": """
        from typing import TYPE_CHECKING
        _HOMES = {"page": "toy.high.page"}
        if TYPE_CHECKING:
            from toy.high.page import page as page
        """,
    "src/toy/low/__init__.py": "from toy.low.count import count\nfrom toy.low.other import other",
    "src/toy/low/count.py": "def count(): return 1",
    "src/toy/low/other.py": "def other(): return 2",
    "src/toy/high/__init__.py": "",
    "src/toy/high/page.py": "def page():\n    from toy.low import count\n    return count()",
    "src/toy/high/page.jinja": "{{ count }}",
    "tests/low/conftest.py": "",
    "tests/low/test_count.py": "from toy.low import count",
    "tests/low/test_other.py": "from toy.low import other",
    "tests/high/test_page.py": "import toy\n\ndef test(): toy.page()",
    "tests/high/test_program.py": "CODE = 'from toy.high.page import page'",
    "tests/test_readme.py": "NAME = 'README.md'",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a low and a high room, all committed."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "toy"
    for name, text in FILES.items():
        write(root, name, text)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(textwrap.dedent(text) + "\n")


def git(root: Path, *words: str) -> str:
    names = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", root, *names, *words], check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "a step")
    return git(root, "rev-parse", "HEAD").strip()


def change(root: Path, name: str) -> None:
    with (root / name).open("a") as file:
        file.write("# changed\n")


def paths(root: Path, known: dict[str, Known] | None = None) -> list[str]:
    return [test.path for test in choose(root, changes(root), known or {})]


def run_file(root: Path) -> Callable[[str], int]:
    """Runs a test file as a program: what it says and how it ends is up to the file."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    return lambda file: subprocess.run([sys.executable, file], check=False, env=environment).returncode


COUNT, OTHER, PAGE, PROGRAM, README = (
    *("tests/low/test_count.py", "tests/low/test_other.py", "tests/high/test_page.py"),
    *("tests/high/test_program.py", "tests/test_readme.py"),
)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/toy/low/count.py", [COUNT, PAGE, PROGRAM]),
        ("src/toy/low/other.py", [OTHER]),
        ("src/toy/high/page.py", [PAGE, PROGRAM]),
        ("src/toy/high/page.jinja", [PAGE, PROGRAM]),
        ("src/toy/low/__init__.py", [COUNT, OTHER, PAGE, PROGRAM]),
        ("tests/low/conftest.py", [COUNT, OTHER]),
        ("tests/low/test_other.py", [OTHER]),
        ("tests/low/test_new.py", ["tests/low/test_new.py"]),
        ("README.md", [README]),
        (".gitignore", []),
    ],
)
def test_the_tests_that_a_change_reaches_are_chosen_nearest_first(toy: Path, changed: str, expected: list[str]) -> None:
    change(toy, changed)
    assert paths(toy) == expected


def test_a_deleted_module_is_a_change_to_those_that_import_it(toy: Path) -> None:
    (toy / "src/toy/low/count.py").unlink()
    (toy / README).unlink()
    assert paths(toy) == [COUNT, PAGE, PROGRAM]


def test_what_failed_before_comes_first_and_quick_files_before_others(toy: Path) -> None:
    change(toy, "src/toy/low/count.py")
    assert paths(toy, {PAGE: Known(9.0)}) == [COUNT, PROGRAM, PAGE]
    assert paths(toy, {PAGE: Known(9.0, failed=True)}) == [PAGE, COUNT, PROGRAM]


def test_a_file_that_cannot_be_parsed_and_a_damaged_cache_hinder_nothing(toy: Path) -> None:
    change(toy, "src/toy/low/count.py")
    write(toy, "src/toy/high/broken.py", "def (")
    assert paths(toy) == [COUNT, PAGE, PROGRAM]
    (toy / KEPT / "imports.json").write_text("{")
    assert paths(toy) == [COUNT, PAGE, PROGRAM]


def test_files_that_are_not_committed_come_before_commits_of_the_branch(toy: Path) -> None:
    left = git(toy, "rev-parse", "HEAD").strip()
    git(toy, "checkout", "--quiet", "-b", "branch")
    for name in ("src/toy/low/count.py", "README.md"):
        change(toy, name)
    commit(toy)
    change(toy, "README.md")
    found = changes(toy)
    assert (set(found.uncommitted), set(found.committed)) == ({"README.md"}, {"src/toy/low/count.py"})
    assert found.said.startswith(f"compared with {left[:8]}, where this branch left main: 1 file not committed, 1 file")
    assert paths(toy) == [README, COUNT, PAGE, PROGRAM]


def test_on_the_main_branch_it_is_what_is_not_committed_or_else_the_last_commit(toy: Path) -> None:
    assert changes(toy).said == "no commit to compare with: all tests count as changed, quickest first"
    change(toy, "README.md")
    assert changes(toy).uncommitted == {"README.md"}
    commit(toy)
    found = changes(toy)
    assert (set(found.uncommitted), set(found.committed)) == (set(), {"README.md"})
    assert "the commit before the last" in found.said


def test_a_base_can_be_named(toy: Path) -> None:
    first = git(toy, "rev-parse", "HEAD").strip()
    for name in ("README.md", "src/toy/low/count.py"):
        change(toy, name)
        commit(toy)
    assert changes(toy, first).committed == {"README.md", "src/toy/low/count.py"}
    assert changes(toy, "HEAD").committed == frozenset()
    with pytest.raises(SystemExit, match="git knows no revision 'nowhere'"):
        changes(toy, "nowhere")


def test_outside_git_every_test_counts_as_changed_quickest_first(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(toy.parent))
    (toy / ".git").rename(toy / "not-git")
    known = {path: Known(second) for second, path in enumerate((README, PAGE, COUNT, OTHER, PROGRAM))}
    assert paths(toy, known) == [README, PAGE, COUNT, OTHER, PROGRAM]
    assert check(toy, [GOOD], run=run_file(toy)) == 0
    said = capsys.readouterr().out
    assert said.startswith("not a git checkout: all tests count as changed, quickest first\n")
    assert "\npassed    style, 5 of 5 test files (" in said


def test_a_stage_that_fails_makes_it_red_and_is_shown(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(toy, ".gitignore")
    assert check(toy, [GOOD, BAD], run=run_file(toy)) == 1
    said = capsys.readouterr().out
    assert re.search(r"^ok      style  [\d.]+ s$", said, re.MULTILINE)
    assert re.search(r"^FAILED  types  [\d.]+ s\n    count.py:3: error$", said, re.MULTILINE)
    assert "\nfailed    types\n" in said
    assert said.splitlines()[-1].startswith("RED after ")


def test_a_test_that_fails_near_the_change_leaves_out_the_rooms_above(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(toy, "src/toy/low/count.py")
    line = f"FAILED {COUNT}::test - assert 1 == 2"
    ended = str(toy / "ended")
    write(toy, COUNT, f"from toy.low import count; print({line!r}); open({ended!r}, 'w'); raise SystemExit(count())")
    # Both cores have work when the failure is seen
    later = f"from pathlib import Path\nwhile not Path({ended!r}).exists(): time.sleep(0.01)\ntime.sleep(0.5)"
    write(toy, "tests/low/test_count_again.py", f"import time\nfrom toy.low import count\n{later}")
    write_known(toy, {COUNT: Known(0.0)})
    assert check(toy, [GOOD], run=run_file(toy)) == 1
    said = capsys.readouterr().out
    assert line in said.splitlines()
    assert "left out  2 test files since tests nearer to the change fail (high 2): make check BUDGET=90\n" in said
    held = json.loads((toy / KEPT / "durations.json").read_text())
    assert (held[COUNT][1], held["tests/low/test_count_again.py"][1], PAGE in held) == (True, False, False)


def test_past_the_budget_what_runs_is_stopped_and_what_is_left_out_is_named(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(toy, "src/toy/low/count.py")
    write(toy, COUNT, "import time\nfrom toy.low import count\ntime.sleep(60)")
    write_known(toy, {COUNT: Known(0.1), PAGE: Known(0.1), PROGRAM: Known(30.0)})
    began = time.monotonic()
    assert check(toy, [ENDLESS], budget=3.5, run=run_file(toy)) == 0
    assert time.monotonic() - began < 50
    said = capsys.readouterr().out
    assert "left out  types, not finished within the budget: python -c import time; time.sleep(60)\n" in said
    assert "left out  3 test files for the budget (high 2, low 1): make check BUDGET=30\n" in said
    assert said.splitlines()[-1].startswith("green after ")


def test_a_process_that_is_stopped_ends_with_all_that_it_started_even_if_it_ignores_ctrl_c(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
        import os, pathlib, signal, subprocess, sys, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path({str(pids)!r}).write_text(f"{{os.getpid()}} {{child.pid}} .")
        time.sleep(60)
        """
    children = Children(tmp_path, tmp_path)
    children.start("deaf", (sys.executable, "-c", textwrap.dedent(code)))
    while not (pids.exists() and pids.read_text().endswith(".")):
        assert children.ended() == []
        time.sleep(0.01)
    began = time.monotonic()
    assert [child.name for child in children.stop()] == ["deaf"]
    assert time.monotonic() - began < 30
    for pid in map(int, pids.read_text().split()[:2]):
        with pytest.raises(ProcessLookupError):
            wait_for_end(pid)


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    code = f"""
        import pathlib, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
        """
    children = Children(tmp_path, tmp_path)
    children.start("careless", (sys.executable, "-c", textwrap.dedent(code)))
    while not (ended := children.ended()):
        time.sleep(0.01)
    assert [child.code for child in ended] == [0]
    with pytest.raises(ProcessLookupError):
        wait_for_end(int((tmp_path / "pid").read_text()))


def test_a_file_that_takes_longer_than_what_is_left_is_not_started(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(toy, "src/toy/low/other.py")
    write_known(toy, {OTHER: Known(100.0)})
    assert check(toy, [GOOD], run=run_file(toy)) == 0
    said = capsys.readouterr().out
    assert "left out  1 test file for the budget (low 1): make check BUDGET=120\n" in said


def wait_for_end(pid: int) -> None:
    """Raise ProcessLookupError once the process has ended; one that nobody waited for has ended too."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            raise ProcessLookupError
        time.sleep(0.05)


def test_ctrl_c_ends_it_in_one_line(toy: Path) -> None:
    code = f"""
        import sys
        from pathlib import Path
        from tests.check import Stage, check
        sleep = (sys.executable, "-c", "import time; time.sleep(60)")
        sys.exit(check(Path({str(toy)!r}), [Stage("types", sleep)]))
        """
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert "no commit to compare with" in run.stdout.readline()
    while not Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text():
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=30)
    assert (run.returncode, error) == (130, "check: interrupted\n")


def test_the_tests_of_a_file_run_without_the_slow_ones_and_a_failure_is_named(toy: Path) -> None:
    write(toy, "pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\nmarkers = ["slow"]')
    text = """
        import pytest

        def test_wrong(): assert 1 == 2

        @pytest.mark.slow
        def test_slow(): raise RuntimeError
        """
    write(toy, "tests/low/test_new.py", text)
    write(toy, "tests/low/test_all_slow.py", text.replace("def test_wrong(): assert 1 == 2", ""))
    code = f"import sys; from tests.check import *; sys.exit(check(Path({str(toy)!r}), [], base='HEAD'))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stderr
    assert "FAILED tests/low/test_new.py::test_wrong - assert 1 == 2" in done.stdout.splitlines()
    assert "passed    1 of 2 test files (low 1)" in done.stdout
    assert "RuntimeError" not in done.stdout


def test_in_this_repository_the_tests_of_a_changed_room_come_first() -> None:
    chosen = choose(ROOT, Change("", frozenset({"src/unface/pairs/tail.py"}), frozenset(), "HEAD"), {})
    rooms = [test.path.split("/")[1] for test in chosen]
    own = rooms.count("pairs")
    assert own > 2
    assert rooms[:own] == ["pairs"] * own
    assert {"auditing", "cli", "gate"} < set(rooms)


def test_the_stages_are_those_of_make_lint_and_the_recorded_numbers() -> None:
    names = [stage.name for stage in stages(ROOT)]
    assert names == ["numbers", "style", "format", "layers", "types"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = [makefile.partition(f"\n{target}:")[2].partition("\n\n")[0].splitlines()[1:] for target in ("lint", "style")]
    programs = {Path(stage.command[0]).name for stage in stages(ROOT)[1:]}
    assert {line.split()[0].removeprefix("$(BIN)/") for lines in lint for line in lines} == programs


def test_the_hooks_of_those_who_work_on_it_fetch_nothing_and_run_it_before_a_push() -> None:
    content = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = content["repos"]
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    assert repository["repo"] == "local"
    assert {"id", "name", "entry", "language", "stages"} <= set.intersection(*map(set, hooks.values()))
    assert {hook["language"] for hook in hooks.values()} == {"system"}
    assert (hooks["check"]["entry"], hooks["check"]["pass_filenames"]) == ("make check", False)
    assert {name: hook["stages"] for name, hook in hooks.items()} == {
        "style": ["pre-commit"],
        "format": ["pre-commit"],
        "check": ["pre-push"],
    }
    assert content["default_install_hook_types"] == ["pre-commit", "pre-push"]
