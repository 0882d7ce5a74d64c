"""The command line, killed as by kill -9 at its Nth step on disk, or at its Nth call of any function.

A step is a write to an output, a flush to the disk, a rename, or a batch added to sums; odd ones die before they are
made, even ones after. Calls are counted from the first write on. Reads ["step" or "call", N, words of a command…] as
lines of JSON, runs each in a process forked from this one, which has everything imported already, and answers with its
exit code, negative for a signal.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# What commands import only when they are run: once here for all forks.
import rich.console  # noqa: F401

import unface.auditing.fit
import unface.cli.app
import unface.scale  # noqa: F401
from tests.faults.calls import Calls
from unface.cli import main as command_line
from unface.moments import MomentStream
from unface.output.place import Sink


class Fuse:
    """Counts down."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.before = bool(steps % 2)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and self.before:
                os.kill(os.getpid(), signal.SIGKILL)
            done = work(*given, **named)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return step


def run(kind: str, number: int, words: list[str]) -> None:
    if kind == "call":
        calls, write = Calls(number, counting=False), Sink.write

        def counted(sink: Sink, data: bytes | memoryview) -> int:
            calls.counting = True
            return write(sink, data)

        Sink.write = counted  # type: ignore[assignment, method-assign]  # a spy
    else:
        fuse = Fuse(number)
        for owner, name in ((os, "fsync"), (os, "replace"), (Sink, "write"), (MomentStream, "add")):
            setattr(owner, name, fuse.around(getattr(owner, name)))
    sys.argv = ["unface", *words, "--quiet"]
    command_line()


def serve() -> None:
    for line in sys.stdin:
        kind, number, *words = json.loads(line)
        child = os.fork()
        if child == 0:
            run(kind, number, words)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
