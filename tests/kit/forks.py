"""Commands in processes of their own that begin at once: forks of one process that has imported what commands import.

A fork has its own limits, folder and memory, and dies alone, like a process started for it; that would import for two
seconds first. Run as a module this is the process that forks. It has no threads.
"""

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = ("unface.cli.app", "unface.auditing.run", "unface.auditing.fit", "unface.scale", "rich.console")
Done = subprocess.CompletedProcess[str]


class ForkServer:
    """Starts when it is first asked."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def unface(self, *words: object, cwd: Path = ROOT, file_size: int | None = None) -> Done:
        """The command line; no file may grow beyond ``file_size``."""
        return self.call("tests.kit.forks:command", file_size, *words, cwd=cwd)

    def unface_telling_its_peak(self, *words: object, cwd: Path, address_space: int | None = None) -> Done:
        """The command line, which prints at its end how many KiB it held at most."""
        return self.call("tests.kit.forks:command_telling_its_peak", address_space, *words, cwd=cwd)

    def call(self, function: str, *given: object, cwd: Path = ROOT, seconds: int = 300) -> Done:
        """``module:function`` of what JSON can carry; others are turned into text."""
        if self._server is None:
            environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
            words, pipe = [sys.executable, "-m", "tests.kit.forks"], subprocess.PIPE
            self._server = subprocess.Popen(words, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)
        asked, answered = self._server.stdin, self._server.stdout
        assert asked is not None
        assert answered is not None
        asked.write(json.dumps([function, given, str(cwd), dict(os.environ), seconds], default=str) + "\n")
        asked.flush()
        code, printed, errors = json.loads(answered.readline())
        return Done([function, *map(str, given)], code, printed, errors)

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def command(file_size: int | None, *words: str) -> None:
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    sys.argv = ["unface", *words]
    from unface.cli import main

    main()


def command_telling_its_peak(address_space: int | None, *words: str) -> None:
    if address_space is not None:
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    try:
        command(None, *words)
    finally:
        # Not ru_maxrss, which starts from the peak of the process that forked it.
        print(Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0])


def _serve() -> None:
    for module in PRELOADED:
        importlib.import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
            child = os.fork()
            if child == 0:
                answers.close()
                os.dup2(printed.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                _run(line)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            told = []
            for file in (printed, errors):
                file.seek(0)
                told.append(file.read().decode("utf-8", "replace"))
        answers.write(json.dumps([code, *told]) + "\n")
        answers.flush()


def _run(line: str) -> None:
    """In the fork, whose end it is."""
    function, given, folder, environment, seconds = json.loads(line)
    code: object = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        signal.alarm(seconds)
        module, name = function.split(":")
        getattr(importlib.import_module(module), name)(*given)
        code = 0
    except SystemExit as leaving:
        code = leaving.code or 0
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            code = 120  # as Python ends when it cannot write what is left
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve()
