"""The command line, killed as by kill -9 at its Nth step on disk, or at its Nth call of any function.

A step is a write to an output, a flush to the disk, a rename, or a batch added to sums; odd ones die before they are
made, even ones after. Calls are counted from the first write on. What comes to its end prints how many there
were. For forks that have everything imported already (tests/kit/forks.py).
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

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


def run(kind: str, number: int, *words: str) -> None:
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
    try:
        command_line()
    finally:
        if kind == "call":
            print(calls.stop())
