"""Tries FAISS files as ``faiss_trial`` does, each in a fork of a process that has FAISS loaded already.

A process for each of a thousand files spends nearly all of its time importing. A fork has the same limits, and dies
alone too. Run as a script this is the process that forks.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Done = subprocess.CompletedProcess[str]


class WarmTrials:
    """Takes the place of ``subprocess`` in ``unface.stores.faiss_index``."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(self, command: Sequence[str], **_: object) -> Done:
        if self._server is None:
            words = [sys.executable, "-P", __file__]
            self._server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(command[-1]) + "\n")
        self._server.stdin.flush()
        code, printed = json.loads(self._server.stdout.readline())
        return Done(command, code, printed, "")

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


class OwnForks:
    """The same in a process that has FAISS loaded and no threads: it forks itself."""

    def run(self, command: Sequence[str], **_: object) -> Done:
        from unface.stores import faiss_trial

        return Done(command, *_tried(faiss_trial.main, command[-1]), "")


def _tried(trial: Callable[[str], int], path: str) -> tuple[int, str]:
    """The exit code of a trial, and what it printed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        sys.setprofile(None)  # which may count calls, to end its process at one
        os.close(reading)
        os.dup2(writing, 1)
        code = 1
        try:
            code = trial(path)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as printed:
        said = printed.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def _serve() -> None:
    sys.path.insert(0, str(ROOT / "src" / "unface" / "stores"))
    import faiss_trial  # type: ignore[import-not-found]

    for line in sys.stdin:
        print(json.dumps(_tried(faiss_trial.main, json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()
