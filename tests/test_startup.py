"""If this fails, ``import unface`` or ``unface --help`` has become slow, most likely by importing a heavy library."""

import subprocess
import sys
import time

HEAVY = ["torch", "matplotlib", "onnxruntime", "sklearn", "scipy", "pandas", "polars", "pyarrow", "numpy"]


def test_importing_unface_loads_no_heavy_library() -> None:
    loaded = python(f"import sys, unface; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.split() == []


def test_importing_unface_takes_under_half_a_second() -> None:
    code = "import time; start = time.perf_counter(); import unface; print(time.perf_counter() - start)"
    assert min(float(python(code)) for _ in range(3)) < 0.5


def test_help_takes_under_a_second() -> None:
    assert min(seconds_for_help() for _ in range(3)) < 1.0


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def seconds_for_help() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "unface", "--help"], check=True, capture_output=True, timeout=60)
    return time.perf_counter() - start
