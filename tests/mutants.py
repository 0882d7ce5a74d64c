"""Break the code in one place at a time and see whether a test notices: ``python -m tests.mutants run --room pairs``.

A mutant changes behaviour: an operator, a number, a word that decides. Prose, any string with a space, is left alone:
no test has to pin a sentence. ``sample`` draws the mutants of ``tests/mutants.tsv``. ``run`` judges them by the tests
that run the changed function. ``compare`` asks another checkout, with its tests, which of those that were noticed
before survive there. A mutant is found again by its function and the text of its line, not by the number of the line.
"""

import argparse
import ast
import contextlib
import csv
import functools
import hashlib
import importlib
import itertools
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve()
# The quickest first
ROOMS = ["metrics", "pairs", "gate", "result", "release", "validate"]
ROOMS += ["probe", "erase", "auditing", "invert", "scale", "protect"]
EVERYWHERE = ["known_answers", "peers", "contract", "refusals", "documents", "golden"]
BESIDE = {
    "gate": ["test_pipelines.py"],
    "auditing": ["gate", "cli"],
    "result": ["gate", "cli"],
}
BUDGET_S = 3.0
"""How many CPU-seconds of tests a mutant may take, beside those of the guard; the quickest are run first."""
COMPARE_BUDGET_S = 30.0
LONGEST_S = 3.0
"""Tests that take more CPU-seconds, or have the ``slow`` mark, are left out."""
WHOLE = ("tests/golden/", "tests/refusals/", "tests/documents/")
"""Here a long test is left in: others share what the first has made."""
GUARD = "tests/golden/"
"""Its quick cases are run last, however long they take."""
WALL_LIMIT_S = 600.0


# --- What can be changed ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A change of the source, found again by the text of its line."""

    file: str
    function: str
    """Qualified name of the function, or of the class; empty for a statement of the module."""
    kind: str
    before: str
    """The first line that the change touches, without indentation."""
    after: str
    nth: int
    """Which of the equal changes of the function, in the order of its lines."""

    @property
    def room(self) -> str:
        return self.file.split("/")[2].removesuffix(".py")


@dataclass(frozen=True)
class Change:
    """A mutant and where it is in one version of the source."""

    mutant: Mutant
    start: int
    end: int
    text: bytes
    names: frozenset[str]
    """Of a statement outside of functions: the names that it gives a value to."""

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text + source[self.end :]


OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
WORD_TAKERS = {"get", "pop", "setdefault", "startswith", "endswith"}
SILENT = {"debug", "info", "warning", "warn", "exception", "say", "tick", "advance"}
"""Calls that only tell a person something."""


class Finder(ast.NodeVisitor):
    """Collect the changes of one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.changes: list[Change] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._names: frozenset[str] = frozenset()
        self._in_function = False
        self._seen: dict[tuple[str, ...], int] = {}
        self.visit(ast.parse(source))

    def _at(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, kind: str, start: int, end: int, text: str) -> None:
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", start)
        line = self.source[first:last]
        if text.encode() == self.source[start:end]:
            return
        changed = (line[: start - first] + text.encode() + line[min(end, last) - first :]).decode().strip()
        identity = (".".join(self._scope), kind, line.decode().strip(), changed)
        nth = self._seen[identity] = self._seen.get(identity, -1) + 1
        names = frozenset() if self._in_function else self._names
        self.changes.append(Change(Mutant(self.file, *identity, nth), start, end, text.encode(), names))

    def _add_operator(self, kind: str, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        if type(operator) not in OPERATORS:
            return
        written, instead = OPERATORS[type(operator)]
        start, end = self._at(left)[1], self._at(right)[0]
        pattern = rb"\s+".join(re.escape(word.encode()) for word in written.split())
        if found := re.search(rb"(?<![\w])" * written.isalpha() + pattern, self.source[start:end]):
            self._add(kind, start + found.start(), start + found.end(), instead)

    # Scopes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        for statement in node.body:
            if not isinstance(statement, ast.FunctionDef):
                self._names = frozenset({node.name}) | _targets(statement)
            self.visit(statement)
        self._scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in {"__repr__", "__str__"}:
            return
        outer, self._in_function = self._in_function, True
        self._scope.append(node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if isinstance(default, ast.Constant) and isinstance(default.value, bool | int | float):
                self._constant(default, "default")
        self._scope.append("<locals>")
        inner = self._scope.copy()
        self._scope.pop()
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                self._scope = inner.copy()
                self.visit(statement)
                self._scope = inner[:-1]
            else:
                self.visit(statement)
        self._scope.pop()
        self._in_function = outer

    def visit_Module(self, node: ast.Module) -> None:
        for statement in node.body:
            self._names = _targets(statement)
            if "__all__" not in self._names:
                self.visit(statement)

    # What is left alone

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if not any(isinstance(part, ast.Constant) and " " in str(part.value) for part in node.values):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self.visit(part.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """A message is text; that something is refused is behaviour."""
        self._add("statement", *self._at(node), "pass")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) not in {"TYPE_CHECKING", "__name__ == '__main__'"}:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "repr":
            self.visit(node.value)

    # What is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            self._add_operator("comparison", operator, left, right)
        for part in [node.left, *node.comparators]:
            self._words(part)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(
            isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        if not text:
            self._add_operator("arithmetic", node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add_operator("boolean", node.op, node.values[0], node.values[1])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self._at(node)[0]
        if isinstance(node.op, ast.Not):
            self._add("not", start, start + len("not "), "")
        elif isinstance(node.op, ast.USub):
            self._add("minus", start, start + 1, "")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS:
            start, end = self._at(node.target)[1], self._at(node.value)[0]
            written, instead = OPERATORS[type(node.op)]
            at = self.source.index(f"{written}=".encode(), start, end)
            self._add("arithmetic", at, at + len(written), instead)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool | int | float):
            self._constant(node, "truth" if isinstance(node.value, bool) else "number")

    def _constant(self, node: ast.Constant, kind: str) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(kind, *self._at(node), str(not value))
        elif isinstance(value, int):
            self._add(kind, *self._at(node), str(value + 1))
            if value > 2:
                self._add(kind, *self._at(node), str(value - 1))
        elif isinstance(value, float):
            self._add(kind, *self._at(node), repr(value * 2 or 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in SILENT:
            return
        if name in WORD_TAKERS and node.args:
            self._words(node.args[0])
        simple = [isinstance(arg, ast.Name | ast.Attribute) for arg in node.args]
        for at in range(len(simple) - 1):
            first, second = node.args[at], node.args[at + 1]
            if simple[at] and simple[at + 1] and first.lineno == second.end_lineno:
                (start, first_end), (second_start, end) = self._at(first), self._at(second)
                swapped = (
                    self.source[second_start:end] + self.source[first_end:second_start] + self.source[start:first_end]
                )
                self._add("swapped", start, end, swapped.decode())
                break
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if ast.unparse(node.value) in {"Literal", "Annotated"}:
            return
        self._words(node.slice)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key in node.keys:
            if key is not None:
                self._words(key)
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._words(node.value)

    def _words(self, node: ast.expr) -> None:
        """Change a word that is compared or is a key."""
        if isinstance(node, ast.Tuple | ast.Set | ast.List):
            for element in node.elts:
                self._words(element)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[^\s\"\\]+", node.value):
            start, end = self._at(node)
            if self.source[start:end] == f'"{node.value}"'.encode():
                other = "x" if node.value[0] != "x" else "y"
                self._add("word", start, end, f'"{other}{node.value[1:]}"')

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("returned", *self._at(node), "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            function = node.value.func
            if getattr(function, "attr", getattr(function, "id", "")) not in SILENT:
                self._add("statement", *self._at(node), "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add("statement", *self._at(node), "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("statement", *self._at(node), "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add("statement", *self._at(node), "pass")


def _targets(statement: ast.stmt) -> frozenset[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    return frozenset(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def draw(changes: Iterable[Change], count: int, seed: str) -> list[Mutant]:
    """Draw mutants of all kinds in turn, at most one a line."""
    changes = list(changes)
    random.Random(seed).shuffle(changes)
    kinds: dict[str, list[Mutant]] = {}
    for change in changes:
        kinds.setdefault(change.mutant.kind, []).append(change.mutant)
    drawn: list[Mutant] = []
    lines: set[tuple[str, str, str]] = set()
    while len(drawn) < count and any(kinds.values()):
        for mutants in kinds.values():
            while mutants and len(drawn) < count:
                mutant = mutants.pop()
                line = (mutant.file, mutant.function, mutant.before)
                if line not in lines:
                    lines.add(line)
                    drawn.append(mutant)
                    break
    return sorted(drawn, key=astuple)


# --- Who uses it -----------------------------------------------------------------------------------------------------


def functions_of(source: bytes) -> dict[str, set[str]]:
    """Qualified names of the functions of a file, and the words in each."""
    lines = source.decode().splitlines()
    functions: dict[str, set[str]] = {}

    def look_into(node: ast.AST, scope: list[str]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.setdefault(".".join([*scope, child.name]), {*scope}).update(_words_of(child, lines))
                inner = [*scope, child.name, "<locals>"]
            elif isinstance(child, ast.ClassDef):
                inner = [*scope, child.name]
            look_into(child, inner)

    look_into(ast.parse(source), [])
    return functions


def _words_of(node: ast.stmt, lines: list[str]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(lines[node.lineno - 1 : node.end_lineno])))


@functools.cache
def _outline() -> tuple[dict[str, set[str]], list[tuple[frozenset[str], set[str]]]]:
    """Words in each function, and names that each statement outside of functions makes, with the words in it."""
    functions: dict[str, set[str]] = {}
    statements: list[tuple[frozenset[str], set[str]]] = []
    for path in sorted(Path("src").rglob("*.py")):
        source = path.read_bytes()
        functions |= {f"{path}::{name}": words for name, words in functions_of(source).items()}
        lines = source.decode().splitlines()
        for node in ast.parse(source).body:
            made = frozenset({node.name}) if isinstance(node, ast.ClassDef) else _targets(node)
            statements += [(made, _words_of(node, lines))] if made else []
    return functions, statements


def users(names: frozenset[str]) -> tuple[set[str], set[str]]:
    """Functions that mention one of the names, and those that mention something made of them outside of functions."""
    functions, statements = _outline()
    wider = set(names)
    for _ in range(2):
        wider |= {name for made, words in statements if words & wider for name in made}
    direct = {function for function, words in functions.items() if words & names}
    return direct, {function for function, words in functions.items() if words & wider} - direct


# --- Running tests in forked processes --------------------------------------------------------------------------------

COLD = {
    "faiss",
    "grpc",
    "lance",
    "lancedb",
    "openvino",
    "playwright",
    "polars",
    "psycopg",
    "qdrant_client",
    "ray",
    "vl_convert",
}
"""Packages that every fork imports itself: their threads would not survive it."""


@dataclass
class Outcome:
    """What became of one process of tests."""

    failed: str
    """The first test that failed, or how the process ended; empty if all passed."""
    ran: int
    seconds: float


class Watch:
    """A pytest plugin: order tests, write down the first failure, and, if asked, which functions each test runs."""

    def __init__(self, report: Path, order: list[str] | None, functions: list[str] | None) -> None:
        self._report, self._order = report, order
        self._functions = functions
        self._tests: list[dict[str, Any]] = []
        self._ran = 0
        if functions is not None:
            self._places = {function: at for at, function in enumerate(functions)}
            # Shared with forked processes
            self._marks = mmap.mmap(-1, max(len(functions), 1))
            self._codes: set[CodeType] = set()
            self._root = str(Path("src").resolve()) + "/"
            signal.signal(signal.SIGPROF, _too_long)
            threading.settrace(self._called)
            sys.settrace(self._called)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code not in self._codes:
            self._codes.add(code)
            if code.co_filename.startswith(self._root):
                at = self._places.get(f"src/{code.co_filename[len(self._root) :]}::{code.co_qualname}")
                if at is not None:
                    self._marks[at] = 1

    def _reached(self) -> list[int]:
        marks = self._marks[:]
        reached = [at for at, mark in enumerate(marks) if mark]
        self._marks[:] = bytes(len(marks))
        self._codes.clear()
        return reached

    def pytest_collection_modifyitems(self, items: list[Any], config: Any) -> None:
        if self._order is not None:
            places = {name: at for at, name in enumerate(self._order)}
            left_out = [item for item in items if item.nodeid not in places]
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])
            config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._functions is not None:
            if not self._tests:
                self._tests.append({"name": "", "reached": self._reached(), "seconds": 0.0, "passed": False})
            sys.settrace(self._called)
            if not nodeid.startswith(WHOLE):
                signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            self._tests.append({"name": nodeid, "passed": True, "began": _spent()})

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._first(report.nodeid)
        if self._functions is not None and report.outcome != "passed":
            self._tests[-1]["passed"] = False

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._ran += 1
        if self._functions is not None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._tests[-1]["reached"] = self._reached()
            self._tests[-1]["seconds"] = round(_spent() - self._tests[-1].pop("began"), 3)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._first(f"{report.nodeid} (import)")

    def _first(self, name: str) -> None:
        if not self._report.exists():
            self._report.write_text(json.dumps({"failed": name, "ran": self._ran}))

    def finish(self) -> None:
        sys.settrace(None)
        here = str(Path.cwd())
        loaded = [
            name
            for name, module in sys.modules.items()
            if name.split(".")[0] not in COLD and not str(getattr(module, "__file__", here) or here).startswith(here)
        ]
        known = json.loads(self._report.read_text()) if self._report.exists() else {"failed": "", "ran": self._ran}
        self._report.write_text(json.dumps({**known, "tests": self._tests, "loaded": loaded}))


def _too_long(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def in_fork(
    files: list[str],
    scratch: Path,
    *,
    order: list[str] | None = None,
    functions: list[str] | None = None,
    expected_s: float = 0.0,
) -> Outcome:
    """Run tests of the current folder in a forked process; stop at the first failure unless functions are recorded."""
    report = scratch / "report.json"
    report.unlink(missing_ok=True)
    shutil.rmtree(scratch / "tmp", ignore_errors=True)
    (scratch / "tmp").mkdir(parents=True)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        cpu_s = None if functions is not None else int(2 * expected_s) + 15
        _child(files, scratch, Watch(report, order, functions), cpu_s)
    ended, status = 0, 0
    while not ended and time.monotonic() - began < WALL_LIMIT_S * (3 if functions else 1):
        ended, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0 if ended else 0.02)
    # Also ends what its tests started and left
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        os.waitpid(pid, 0)
    seconds = time.monotonic() - began
    shutil.rmtree(scratch / "tmp", ignore_errors=True)
    known = json.loads(report.read_text()) if report.exists() else {}
    _import_all(known.get("loaded", []))
    if not ended:
        return Outcome("(never ends)", 0, seconds)
    if os.WIFSIGNALED(status):
        return Outcome(known.get("failed") or f"(ended by {signal.Signals(os.WTERMSIG(status)).name})", 0, seconds)
    if not known:
        return Outcome(f"(ended with {os.waitstatus_to_exitcode(status)})", 0, seconds)
    return Outcome(known.get("failed", ""), known.get("ran", 0), seconds)


def _child(files: list[str], scratch: Path, watch: Watch, cpu_s: int | None) -> None:
    code = 70
    try:
        os.setpgid(0, 0)
        os.environ["TMPDIR"] = str(scratch / "tmp")
        tempfile.tempdir = None
        output = os.open(scratch / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if cpu_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        import pytest

        marked = "quick" if all(file.startswith(GUARD) for file in files) else "not slow"
        options = ["-q", "--no-header", "-o", f"cache_dir={scratch / 'cache'}", "-p", "no:xdist", "-m", marked]
        options += ["--tb=short", "--durations=0", "--durations-min=9999", f"--basetemp={scratch / 'tmp' / 'pytest'}"]
        code = int(pytest.main([*options, *([] if cpu_s is None else ["-x"]), *files], plugins=[watch]))
        watch.finish()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# --- Judging ---------------------------------------------------------------------------------------------------------


@dataclass
class Reach:
    """Which functions a test runs. The first test, without a name, is what importing its file runs."""

    name: str
    file: str
    reached: frozenset[str]
    seconds: float
    passed: bool


class Judge:
    """Judges mutants in the current folder, a copy of a checkout that it may change."""

    def __init__(self, room: str, journal: Path, budget_s: float) -> None:
        self.room, self.journal, self.budget_s = room, journal, budget_s
        self.scratch = Path(tempfile.mkdtemp(prefix=f"unface-mutants-{room}-"))
        self._tests: list[Reach] | None = None
        self.functions = [
            f"{path}::{name}" for path in sorted(Path("src").rglob("*.py")) for name in functions_of(path.read_bytes())
        ]

    @property
    def tests(self) -> list[Reach]:
        """The tests of the room, recorded when the first of them is needed."""
        if self._tests is None:
            self._tests = list(self._record())
            failing = [test.name for test in self._tests if test.name and not test.passed]
            counts = f"{len(self._tests)} tests recorded, {len(failing)} do not pass and are left out"
            print(f"{self.room}: {counts}", flush=True)
        return self._tests

    def _record(self) -> Iterator[Reach]:
        """Run the tests as they are, a file at a time, and write down what each of them runs."""
        for place in [self.room, *BESIDE.get(self.room, []), *EVERYWHERE]:
            path = Path("tests") / place
            for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.exists():
                kept = self.journal / "reach" / f"{str(file).replace('/', '+')}.json"
                if not kept.exists():
                    outcome = in_fork([str(file)], self.scratch, functions=self.functions)
                    report = self.scratch / "report.json"
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    if report.exists() and "tests" in (content := json.loads(report.read_text())):
                        for test in content["tests"]:
                            test["reached"] = [self.functions[at] for at in test["reached"]]
                        part = kept.with_suffix(f".{os.getpid()}")
                        part.write_text(json.dumps(content))
                        part.rename(kept)
                    else:
                        print(f"{file}: no record {outcome.failed}", flush=True)
                        shutil.copy(self.scratch / "output.txt", kept.with_suffix(".txt"))
                        continue
                content = json.loads(kept.read_text())
                for test in content["tests"]:
                    reached = frozenset(test["reached"])
                    yield Reach(test["name"], str(file), reached, test["seconds"], test["passed"])

    def choose(self, change: Change) -> list[Reach]:
        """Tests that run the changed function, then those of the same files; the quickest first."""
        if change.names:
            direct, wider = users(change.names)
        else:
            direct, wider = {f"{change.mutant.file}::{change.mutant.function}"}, set()
        files = {test.file for test in self.tests if test.reached & (direct | wider)}
        kept = [test for test in self.tests if test.name and test.passed and test.file in files]
        tiers = {test.name: 0 if test.reached & direct else 1 if test.reached & wider else 2 for test in kept}
        total: dict[tuple[int, bool, str], float] = {}
        for test in kept:
            group = (tiers[test.name], test.seconds > 1, test.file)
            total[group] = total.get(group, 0) + test.seconds

        def key(test: Reach) -> tuple[bool, int, bool, float, str]:
            group = (tiers[test.name], test.seconds > 1, test.file)
            return (test.file.startswith(GUARD), group[0], group[1], total[group], test.file)

        chosen: list[Reach] = []
        spent = 0.0
        for test in sorted(kept, key=key):
            if test.file.startswith(GUARD):
                chosen += [test] * (tiers[test.name] < 2)
            elif spent + test.seconds <= self.budget_s:
                spent += test.seconds
                chosen.append(test)
        return chosen

    def judge(self, mutant: Mutant, first: str = "") -> tuple[str, str]:
        """Say what became of a mutant, and by which test."""
        path = Path(mutant.file)
        source = path.read_bytes() if path.exists() else b""
        changes = [change for change in Finder(mutant.file, source).changes if change.mutant == mutant]
        if not changes:
            return "gone", ""
        with _written(path, changes[0].apply(source)):
            file, _, test = first.partition("::")
            if test and Path(file).is_file():
                outcome = in_fork([file], self.scratch, order=[first], expected_s=2 * LONGEST_S)
                if outcome.failed:
                    return "killed", outcome.failed
        chosen = self.choose(changes[0])
        if not chosen:
            return "not reached", ""
        with _written(path, changes[0].apply(source)):
            for stage in _stages(chosen):
                order = [test.name for test in stage]
                files = list(dict.fromkeys(test.file for test in stage))
                expected_s = sum(test.seconds for test in stage)
                outcome = in_fork(files, self.scratch, order=order, expected_s=expected_s)
                if outcome.failed:
                    return "killed", outcome.failed
                if outcome.ran < len(order):
                    print(f"{mutant}: {outcome.ran} of {len(order)} tests ran", flush=True)
        return "survived", f"{len(chosen)} tests, {sum(test.seconds for test in chosen):.0f} s"


_LATER = itertools.count(1)


@contextlib.contextmanager
def _written(path: Path, changed: bytes) -> Iterator[None]:
    source, status = path.read_bytes(), path.stat()
    path.write_bytes(changed)
    # A second of its own: compiled files are recognised by second and size
    later = status.st_mtime + 10 * next(_LATER)
    os.utime(path, (later, later))
    try:
        yield
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _stages(chosen: list[Reach]) -> Iterator[list[Reach]]:
    """A few tests of at most two files, so that not every file is imported for every mutant; the rest; the guard."""
    first = set(list(dict.fromkeys(test.file for test in chosen))[:2])
    stages: list[list[Reach]] = [[], [], []]
    spent = 0.0
    for test in chosen:
        spent += test.seconds
        early = not stages[1] and test.file in first and (spent < 5 or not stages[0])
        stages[2 if test.file.startswith(GUARD) else 0 if early else 1].append(test)
    yield from filter(None, stages)


def _import_all(names: list[str]) -> None:
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    assert "unface" not in sys.modules, "a fork would not import what was changed"


def judge_room(room: str, record: Path, journal: Path, known: Path | None) -> None:
    """Judge the mutants of a room in the current folder; what the journal knows is not judged again."""
    lines = journal / f"{room}.jsonl"
    lines.parent.mkdir(parents=True, exist_ok=True)
    done = {json.dumps(json.loads(line)["mutant"]) for line in lines.read_text().splitlines()} if lines.exists() else ()
    rows = [row for row in read(record) if row.mutant.room == room and json.dumps(astuple(row.mutant)) not in done]
    if known is not None:
        rows = [row for row in rows if row.state == "killed"]
    # What an interrupted run has judged is a sample too
    random.Random(room).shuffle(rows)
    judge = Judge(room, journal, BUDGET_S if known is None else COMPARE_BUDGET_S)
    for row in rows:
        began = _spent()
        state, by = judge.judge(row.mutant, row.by if known is not None else "")
        seconds = round(_spent() - began, 1)
        with lines.open("a") as journal_file:
            entry = {"mutant": astuple(row.mutant), "state": state, "by": by, "was": row.by, "seconds": seconds}
            journal_file.write(json.dumps(entry) + "\n")
        print(f"{room} {state} in {seconds} s: {row.mutant.file} {row.mutant.function}: {row.mutant.after}", flush=True)
    shutil.rmtree(judge.scratch, ignore_errors=True)


# --- The record and the commands -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A mutant and what became of it."""

    mutant: Mutant
    state: str
    by: str


def read(record: Path) -> list[Row]:
    with record.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return [Row(Mutant(row[0], row[1], row[2], row[3], row[4], int(row[5])), row[6], row[7]) for row in rows]


def write(record: Path, rows: Iterable[Row]) -> None:
    with record.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([*(field.name for field in fields(Mutant)), "state", "by"])
        writer.writerows([*astuple(row.mutant), row.state, row.by] for row in rows)


def sample(revision: str, rooms: list[str], count: int, record: Path) -> None:
    """Draw mutants of the source at a revision; what is known of rooms that are not asked for stays."""
    kept = [row for row in read(record) if row.mutant.room not in rooms] if record.exists() else []
    for room in rooms:
        changes: list[Change] = []
        for file in _git(Path(), "ls-tree", "-r", "--name-only", revision, f"src/unface/{room}").splitlines():
            if file.endswith(".py"):
                changes += Finder(file, _git(Path(), "show", f"{revision}:{file}").encode()).changes
        drawn = draw(changes, count, room)
        print(f"{room}: {len(drawn)} of {len(changes)}")
        kept += [Row(mutant, "", "") for mutant in drawn]
    write(record, kept)


def _git(checkout: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=checkout, check=True, capture_output=True, text=True).stdout


def journal_of(checkout: Path) -> Path:
    """A folder outside the repository for what is known of this state of the files."""
    state = _git(checkout, "rev-parse", "HEAD") + _git(checkout, "diff", "HEAD", "--", "src", "tests")
    return Path(tempfile.gettempdir()) / "unface-mutants" / hashlib.sha256(state.encode()).hexdigest()[:12]


def run(checkout: Path, rooms: list[str], record: Path, journal: Path, *, compare: bool) -> None:
    """Judge the mutants of the rooms in a copy of a checkout."""
    copy = Path(tempfile.mkdtemp(prefix="unface-mutants-copy-")) / "checkout"
    listed = _git(checkout, "ls-files", "-z").split("\0")
    for name in filter(None, listed):
        if (checkout / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, copy / name)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # CI=1: hypothesis asks the same examples each time
    environment = {**os.environ, **threads, "CI": "1", "PYTHONPATH": f"{copy / 'src'}:{copy}"}
    try:
        for room in rooms:
            arguments = [room, str(record.resolve()), str(journal.resolve()), *(["compare"] * compare)]
            subprocess.run(
                [sys.executable, "-P", str(HERE), "judge", *arguments], cwd=copy, env=environment, check=True
            )
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


def journal_rows(journal: Path, rooms: list[str]) -> dict[Mutant, Row]:
    rows = {}
    for room in rooms:
        lines = journal / f"{room}.jsonl"
        for line in lines.read_text().splitlines() if lines.exists() else ():
            entry = json.loads(line)
            mutant = Mutant(*entry["mutant"])
            rows[mutant] = Row(mutant, entry["state"], entry["by"])
    return rows


def _print_table(rows: Iterable[Row], rooms: list[str]) -> None:
    rows = list(rows)
    for room in rooms:
        states = [row.state for row in rows if row.mutant.room == room]
        counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
        print(f"{room}: {len(states)} mutants: {counts}")


def main() -> int:
    if sys.argv[1:2] == ["judge"]:
        room, record, journal, *compared = sys.argv[2:]
        judge_room(room, Path(record), Path(journal), Path(record) if compared else None)
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("sample", help="draw mutants anew")
    drawing.add_argument("--at", default="HEAD", help="revision of the source [HEAD]")
    drawing.add_argument("--count", type=int, default=40, help="mutants of each room [40]")
    running = commands.add_parser("run", help="judge the mutants by the tests, list those that survive")
    running.add_argument("--checkout", type=Path, default=HERE.parents[1], help="[this one]")
    running.add_argument("--keep", action="store_true", help="write what became of them into the record")
    comparing = commands.add_parser("compare", help="list the mutants that were killed before and survive there")
    comparing.add_argument("checkout", type=Path)
    for command in (drawing, running, comparing):
        command.add_argument("--room", action="append", choices=ROOMS, help="can be repeated [all]")
        command.add_argument("--record", type=Path, default=HERE.with_suffix(".tsv"), help="[tests/mutants.tsv]")
    for command in (running, comparing):
        command.add_argument("--journal", type=Path, help="folder that lets an interrupted run go on")
    arguments = parser.parse_args()
    rooms = arguments.room or ROOMS
    if arguments.command == "sample":
        sample(arguments.at, rooms, arguments.count, arguments.record)
        return 0
    compare = arguments.command == "compare"
    journal = arguments.journal or journal_of(arguments.checkout) / arguments.command
    run(arguments.checkout.resolve(), rooms, arguments.record, journal, compare=compare)
    known = journal_rows(journal, rooms)
    _print_table(known.values(), rooms)
    bad = [row for row in known.values() if row.state in ("survived", "not reached")]
    before = {row.mutant: row for row in read(arguments.record)}
    for row in bad:
        noticed = f" (noticed before by {before[row.mutant].by})" if compare else ""
        place = f"{row.mutant.file} {row.mutant.function}"
        print(f"{row.state}: {place}: {row.mutant.before!r} -> {row.mutant.after!r}{noticed}")
    if arguments.command == "run" and arguments.keep:
        write(arguments.record, [known.get(mutant, row) for mutant, row in before.items()])
    return 1 if compare and bad else 0


if __name__ == "__main__":
    sys.exit(main())
