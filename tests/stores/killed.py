"""Runs that end midway: sanitise_store in a process killed by SIGKILL, or a library call that does not return."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.calls import Calls
from tests.kit.processes import PROCESSES
from tests.kit.warm_trials import OwnForks
from tests.stores.contract import projection
from unface.stores import Store, sanitise_store

Open = Callable[[], Store]


@dataclass(frozen=True)
class End:
    """How a run came to its end."""

    cut: bool
    calls: int
    """Of any function, where they were counted and it was not cut."""


def killed_at_call(call: int | None, store: Open) -> End:
    """At its nth call of any function; None to let it finish."""
    return _ended(partial(_sanitise_until_call, call, store))


def killed_before(change: int, store: Open) -> End:
    """Right before its nth change of names or flush of bytes."""
    return _ended(partial(_sanitise_until, change, store))


def _ended(run: Callable[[Any], None]) -> End:
    calls, told = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=run, args=(told,))
    process.start()
    told.close()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), "it failed by itself"
    return End(process.exitcode != 0, 0 if process.exitcode else calls.recv())


def _sanitise_until_call(call: int | None, store: Open, told: Any) -> None:
    _try_files_in_forks()
    opened, by = store(), projection()
    calls = Calls(call)
    sanitise_store(by, opened, purge=True)
    told.send(calls.stop())


def _sanitise_until(change: int, store: Open, told: Any) -> None:
    _try_files_in_forks()
    made = [0]

    def ending(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            made[0] += 1
            if made[0] > change:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return run

    for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "link"), (os, "fsync")):
        setattr(owner, name, ending(getattr(owner, name)))
    sanitise_store(projection(), store(), purge=True)
    told.send(0)


def _try_files_in_forks() -> None:
    from unface.stores import faiss_index

    vars(faiss_index)["subprocess"] = OwnForks()


def killing(whole: Callable[..., object], before: bool) -> Callable[..., None]:
    """As if the process ended right before or right after."""

    def killed(*given: Any, **more: Any) -> None:
        if not before:
            whole(*given, **more)
        raise KeyboardInterrupt

    return killed
