"""If this fails, ``import unface`` or ``unface --help`` has become slow, most likely by importing a heavy library."""

import subprocess
import sys

import pytest

HEAVY = ["torch", "matplotlib", "onnxruntime", "sklearn", "scipy", "pandas", "polars", "pyarrow", "numpy", "pydantic"]
HELP = """
import contextlib, io, sys
from unface.cli import main
sys.argv = ["unface", "--help"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as shown:
    main()
assert "Usage: unface" in shown.getvalue()
"""


@pytest.mark.parametrize(
    ("code", "modules"), [("import sys, unface", 100), (HELP, 300)], ids=["import unface", "unface --help"]
)
def test_few_modules_are_loaded_and_no_heavy_library(code: str, modules: int) -> None:
    """What is loaded decides how long it takes: 63 and 169 here; NumPy alone brings 140 more."""
    loaded = python(f"{code}\nprint(*sys.modules)").split()
    assert [name for name in HEAVY if name in loaded] == []
    assert len(loaded) < modules


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
