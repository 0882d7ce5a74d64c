"""If these fail, a process killed while it sanitises a LanceDB table or a Qdrant collection spoils it for good."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.stores import cases_lance, cases_qdrant
from tests.stores.contract import StoreCase, erased, projection, raw_vectors
from unface.seeds import stream
from unface.stores import sanitise_store

ROOT = Path(__file__).resolve().parents[2]
ROWS = 600
PROJECTION = projection()
MAKERS = {
    "lance": cases_lance.MAKERS["LanceDB with an index"],
    "qdrant": cases_qdrant.MAKERS["Qdrant"],
}
OPEN = {
    "lance": "from unface.stores.lance import LanceStore as Store",
    "qdrant": """
from tests.stores.cases_qdrant import without_waiting_for_the_disk
from unface.stores.qdrant import QdrantStore as Store
without_waiting_for_the_disk()
""",
}
# The child says when a batch is erased, and waits a little so that it can be killed right there.
CHILD = """
import sys, time
from pathlib import Path
from unface.erase import Projection
from unface.stores import sanitise_store
class Told:
    def start(self, task, total): pass
    def advance(self, task, steps=1): print("batch", flush=True); time.sleep(0.02)
folder, projection = sys.argv[1:]
sanitise_store(Projection.load(Path(projection)), Store(folder, "faces"), purge=True, progress=Told())
"""
BATCHES = {"lance": 2, "qdrant": 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("attempt", range(3))
def test_killed_anywhere_the_same_call_ends_right(kind: str, attempt: int, tmp_path: Path) -> None:
    """The first while it is staged, the others at any moment after."""
    folder, fitted = tmp_path / "store", tmp_path / "projection.safetensors"
    folder.mkdir()
    case = MAKERS[kind](folder)
    raw = raw_vectors(ROWS)
    ids = list(case.fill(raw))
    PROJECTION.save(fitted)
    batches = BATCHES[kind] if attempt else 1
    later = stream(attempt, "killed", kind).uniform(0, 0.6) if attempt else 0.0
    kill_after(batches, later, [OPEN[kind] + CHILD, str(folder), str(fitted)])
    finish(case)
    wanted = dict(zip(ids, erased(PROJECTION, raw, "float32"), strict=True))
    found = case.read()
    assert found.keys() == wanted.keys()
    assert all(np.allclose(found[key], wanted[key], rtol=0, atol=1e-6) for key in ids)
    contents = [path.read_bytes() for path in case.files()]
    assert not any(pattern in content for pattern in case.patterns(raw[7]) for content in contents)
    held = case.open().inspect()
    assert (held.rows, held.sanitised_with, held.raw_kept) == (ROWS, PROJECTION.sha256, False)


def kill_after(batches: int, later: float, arguments: list[str]) -> None:
    """Start the child, let it say so many batches, wait, and end it by SIGKILL."""
    paths = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    child = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True, env=paths)
    assert child.stdout is not None
    with child:
        said = [child.stdout.readline().strip() for _ in range(batches)]
        time.sleep(later)
        child.kill()
    assert said == ["batch"] * batches


def finish(case: StoreCase) -> None:
    held = case.open().inspect()
    # It may have been quicker than the kill.
    if held.sanitised_with is None or held.raw_kept:
        sanitise_store(PROJECTION, case.open(), purge=True)
