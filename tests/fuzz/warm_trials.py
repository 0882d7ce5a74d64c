"""Tries FAISS files as ``faiss_trial`` does, each in a fork of a process that has FAISS loaded already.

A process for each of a thousand files spends nearly all of its time importing. A fork has the same limits, and dies
alone too. Run as a script this is the process that forks.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class WarmTrials:
    """Takes the place of ``subprocess`` in ``unface.stores.faiss_index``."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", __file__]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command: Sequence[str], **_: object) -> "subprocess.CompletedProcess[str]":
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(command[-1]) + "\n")
        self._server.stdin.flush()
        code, printed = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess(command, code, printed, "")


def _serve() -> None:
    sys.path.insert(0, str(ROOT / "src" / "unface" / "stores"))
    import faiss_trial  # type: ignore[import-not-found]

    for line in sys.stdin:
        path = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.dup2(writing, 1)
            code = 1
            try:
                code = faiss_trial.main(path)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as printed:
            said = printed.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps([code, said]), flush=True)


if __name__ == "__main__":
    _serve()
