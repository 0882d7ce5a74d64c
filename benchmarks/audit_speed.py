"""What a default audit and the demo cost, in CPU-seconds of this machine."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.ratios import Ratio, cpu_seconds
from unface import audit, make_identities


def run() -> list[Ratio]:
    """A default audit of 300 identities × 10 images × 256 dimensions, and ``unface demo``."""
    people = make_identities(300, 10, 256, rank=64, between=0.6, seed=1)
    whole = cpu_seconds(lambda: audit(people), repeats=2)
    demo = cpu_of_demo()
    return [
        Ratio("default audit (300 × 10 × 256), CPU-seconds", whole, 10, detail=f"{whole:.1f} s"),
        Ratio("unface demo, CPU-seconds", demo, 20, detail=f"{demo:.1f} s"),
    ]


def cpu_of_demo() -> float:
    """In a process of its own, with all that it starts."""
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "unface", "demo", "--out", str(Path(folder) / "demo"), "--quiet"]
        subprocess.run(command, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
