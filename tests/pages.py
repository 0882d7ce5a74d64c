"""Reads the commands and Python blocks out of a Markdown page and runs them in order, as a reader would."""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.kit.command import unface

ROOT = Path(__file__).resolve().parents[1]
SHELL = {"bash", "sh", "shell"}  # every line is a command
SESSION = {"console", ""}  # lines after "$ " are commands, the others their output
COMMAND = re.compile(r"(unface|make|python3?)(\s|$)")
NEEDS_NO_SHELL = re.compile(r"""unface\s([^|&;<>()$`\\'"*{}~#\n]|"[^"$`\\]*")*(#[^\n]*)?""")
SHOWN = {"NO_COLOR": "1", "COLUMNS": "100"}


@dataclass(frozen=True)
class Step:
    """One thing a page tells its reader to do; ``output`` is what it promises, None where it promises nothing."""

    where: str
    language: str
    text: str
    exit: int
    output: str | None = None


def steps(page: Path) -> Iterator[Step]:
    """Every command that starts with unface, make or python, and every Python block, in the page's order."""
    for line, language, exact, body in blocks(page):
        where = f"{page.name}:{line}"
        if language == "python":
            yield Step(where, "python", body, promised_exit(body))
        elif language in SHELL | SESSION:
            for command, output in commands(body, every_line=language in SHELL):
                if COMMAND.match(command):
                    yield Step(where, "shell", command, promised_exit(command), output if exact else None)


def blocks(page: Path) -> Iterator[tuple[int, str, bool, str]]:
    """(line, language, marked exact, text) of each fenced block."""
    fence, start, info, body = "", 0, [""], [""]
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})(.*)$", line)
        if not fence and mark:
            fence, start, info, body = mark[1], number, mark[2].lower().split() or [""], []
            indent = len(line) - len(line.lstrip())
        elif fence and line.strip() == fence:
            yield start, info[0], "exact" in info[1:], "\n".join(body)
            fence = ""
        elif fence:
            body.append(line[indent:])
        elif re.match(r"(\s{4,}|\t)\$ ", line):
            raise AssertionError(f"{page.name}:{number}: put this command in a ```console block, where it is tested")
    assert not fence, f"{page.name}:{start}: this block is never closed"


def commands(body: str, every_line: bool) -> Iterator[tuple[str, str]]:
    """(command, the output shown below it); a trailing backslash continues a command."""
    command, output = "", [""]
    for line in body.splitlines():
        if command.endswith("\\"):
            command += "\n" + line.removeprefix("> ")
        elif every_line or line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            command, output = line.removeprefix("$ ").strip(), []
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def promised_exit(text: str) -> int:
    found = re.search(r"# exit (\d+)", text)
    return int(found[1]) if found else 0


def problems(
    page: Path, folder: Path, programs: Path = Path(sys.executable).parent, *, in_this_process: bool = False
) -> Iterator[str]:
    """Follow the page inside ``folder``; one sentence for each step that did not go as the page says.

    With ``in_this_process`` commands that need no shell are run here, which saves two seconds of imports for each.
    """
    names: dict[str, object] = {"__name__": "__main__"}  # Python blocks of one page continue each other
    for step in steps(page):
        if step.language == "python":
            code, shown = run_python(step, folder, names)
        elif runs_unface(step.text):
            here = in_this_process and NEEDS_NO_SHELL.fullmatch(step.text)
            code, shown = run_here(step.text, folder) if here else run_shell(step.text, folder, programs)
        else:
            missing = what_is_missing(step.text)
            if missing or step.output is not None:
                yield f"{step.where}: `{step.text}`: {missing or 'is not run, so its output cannot be exact'}"
            continue
        if code != step.exit:
            yield f"{step.where}: exit {code}, not {step.exit}, from:\n{step.text}\n{shown}"
        elif step.output is not None and tidy(shown) != tidy(step.output):
            yield f"{step.where}: `{step.text}` does not print what is shown, but:\n{shown}"


def run_shell(command: str, folder: Path, programs: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"} | SHOWN,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    return done.returncode, done.stdout


def run_here(command: str, folder: Path) -> tuple[int, str]:
    with contextlib.chdir(folder), patch.dict(os.environ, SHOWN):
        done = unface(*shlex.split(command, comments=True)[1:])
    return done.code, done.out + done.err


def run_python(step: Step, folder: Path, names: dict[str, object]) -> tuple[int, str]:
    """Run a block in this process; a block that opens with >>> is held to the output it shows."""
    shown = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(shown):
        try:
            if step.text.startswith(">>>"):
                test = doctest.DocTestParser().get_doctest(step.text + "\n", names, step.where, None, 0)
                return int(doctest.DocTestRunner().run(test, clear_globs=False).failed > 0), shown.getvalue()
            exec(compile(step.text, step.where, "exec"), names)
        except SystemExit as leaving:
            code = leaving.code or 0
            return (code, shown.getvalue()) if isinstance(code, int) else (1, f"{shown.getvalue()}{code}")
        except Exception as error:
            return 1, f"{shown.getvalue()}{type(error).__name__}: {error}"
    return 0, shown.getvalue()


def runs_unface(command: str) -> bool:
    return re.match(r"unface(\s|$)|python3? (-m unface(\s|$)|-c )", command) is not None


def what_is_missing(command: str) -> str:
    """Why a make or python command cannot work in this repository; empty when it can."""
    program, *words = shlex.split(command, comments=True)
    if program == "make":
        targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        unknown = [word for word in words if not word.startswith("-") and "=" not in word and word not in targets]
        return f"the Makefile has no target {', '.join(unknown)}" if unknown else ""
    if words[:1] == ["-m"]:
        return "" if importlib.util.find_spec(words[1]) else f"there is no module {words[1]}"
    if words and words[0].endswith(".py"):
        return "" if (ROOT / words[0]).is_file() else f"there is no file {words[0]}"
    return "cannot be checked; show a file, -m or -c"


def tidy(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.strip().splitlines())
