"""If these fail, a command ends in a traceback where a shell closed its streams, or a hand was quick."""

import os
import subprocess
import sys
from unittest.mock import patch

import pytest

from tests.kit.command import unface

LOOK = """
import os, unface.cli.app
from unface.cli import main
unface.cli.app.app = lambda _: print(os.path.samestat(os.fstat(0), os.stat(os.devnull)))
main()
"""
EARLY = """
import os, signal, sys
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Impatient())
from unface.cli import main
main()
"""


def shell(line: str, code: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "CODE": code}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment, check=False)


def test_a_closed_standard_input_is_one_that_is_empty() -> None:
    done = shell('"$PYTHON" -c "$CODE" <&-', LOOK)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_what_a_closed_standard_error_cannot_tell_is_not_told_on_standard_output() -> None:
    done = shell('"$PYTHON" -m unface report none.json 2>&-')
    assert (done.returncode, done.stdout) == (1, "")


def test_a_closed_standard_output_loses_what_is_printed_and_nothing_else() -> None:
    done = shell('"$PYTHON" -m unface schema >&-')
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_while_it_is_still_importing_is_one_line() -> None:
    done = shell('"$PYTHON" -c "$CODE"', EARLY)
    assert done.returncode == 130
    assert done.stderr == "unface: interrupted; no file was left half-written\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "cannot write the output (No space left on device)"),
        (
            OSError("Cannot call rmtree on a symbolic link"),
            "cannot write the output (Cannot call rmtree on a symbolic link)",
        ),
        (OSError(), "cannot write the output (OSError)"),
        (OSError(36, "File name too long", "aaa"), "aaa: cannot be opened or written (File name too long)"),
    ],
)
def test_what_the_system_refuses_names_the_file_where_it_is_known(error: OSError, told: str) -> None:
    with patch("unface.cli.app.app", side_effect=error):
        done = unface("schema")
    assert (done.code, done.err) == (1, f"unface: {told}; see to that and give the same command again\n")
