"""Checks what changed in at most a minute: style, types, layers, recorded numbers, and the tests that a change reaches.

``python -m tests.check [--base REV] [--budget SECONDS]``, or ``make check``. Everything runs side by side in processes
of its own. Each test file is run in a fork of this process, which has imported the large packages already. The nearest
tests come first. What does not fit into the budget is stopped, and the last lines say what was left out.
"""

import argparse
import gc
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.import_graph import read_graph

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(".pytest_cache") / "d" / "unface"
"""Imports and durations of the last runs; pytest's own cache, which git ignores."""
GUESS = 3.0  # seconds of a test file that was never run here
GRACE = 2.0  # seconds to end what is stopped
SHOWN = 25  # lines of a failure
EXPLAINED = 3  # test files whose failures are shown with their tracebacks
NAMED = 12  # failing tests named at the end
CORES = 2
FEW = 3  # test files for which importing the large packages beforehand takes longer than it saves
NO_TESTS = 5  # what pytest says of a file whose tests are all slow
# What most tests import, none of which starts a thread. Then unface itself.
LARGE = (
    *(
        "pytest",
        "hypothesis",
        "numpy",
        "scipy.stats",
        "scipy.linalg",
        "sklearn.linear_model",
        "sklearn.model_selection",
    ),
    *("pyarrow.parquet", "pydantic", "typer.testing", "rich", "jinja2", "altair", "torch"),
    *("unface.cli.app", "unface.auditing.run"),
)


@dataclass(frozen=True)
class Stage:
    """A command that is run whatever has changed."""

    name: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        program = self.command[0]
        words = ("python" if program == sys.executable else Path(program).name, *self.command[1:])
        return " ".join(words)


def stages(root: Path) -> tuple[Stage, ...]:
    """The quick cases of the numbers guard, style, layers and types."""
    programs = Path(sys.executable).parent
    quick = ("-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-m", "quick", "tests/golden")
    guard = Stage("numbers", (sys.executable, *quick))
    return (
        guard,
        Stage("style", (str(programs / "ruff"), "check", "--quiet", "--output-format", "concise", ".")),
        Stage("format", (str(programs / "ruff"), "format", "--check", ".")),
        Stage("layers", (str(programs / "lint-imports"),)),
        Stage("types", (str(programs / "mypy"), "--no-error-summary")),
    )


def run_tests(file: str) -> int:
    """Run the tests of one file in this process, without the slow ones."""
    import pytest

    without = [word for plugin in ("anyio", "xdist", "cacheprovider") for word in ("-p", f"no:{plugin}")]
    unrewritten = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return pytest.main(["-q", "--tb=short", "-rfE", "-m", "not slow", "-W", unrewritten, *without, file])


@dataclass(frozen=True)
class Change:
    """What is compared with what, and the files that differ."""

    said: str
    uncommitted: frozenset[str] = frozenset()
    committed: frozenset[str] = frozenset()
    base: str | None = None
    """Without one, everything counts as changed."""


def changes(root: Path, base: str | None = None) -> Change:
    """Files changed since ``base``: by default where this branch left the main one, or else the last commit."""

    def git(*words: str) -> str | None:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def files(*words: str) -> frozenset[str]:
        return frozenset(name for name in (git(*words) or "").split("\0") if name)

    try:
        inside = git("rev-parse", "--show-prefix")
    except OSError:
        inside = None
    if inside is None:
        return Change("not a git checkout: all tests count as changed, quickest first")
    head = git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    uncommitted = files("ls-files", "--others", "--exclude-standard", "-z")
    if head is not None:
        uncommitted |= files("diff", "--relative", "--name-only", "--no-renames", "-z", "HEAD")
    head = (head or "").strip()
    if base is not None:
        found, why = git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"), base
        if found is None:
            raise SystemExit(f"check: git knows no revision {base!r}")
    else:
        found, why = None, ""
        for name in ("@{upstream}", "origin/main", "main"):
            found, why = git("merge-base", "HEAD", name), f"where this branch left {name}"
            if found is not None and found.strip() != head:
                break
            found = None
        if found is None and uncommitted:
            found, why = head or None, "the last commit"
        elif found is None:
            found, why = git("rev-parse", "--verify", "--quiet", "HEAD~1"), "the commit before the last"
    if not found:
        return Change("no commit to compare with: all tests count as changed, quickest first")
    found = found.strip()
    committed = files("diff", "--relative", "--name-only", "--no-renames", "-z", found, head) - uncommitted
    counts = f"{_files(len(uncommitted))} not committed, {_files(len(committed))} committed"
    return Change(f"compared with {found[:8]}, {why}: {counts}", uncommitted, committed, found)


@dataclass(frozen=True)
class Known:
    """What the last run of a test file showed."""

    seconds: float = GUESS
    """Of processor time: another run on the same machine does not make it longer."""
    failed: bool = False


@dataclass(frozen=True)
class Chosen:
    """A test file to run."""

    path: str
    is_near: bool
    """Imports what changed, or is in a room that changed."""
    seconds: float


def choose(root: Path, change: Change, known: Mapping[str, Known]) -> list[Chosen]:
    """Test files that the change reaches, in the order to run them: what failed before, then what is nearest."""
    everything = change.uncommitted | change.committed
    deleted = [path for path in everything if not (root / path).exists()]
    graph = read_graph(root, deleted, root / KEPT / "imports.json")
    if change.base is None:
        tests = [Chosen(path, True, known.get(path, Known()).seconds) for path in graph.tests]
        return sorted(tests, key=lambda test: (test.seconds, test.path))
    rooms = {room for path in everything if (room := _room(path))}
    near, far = graph.distances(change.uncommitted), graph.distances(everything)
    ranked = []
    for path, distance in far.items():
        before = known.get(path, Known())
        own = distance == 0 or _room(path) in rooms
        rank = (not before.failed, path not in near, not own, near.get(path, distance), before.seconds, path)
        if path not in deleted:
            ranked.append((rank, Chosen(path, own or distance == 1, before.seconds)))
    return [test for _, test in sorted(ranked, key=lambda pair: pair[0])]


def _room(path: str) -> str:
    """The room of a file of the source or of its tests: ``pairs`` of src/unface/pairs/tail.py and tests/pairs/…."""
    parts = PurePosixPath(path).with_suffix("").parts
    inner = parts[2:] if parts[0] == "src" else parts[1:] if parts[0] == "tests" else ()
    return inner[0].removeprefix("test_") if inner else ""


@dataclass
class Child:
    """A process, its group, and what it wrote."""

    name: str
    pid: int
    log: Path
    began: float
    code: int = 0
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def lines(self) -> list[str]:
        """What it wrote."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []


class Children:
    """Processes with a group each, so that what they start ends with them."""

    def __init__(self, root: Path, logs: Path) -> None:
        self.root = root
        self.logs = logs
        self.running: list[Child] = []
        self._started = 0

    def start(self, name: str, action: Sequence[str] | Callable[[], int]) -> None:
        """Run a command, or a function in a fork of this process."""
        self._started += 1
        log = self.logs / f"{self._started}.txt"
        sys.stdout.flush()
        sys.stderr.flush()
        # Before the fork: whoever interrupts this removes the folder of logs, maybe before the child has begun.
        written = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = self._become(action, written)
            except BaseException:  # whatever it is: this process must never return into its parent's code
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        self.running.append(Child(name, pid, log, time.monotonic()))
        os.close(written)

    def _become(self, action: Sequence[str] | Callable[[], int], written: int) -> int:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (written, 1), (written, 2)):
            os.dup2(source, target)
        # From here on it is interrupted with its group, and what it then says is in its log
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.root)
        if not callable(action):
            os.execvp(action[0], list(action))
        return action()

    def ended(self) -> list[Child]:
        """Those that have ended since the last call."""
        done = []
        for child in list(self.running):
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.code = os.waitstatus_to_exitcode(status)
                child.seconds = time.monotonic() - child.began
                child.cpu = used.ru_utime + used.ru_stime
                _signal_group(child, signal.SIGKILL)  # what it started and did not end
                self.running.remove(child)
                done.append(child)
        return done

    def stop(self) -> list[Child]:
        """End all that still run; they have two seconds to end their servers first."""
        stopped = list(self.running)
        with _deaf_to_interrupts():
            for child in stopped:
                _signal_group(child, signal.SIGINT)
            until = time.monotonic() + GRACE
            while self.running and time.monotonic() < until:
                self.ended()
                time.sleep(0.02)
            for child in self.running:
                _signal_group(child, signal.SIGKILL)
                used = os.wait4(child.pid, 0)[2]
                child.cpu = used.ru_utime + used.ru_stime
            self.running.clear()
        return stopped


def _signal_group(child: Child, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end the children too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check(
    root: Path,
    always: Sequence[Stage],
    *,
    base: str | None = None,
    budget: float = 60.0,
    run: Callable[[str], int] = run_tests,
    large: Sequence[str] = (),
) -> int:
    """Run ``always`` and the tests that the change reaches; 0 if nothing failed, whatever was left out."""
    began = time.monotonic()
    change = changes(root, base)
    print(change.said, flush=True)
    with tempfile.TemporaryDirectory() as logs, _ended_like_ctrl_c():
        children = Children(root, Path(logs))
        try:
            return _Run(root, change, children, always, run, began, budget).to_its_end(large)
        except KeyboardInterrupt:
            print("check: interrupted", file=sys.stderr)
            return 130
        finally:
            children.stop()


@dataclass
class _Run:
    root: Path
    change: Change
    children: Children
    always: Sequence[Stage]
    run: Callable[[str], int]
    began: float
    budget: float
    known: dict[str, Known] = field(default_factory=dict)
    tests: dict[str, Chosen] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """A line of each failing test: its id and a short message."""

    @property
    def seconds_left(self) -> float:
        return self.budget - GRACE - (time.monotonic() - self.began)

    def to_its_end(self, large: Sequence[str]) -> int:
        stages = list(self.always)
        self._fill(stages, [])
        self.known = read_known(self.root)
        chosen = choose(self.root, self.change, self.known)
        self.tests = {test.path: test for test in chosen}
        if len(chosen) > FEW:
            for _ in load(self.root, large, self.seconds_left / 2):
                self._step(stages, [])
        while self.seconds_left > 0 and self._step(stages, chosen):
            time.sleep(0.02)
        stopped = self.children.stop()
        for child in stopped:
            self._note_stopped(child)
        write_known(self.root, self.known)
        unfinished = {stage.name for stage in stages} | {child.name for child in stopped}
        for line in self._summary([stage for stage in self.always if stage.name in unfinished]):
            print(line, flush=True)
        return 1 if self.failed else 0

    def _step(self, stages: list[Stage], chosen: list[Chosen]) -> bool:
        """Note what has ended and start what is next; false when nothing is left to wait for."""
        for child in self.children.ended():
            self._note(child)
        self._fill(stages, chosen)
        return bool(self.children.running)

    def _fill(self, stages: list[Stage], chosen: list[Chosen]) -> None:
        """Start what comes next where a core is free."""
        while len(self.children.running) < CORES:
            if stages:
                stage = stages.pop(0)
                self.children.start(stage.name, stage.command)
                continue
            # When a test fails, those of the rooms above mostly fail with it
            red = any(name in self.tests for name in self.failed)
            fits = (test for test in chosen if test.seconds <= self.seconds_left and not (red and not test.is_near))
            test = next(fits, None)
            if test is None:
                return
            chosen.remove(test)
            self.children.start(test.path, lambda path=test.path: self.run(path))  # type: ignore[misc]  # the default binds it now

    def _note(self, child: Child) -> None:
        is_test = child.name in self.tests
        passed = child.code in ((0, NO_TESTS) if is_test else (0,))
        if is_test:
            self.known[child.name] = Known(round(child.cpu, 2), not passed)
        if passed:
            self.done.add(child.name)
        else:
            self.failed.append(child.name)
        if not is_test or not passed:
            print(f"{'ok' if passed else 'FAILED':8}{child.name}  {child.seconds:.1f} s", flush=True)
        if not passed:
            self._show(child)
        if is_test:
            self._note_near(child.name)

    def _note_stopped(self, child: Child) -> None:
        """A test file that had failed when it was stopped has failed; it also takes longer than was thought."""
        if child.name not in self.tests:
            return
        failed = any(line.startswith(("FAILED ", "ERROR ")) for line in child.lines)
        before = self.known.get(child.name, Known())
        self.known[child.name] = Known(max(before.seconds, round(child.cpu, 2)), failed)
        if failed:
            self.failed.append(child.name)
            print(f"FAILED  {child.name}  stopped", flush=True)
            self._show(child)

    def _show(self, child: Child) -> None:
        """Print why something failed, and keep the ids of its failing tests for the end."""
        explained = len(self.ids) == 0 or sum(name in self.tests for name in self.failed) <= EXPLAINED
        lines = child.lines
        ids = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        self.ids += ids
        starts = [number for number, line in enumerate(lines) if line.strip("= ") in ("FAILURES", "ERRORS")]
        if ids and starts:
            after = ("warnings summary", "slowest ", "short test summary")
            ends = [number for number, line in enumerate(lines) if line.strip("= ").startswith(after)]
            lines = lines[min(starts) + 1 : min(ends)] if explained else ids
        if child.code < 0 and child.name not in self.tests:
            lines = [*lines, f"ended by {signal.Signals(-child.code).name}"]
        for line in lines[:SHOWN]:
            print(f"    {line}")
        if len(lines) > SHOWN:
            print(f"    … {len(lines) - SHOWN} more lines")
        sys.stdout.flush()

    def _note_near(self, path: str) -> None:
        """Say that the tests of the changed rooms have ended, when the last of them has."""
        near = [test.path for test in self.tests.values() if test.is_near]
        if path in near and not self.failed and all(name in self.done for name in near):
            after = f"after {time.monotonic() - self.began:.1f} s"
            print(
                f"ok      {_files(len(near), 'test file')} nearest to the change ({_rooms(near)}), {after}", flush=True
            )

    def _summary(self, unfinished: Sequence[Stage]) -> Iterator[str]:
        """The failing tests, and then at most ten lines."""
        yield from self.ids[:NAMED]
        if len(self.ids) > NAMED:
            yield f"… and {len(self.ids) - NAMED} failing tests more"
        stages = [stage.name for stage in self.always if stage.name in self.done]
        tests = [path for path in self.tests if path in self.done]
        ran = f"{len(tests)} of {_files(len(self.tests), 'test file')}" + (f" ({_rooms(tests)})" if tests else "")
        yield f"passed    {', '.join([*stages, ran if self.tests else 'no test is reached by the change'])}"
        if self.failed:
            yield f"failed    {', '.join(self.failed[:8])}" + (" …" if len(self.failed) > 8 else "")
        for stage in unfinished:
            yield f"left out  {stage.name}, not finished within the budget: {stage}"
        rest = [test for path, test in self.tests.items() if path not in self.done and path not in self.failed]
        if rest:
            needed = self.budget + sum(test.seconds for test in rest) / CORES
            why = (
                "since tests nearer to the change fail"
                if self.failed and self.seconds_left > GUESS
                else "for the budget"
            )
            more = f"make check BUDGET={math.ceil(needed / 30) * 30}"
            yield f"left out  {_files(len(rest), 'test file')} {why} ({_rooms([test.path for test in rest])}): {more}"
        if self.tests:
            yield "left out  tests marked slow: make test"
        yield f"{'RED' if self.failed else 'green'} after {time.monotonic() - self.began:.0f} s of {self.budget:.0f}"


def load(root: Path, large: Sequence[str], seconds: float) -> Iterator[None]:
    """Import what most tests import, once, for all processes that are forked afterwards."""
    sys.path[:0] = [path for folder in ("", "src") if (path := str(root / folder)) not in sys.path]
    until = time.monotonic() + seconds
    for name in large:
        # A changed module may fail, or never end; the test that imports it will show that
        with suppress(Exception), _at_most(until - time.monotonic()):
            importlib.import_module(name)
        yield
    gc.collect()
    gc.freeze()  # or every process would copy what the collector looks at


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read_known(root: Path) -> dict[str, Known]:
    """How long each test file took here, and whether it failed."""
    try:
        held = json.loads((root / KEPT / "durations.json").read_text(encoding="utf-8"))
        return {path: Known(float(seconds), bool(failed)) for path, (seconds, failed) in held.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_known(root: Path, known: Mapping[str, Known]) -> None:
    """Keep it for the next run."""
    file = root / KEPT / "durations.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({path: [test.seconds, test.failed] for path, test in sorted(known.items())}, indent=0))
    new.replace(file)


def _rooms(paths: Sequence[str]) -> str:
    """The folders of test files, those with the most first: ``cli 31, auditing 12 and 3 more``."""
    counts = Counter(parts[1] if len(parts := PurePosixPath(path).parts) > 2 else "tests/*.py" for path in paths)
    shown = [f"{room} {count}" for room, count in counts.most_common(6)]
    return ", ".join(shown) + (f" and {len(counts) - 6} rooms more" if len(counts) > 6 else "")


def _files(count: int, what: str = "file") -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def main() -> int:
    """Check this repository."""
    parser = argparse.ArgumentParser(prog="python -m tests.check", description=__doc__)
    parser.add_argument("--base", metavar="REV", help="compare with this revision")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="[default: 60]")
    given = parser.parse_args()
    # As in tests/conftest.py: BLAS has one thread. This source is what is tested, wherever it is installed from, and
    # a hook of git must not make the repositories of tests look like this one.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    os.environ |= {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "COLUMNS": "160"}
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    return check(ROOT, stages(ROOT), base=given.base, budget=given.budget, large=LARGE)


if __name__ == "__main__":
    sys.exit(main())
