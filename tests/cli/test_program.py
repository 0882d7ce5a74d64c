"""If these fail, the program does not start, ends in a traceback, or prints what moves the cursor or cannot be read."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.quick import QUICK
from tests.kit.command import unface
from tests.stores.contract import projection, raw_vectors
from unface import UnfaceError, __version__
from unface.cli import _EXTRAS
from unface.cli.show import say
from unface.errors import printable


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["audit", "faces.parquet"],
        ["audit", "faces.parquet", "--out", "x", "--unknown"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "0"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "many"],
        ["audit", "faces.parquet", "--out", "x", "--images", "1"],
        ["audit", "faces.parquet", "--out", "x", "--bootstraps", "99"],
        ["audit", "faces.parquet", "--out", "x", "--seed", "-1"],
        ["audit", "faces.parquet", "--out", "x", "--threads", "0"],
        ["audit", "a.parquet", "b.parquet", "--out", "x"],
        ["measure"],
        ["--unknown"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_two_says_why_and_makes_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = unface(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Usage: ")
    assert "\nError: " in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_printed() -> None:
    done = unface("--version")
    assert (done.code, done.out, done.err) == (0, f"unface {__version__}\n", "")


def test_after_two_dashes_the_memory_budget_is_no_option(tmp_path: Path) -> None:
    assert unface("gate", tmp_path, "--", "--memory", "1k").err.startswith("Usage: ")


def test_a_memory_budget_without_a_size_says_so_and_takes_no_other_word_for_it(tmp_path: Path) -> None:
    done = unface("gate", tmp_path, "--memory")
    assert (done.code, "Option '--memory' requires an argument" in done.err) == (2, True)


def test_the_schema_is_json_of_an_audit_result() -> None:
    done = unface("schema")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["title"] == "AuditResult"
    assert found["additionalProperties"] is False
    assert "listings" not in found["properties"]
    assert found["properties"]["schema"]["const"] == "unface.audit/2"


def test_the_installed_program_ends_with_the_same_codes(faces: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "unface", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    missing = run("audit", tmp_path / "none.parquet", "--out", tmp_path / "out")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "unface: none.parquet: no such file or directory\n"
    assert run("audit").returncode == 2
    done = run("audit", faces, "--out", tmp_path / "out", "--json", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (tmp_path / "out" / "audit.json").read_text(encoding="utf-8")


def test_running_out_of_memory_is_one_line(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("unface.auditing.attack.run_panel", too_much)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert re.search(r"^unface: .* [\d,.]+ [GM]B; .*--memory$", done.err)
    assert not (tmp_path / "out").exists()


def test_an_interrupt_exits_130_and_writes_nothing(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("unface.auditing.attack.run_panel", interrupted)
    before = signal.getsignal(signal.SIGINT)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (130, "")
    assert done.err == "unface: interrupted; no file was left half-written\n"
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "out").exists()


def test_a_terminal_without_our_signs_is_no_reason_to_fail(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert done.returncode == 0
    assert b"? worst case" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_output_that_cannot_be_written_is_one_line(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert (
        done.stderr
        == b"unface: cannot write the output (No space left on device); see to that and give the same command again\n"
    )


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


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"torch", "PIL"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from unface.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("invert nobody --encoder sscd-int8", "torch"),
        ("validate --target http://127.0.0.1:9/{person} --enrol nobody --budget 20", "images"),
        ("protect frequency certify --scheme dctdp --size 16 --pictures pictures", "images"),
    ],
)
def test_an_extra_that_is_not_installed_is_named_in_one_line(words: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "pictures" / "ann").mkdir(parents=True)
    (tmp_path / "pictures" / "ann" / "1.png").write_bytes(b"\x89PNG")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"not installed; run pip install 'unface[{extra}]'")


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(_EXTRAS.values()) <= project["optional-dependencies"].keys()


SENTENCE = "clean: 49,958 vectors, 24 of 96 dimensions removed (isp); 3 have nothing left and are zero"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "lines"), [(Terminal, 3), (StringIO, 1)])
def test_a_sentence_is_broken_between_words_on_a_terminal_alone(
    stream: type[StringIO], lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = stream()
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.setenv("COLUMNS", "40")
    say(SENTENCE)
    assert len(written.getvalue().splitlines()) == lines
    assert " ".join(written.getvalue().split()) == SENTENCE


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028"
LONG = "x" * 5_000_000
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
HOSTILE = pytest.mark.parametrize(
    "name", [f"a{ESCAPE}z", f"[red]a{ESCAPE}z[/red]", LONG], ids=["escape", "markup", "long"]
)


def require_harmless(text: str, most: int = 60_000) -> None:
    assert CONTROL.findall(text) == []
    assert 0 < len(text) < most


@HOSTILE
def test_a_column_of_a_strangers_file_is_named_without_them(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({name: [1], "vector": [1]}), tmp_path / "faces.parquet")
    done = unface("audit", tmp_path / "faces.parquet", "--out", tmp_path / "out")
    assert done.code == 1
    require_harmless(done.err, 3_000)
    assert done.err.startswith("unface: faces.parquet")
    assert done.err.count("\n") == 1


@HOSTILE
def test_the_kind_of_a_strangers_projection_is_printed_without_them(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "faces.npy", raw_vectors())
    replace(projection(), kind=name[:50_000]).save(tmp_path / "p.safetensors")
    done = unface("apply", tmp_path / "p.safetensors", "--store", f"npy:{tmp_path / 'faces.npy'}")
    assert done.code == (1 if name == LONG else 0)  # a header of that size is refused
    require_harmless(done.out + done.err, 3_000)


def test_a_long_line_keeps_its_beginning_and_its_advice() -> None:
    with patch("unface.cli.app.app", side_effect=UnfaceError(f"faces.parquet: {LONG} is no column; name one")):
        done = unface("schema")
    assert done.err.startswith("unface: faces.parquet: xxx")
    assert done.err.endswith("xxx is no column; name one\n")
    require_harmless(done.err, 3_000)


def test_what_people_write_stays_as_it_is() -> None:
    text = "Zoë’s 図書館\u202f/\u00a0faces: 12\u2009% → −3 [−4, −2] ◂ ✗ · …"
    assert printable(text) == text
    assert printable("a\x1b[31m\udcff\n") == "a\\x1b[31m\\udcff\n"
