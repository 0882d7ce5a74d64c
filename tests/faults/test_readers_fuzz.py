"""If these fail, a damaged file ends in a traceback, a dead process or a full memory instead of a sentence.

Each kind runs in a process of its own: pyarrow is native code, and a crash must be one failed test, not a dead run.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = 2000


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_a_damaged_file_is_read_or_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("read_mutants.py")
    command = [sys.executable, str(script), kind, str(CASES), "2026", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    case = tmp_path / "case"
    assert done.returncode == 0, f"died at case {case.read_text() if case.exists() else 'none'}: {done.stderr[-800:]}"
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["read"] + told["refused"] == CASES
    # Both ends are reached: mutants that are still readable, and mutants that are not.
    assert told["changed"] > CASES // 100
    assert told["refused"] > CASES // 2
    assert told["peak_mib"] < 1024
