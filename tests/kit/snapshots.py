"""Writes every snapshot anew: ``python -m tests.kit.snapshots``, which is ``make snapshots``."""

import os
import subprocess
import sys

from tests.kit.golden import REWRITE, ROOT, SNAPSHOTS, declaring_files, orphans, shown
from tests.refusals import words


def rewrite() -> int:
    """Write every snapshot, delete orphans, and print the files that changed; returns the exit code."""
    before = _contents()
    for orphan in orphans():
        orphan.unlink()
    files = [*declaring_files(), words.FILE.parent]
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(str(file.relative_to(ROOT)) for file in files),
    ]
    done = subprocess.run(tests, cwd=ROOT, env=os.environ | {REWRITE: "1"}, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    after = _contents()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            what = "new" if name not in before else "removed" if name not in after else "changed"
            print(f"{what}: {name}")
    if before == after:
        print(f"{len(after)} snapshots, none changed")
    return done.returncode


def _contents() -> dict[str, bytes]:
    files = [words.FILE, *(file for file in SNAPSHOTS.rglob("*") if file.is_file())]
    return {shown(file): file.read_bytes() for file in files}


if __name__ == "__main__":
    sys.exit(rewrite())
