"""Runs a case and reads everything that its commands wrote. As a program: one case in a process with one thread."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from hashlib import sha256
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.golden import contents, servers
from tests.golden.flatten import Path as NamePath
from tests.golden.flatten import Value, flatten
from tests.kit.command import Done, unface

_HERE = Path(__file__).parent
INPUTS = "in"
# What a gate says of a rule beside its verdict and the number that it measured.
_WORDS = (".*/rules/[^/]*/(rule|meaning|limit|reason)",)


@dataclass(frozen=True)
class Case:
    """Some command lines, run one after the other in one folder."""

    name: str
    run: tuple[str, ...]
    quick: bool = False
    """Part of ``make check``."""
    process: bool = False
    """Run in a process of its own, with one thread: PyTorch's sums depend on their number."""
    tolerance: float = 1e-9
    server: str | None = None
    """A context manager in ``servers.py``; what it yields replaces ``{address}``."""
    leave_out: tuple[str, ...] = ()
    """Expressions over paths of numbers that follow from a hash of floats, which another processor rounds otherwise."""
    weights: str | None = None
    """Cards, with commas, whose weights have to be here; without them the case is skipped."""


def all_cases() -> list[Case]:
    """Every case of ``cases/*.toml``, by name."""
    cases = [
        Case(**{**table, "run": tuple(table["run"]), "leave_out": tuple(table.get("leave_out", ()))})
        for file in sorted((_HERE / "cases").glob("*.toml"))
        for table in tomllib.loads(file.read_text(encoding="utf-8"))["case"]
    ]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases have one name"
    return sorted(cases, key=lambda case: case.name)


def run_case(case: Case, folder: Path) -> dict[NamePath, Value]:
    """Run a case in an empty folder, and return every value that it wrote there."""
    if case.process:
        return _run_in_process(case, folder)
    (folder / INPUTS).symlink_to(_HERE / "inputs", target_is_directory=True)
    values: dict[NamePath, Value] = {}
    with ExitStack() as stack:
        stack.enter_context(chdir(folder))
        stack.enter_context(patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "80"}))
        address = stack.enter_context(getattr(servers, case.server)()) if case.server else ""
        drawn = stack.enter_context(recorded_streams())
        for number, line in enumerate(case.run, 1):
            program, *arguments = shlex.split(line.replace("{address}", address))
            assert program in ("unface", "python"), line
            done = unface(*arguments) if program == "unface" else _script(*arguments)
            values["exit", f"{number} {arguments[0]}"] = done.code
            if (program == "python" or "--json" in arguments) and done.out.startswith("{"):
                values.update((("printed", str(number), *path), value) for path, value in flatten(json.loads(done.out)))
            if done.code == 1:  # the words of a refusal are held elsewhere
                values["refused", f"{number} {arguments[0]}"] = len(done.err.strip().splitlines())
                print(f"  {case.name} {number}: {done.err.strip()}", file=sys.stderr)
    values.update(read_folder(folder))
    values.update({("streams", *name): times for name, times in sorted(drawn.items())})
    if address:
        values = {path: v.replace(address, "{address}") if isinstance(v, str) else v for path, v in values.items()}
    left_out = [re.compile(expression) for expression in (*_WORDS, *case.leave_out)]
    return {path: v for path, v in values.items() if not any(one.fullmatch("/".join(path)) for one in left_out)}


def _script(file: str) -> Done:
    """What a user's own program in Python prints."""
    out = StringIO()
    with redirect_stdout(out):
        runpy.run_path(file)
    return Done(0, out.getvalue(), "")


def read_folder(folder: Path) -> dict[NamePath, Value]:
    """Return every value in the files that commands wrote into a folder."""
    values: dict[NamePath, Value] = {}
    for path, content in contents.read(folder, leave_out=INPUTS):
        values.update(((*path, *rest), value) for rest, value in flatten(content))
    return values


@contextmanager
def recorded_streams() -> Iterator[Counter[tuple[str, ...]]]:
    """Count the random streams that are opened, by seed and name; what a cache kept of an earlier case is new."""
    for name, module in list(sys.modules.items()):
        if name.startswith("unface."):
            for kept in vars(module).values():
                if isinstance(kept, _lru_cache_wrapper):
                    kept.cache_clear()
    drawn: Counter[tuple[str, ...]] = Counter()
    last = ""

    def digest(words: bytes) -> Any:
        nonlocal last
        last = words.decode().replace("\x1f", " ")
        return sha256(words)

    def generator(seeds: list[int]) -> np.random.Generator:
        drawn[f"seed {seeds[0]}", last] += 1
        return np.random.default_rng(seeds)

    with (
        patch("unface.seeds.hashlib", SimpleNamespace(sha256=digest)),
        patch("unface.seeds.np", SimpleNamespace(random=SimpleNamespace(default_rng=generator))),
    ):
        yield drawn


def _run_in_process(case: Case, folder: Path) -> dict[NamePath, Value]:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.run", case.name, str(folder)],
        env=os.environ | one_thread | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {tuple(path): value for path, value in json.loads(done.stdout)}


def main() -> None:
    """Run the case named in the arguments in a folder, and print its values as JSON."""
    name, folder = sys.argv[1:]
    case = next(case for case in all_cases() if case.name == name)
    values = run_case(Case(**{**vars(case), "process": False}), Path(folder))
    json.dump(list(values.items()), sys.stdout)


def fresh_run(case: Case) -> dict[NamePath, Value]:
    """Run a case in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return run_case(case, Path(folder).resolve())


if __name__ == "__main__":
    main()
