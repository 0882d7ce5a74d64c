"""If this fails, a type is wrong in ``src``, ``tests`` or ``studies``; ``make lint`` and ``make check`` ask too."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_mypy_finds_nothing() -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (pip install '.[dev]')")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
