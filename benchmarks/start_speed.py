"""How long commands take to start, in CPU-seconds of this machine."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.ratios import Ratio
from unface import audit, make_identities

_STARTS = 5
_POLICY = '[[require]]\nprobe = "worst"\nfar = 1e-2\ntar_max = 0.5\ncoarse = "allow"\n'


def run() -> list[Ratio]:
    """``unface --help``, and ``unface gate`` of an audit, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        audit(make_identities(60, 4, 16, seed=1), far=(1e-2,), eraser=()).save(folder)
        policy = Path(folder) / "policy.toml"
        policy.write_text(_POLICY)
        commands = {"--help": ["--help"], "gate": ["gate", folder, "--policy", str(policy)]}
        took = {name: least_seconds(words) for name, words in commands.items()}
    return [Ratio(f"unface {name}, CPU-seconds", cpu, 0.4, detail=f"{cpu:.2f} s") for name, cpu in took.items()]


def least_seconds(words: list[str]) -> float:
    """Of a few starts; an exit code says what the gate found."""
    seconds = []
    for _ in range(_STARTS):
        before = os.times()
        subprocess.run([sys.executable, "-m", "unface", *words], check=False, stdout=subprocess.DEVNULL)
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(seconds)
