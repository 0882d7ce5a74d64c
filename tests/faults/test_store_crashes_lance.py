"""If these fail, a process killed while it sanitises a LanceDB table or a Qdrant collection spoils it for good."""

import os
import signal
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from tests.faults.calls import Calls
from tests.kit.processes import PROCESSES
from tests.stores import cases_lance, cases_qdrant
from tests.stores.contract import StoreCase, erased, projection, raw_vectors
from unface.seeds import stream
from unface.stores import sanitise_store

ROWS = 600
PROJECTION = projection()
MAKERS = {
    "lance": cases_lance.MAKERS["LanceDB with an index"],
    "qdrant": cases_qdrant.MAKERS["Qdrant"],
}
BATCHES = {"lance": 2, "qdrant": 3}


class Watched:
    """A progress that counts calls from a number of batches on, and at one of them ends the process."""

    def __init__(self, batches: int, dies_at: int | None) -> None:
        self.left, self.dies_at = batches, dies_at
        self.calls: Calls | None = None

    def start(self, task: str, total: int) -> None: ...

    def advance(self, task: str, steps: int = 1) -> None:
        self.left -= 1
        if self.left == 0:
            if self.dies_at == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.calls = Calls(self.dies_at)


def sanitise(kind: str, folder: Path, watched: Watched, told: Connection) -> None:
    """In a process of its own; tells how many calls there were after the batches."""
    sanitise_store(PROJECTION, MAKERS[kind](folder).open(), purge=True, progress=watched)
    told.send(watched.calls.stop() if watched.calls else 0)


def ended(kind: str, folder: Path, batches: int, dies_at: int | None) -> tuple[int | None, int]:
    """Exit code, and the number of calls where it was not killed."""
    calls, told = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=sanitise, args=(kind, folder, Watched(batches, dies_at), told))
    process.start()
    told.close()
    process.join(120)
    return process.exitcode, calls.recv() if process.exitcode == 0 else 0


def filled(kind: str, folder: Path) -> tuple[StoreCase, list[object]]:
    folder.mkdir()
    case = MAKERS[kind](folder)
    return case, list(case.fill(raw_vectors(ROWS)))


@pytest.fixture(scope="module")
def calls_of_all(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], int]:
    """How many calls an undisturbed run makes after its last batch."""

    @cache
    def counted(kind: str) -> int:
        folder = tmp_path_factory.mktemp(kind) / "store"
        filled(kind, folder)
        code, calls = ended(kind, folder, BATCHES[kind], None)
        assert code == 0
        return calls

    return counted


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("attempt", range(4))
def test_killed_anywhere_the_same_call_ends_right(
    kind: str, attempt: int, tmp_path: Path, calls_of_all: Callable[[str], int]
) -> None:
    """The first while it is staged, the others at any call after."""
    folder, raw = tmp_path / "store", raw_vectors(ROWS)
    case, ids = filled(kind, folder)
    batches, dies_at = 1, 0
    if attempt:
        batches, dies_at = BATCHES[kind], int(stream(attempt, "killed", kind).uniform(0.05, 0.95) * calls_of_all(kind))
    assert ended(kind, folder, batches, dies_at)[0] == -signal.SIGKILL
    finish(case)
    wanted = dict(zip(ids, erased(PROJECTION, raw, "float32"), strict=True))
    found = case.read()
    assert found.keys() == wanted.keys()
    assert all(np.allclose(found[key], wanted[key], rtol=0, atol=1e-6) for key in ids)
    contents = [path.read_bytes() for path in case.files()]
    assert not any(pattern in content for pattern in case.patterns(raw[7]) for content in contents)
    held = case.open().inspect()
    assert (held.rows, held.sanitised_with, held.raw_kept) == (ROWS, PROJECTION.sha256, False)


def finish(case: StoreCase) -> None:
    held = case.open().inspect()
    # All may have been done but the end of the process.
    if held.sanitised_with is None or held.raw_kept:
        sanitise_store(PROJECTION, case.open(), purge=True)
