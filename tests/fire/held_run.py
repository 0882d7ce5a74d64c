"""``unface`` in a process of its own that stops before each of its steps, until whoever watches it lets it go on.

The steps are functions that the process wraps before it starts; the source has no failpoints. Whoever watches can kill
the process there, or something else, or start a second run.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.kit.processes import PROCESSES

Wrap = Callable[["Announce"], None]
"""Wraps the steps of one kind of store, in the process that will run."""


@dataclass(frozen=True)
class Step:
    """What the run is about to do; ``pid`` is that of the server's process that will do it, if there is one."""

    name: str
    pid: int = 0


@dataclass(frozen=True)
class Ended:
    code: int | None
    printed: str
    errors: str

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def fault(self) -> str | None:
        """A run ends with 0, or with 1 and one line."""
        if self.was_killed or (self.code == 0 and not self.errors):
            return None
        lines = self.errors.splitlines()
        if self.code == 1 and len(lines) == 1 and lines[0].startswith("unface: "):
            return None
        return f"ended with {self.code}: {self.errors[-600:]!r}"


class Announce:
    """In the child: names a step and waits for leave."""

    def __init__(self, watcher: Connection) -> None:
        self._watcher = watcher
        # Files of a folder are written by several threads: one's leave must not be read by two, a piece each.
        self._one_at_a_time = threading.Lock()

    def __call__(self, name: str, pid: int = 0) -> None:
        try:
            with self._one_at_a_time:
                self._watcher.send(Step(name, pid))
                self._watcher.recv()
        except (EOFError, OSError):  # nobody watches any more
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str, title: str | None = None) -> None:
        """Announce a function of ``owner`` before it starts and after it has returned."""
        whole, title = getattr(owner, name), title or name

        def announced(*given: Any, **more: Any) -> Any:
            self(title)
            made = whole(*given, **more)
            self(f"{title} done")
            return made

        static = isinstance(owner, type) and isinstance(vars(owner).get(name), staticmethod)
        setattr(owner, name, staticmethod(announced) if static else announced)


class HeldRun:
    """Iterate over its steps; each begins when the next one is asked for."""

    def __init__(self, arguments: Sequence[str], wrap: Wrap, folder: Path) -> None:
        self._watched, watcher = PROCESSES.Pipe()
        name = str(time.monotonic_ns())
        self._printed, self._errors = folder / f"{name}.out", folder / f"{name}.err"
        files = (str(self._printed), str(self._errors))
        self._process = PROCESSES.Process(target=_run, args=(list(arguments), wrap, watcher, *files))
        self._process.start()
        watcher.close()
        self._is_held = False
        self.is_over = False

    def __iter__(self) -> Iterator[Step]:
        while (step := self.next()) is not None:
            yield step

    def next(self) -> Step | None:
        """Let it go on to its next step; None at its end."""
        if self.is_over:
            return None
        self.go()
        try:
            step: Step = self._watched.recv()
        except (EOFError, OSError):
            self.is_over = True
            return None
        self._is_held = True
        return step

    def go(self) -> None:
        if self._is_held:
            self._is_held = False
            try:
                self._watched.send(None)
            except OSError:
                return

    def is_held_or_over(self, seconds: float) -> bool:
        """Whether it comes to a step or to its end within that time."""
        return self._is_held or self.is_over or self._watched.poll(seconds)

    def kill(self) -> None:
        self._process.kill()

    def ended(self) -> Ended:
        """After its last step, or after a kill."""
        self.go()
        while self.next() is not None:
            pass
        self._process.join()
        ended = Ended(self._process.exitcode, self._printed.read_text("utf-8"), self._errors.read_text("utf-8"))
        self._printed.unlink()
        self._errors.unlink()
        self._watched.close()
        self._process.close()
        return ended


def _run(arguments: list[str], wrap: Wrap, watcher: Connection, printed: str, errors: str) -> None:
    for number, path in ((1, printed), (2, errors)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["unface", *arguments]
    from unface.cli import main

    announce = Announce(watcher)
    announce("start")
    wrap(announce)
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
