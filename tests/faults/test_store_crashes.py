"""If these fail, a power cut while a FAISS index or .npy file is sanitised loses vectors or leaves raw ones unseen."""

import itertools
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.stores import cases_faiss, cases_npy
from tests.stores.contract import Maker, StoreCase, erased, projection, raw_vectors
from tests.stores.killed import Open, killed_at_call, killed_before
from unface.seeds import stream
from unface.stores import sanitise_store
from unface.stores.faiss_index import FaissStore
from unface.stores.npy import NpyStore

PROJECTION = projection()
KINDS = {
    "faiss IVF4,Flat": cases_faiss.MAKERS["faiss IVF4,Flat"],
    "faiss HNSW16": cases_faiss.MAKERS["faiss HNSW16"],
    "npy float32": cases_npy.MAKERS["npy float32"],
}


class Crashing:
    """One store that is filled again for every crash, and must end the same whatever happened."""

    def __init__(self, kind: str, folder: Path, rows: int) -> None:
        self.folder, self.raw = folder, raw_vectors(rows)
        maker: Maker = KINDS[kind]
        self.case: StoreCase = maker(folder)
        self.open: Open = partial(FaissStore, folder / "faces.index")
        if kind.startswith("npy"):
            self.open = partial(NpyStore, folder / "faces.npy")
        self.erased = erased(PROJECTION, self.raw, "float32")

    def fill(self) -> None:
        for entry in list(self.folder.iterdir()):
            entry.unlink()
        self.ids = list(self.case.fill(self.raw))

    def require_whole(self) -> None:
        """Whoever reads between the crash and the next run finds all raw or all erased vectors, as the store says."""
        held = self.open().inspect()
        assert held.rows == len(self.raw)
        self._require(self.raw if held.sanitised_with is None else self.erased)

    def require_same_end(self) -> None:
        held = self.open().inspect()
        if held.sanitised_with is None or held.raw_kept:
            sanitise_store(PROJECTION, self.open(), purge=True)
        self._require(self.erased)
        planted = self.raw[7].tobytes()
        assert [path.name for path in self.case.files() if planted in path.read_bytes()] == []
        assert not self.open().inspect().raw_kept
        live = next(path.name for path in self.folder.iterdir() if path.suffix in {".npy", ".index"})
        assert sorted(path.name for path in self.folder.iterdir()) == [live, f"{live}.unface.json"]

    def _require(self, vectors: NDArray[np.floating]) -> None:
        found = self.case.read()
        assert found.keys() == set(self.ids)
        assert np.allclose([found[one] for one in self.ids], vectors, rtol=0, atol=1e-6)


def test_killed_before_each_change_of_the_folder_it_ends_the_same(tmp_path: Path) -> None:
    crashing = Crashing("faiss IVF4,Flat", tmp_path, rows=60)
    for change in itertools.count():
        crashing.fill()
        cut = killed_before(change, crashing.open).cut
        crashing.require_whole()
        crashing.require_same_end()
        if not cut:
            break
    assert change > 8


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_call_it_ends_the_same(kind: str, tmp_path: Path) -> None:
    crashing = Crashing(kind, tmp_path, rows=4_000)
    crashing.fill()
    whole = killed_at_call(None, crashing.open).calls
    cuts = []
    for share in stream(0, "crash", kind).uniform(0, 1, size=6):
        crashing.fill()
        cuts.append(killed_at_call(1 + int(share * whole), crashing.open).cut)
        crashing.require_whole()
        crashing.require_same_end()
    # How many calls there are varies a little with the threads.
    assert sum(cuts) >= 5


@pytest.mark.parametrize("kind", ["faiss IVF4,Flat", "npy float32"])
def test_rows_added_after_a_crash_and_its_repair_are_never_erased_a_second_time(kind: str, tmp_path: Path) -> None:
    """Wherever the first run died: the next one finds a file that is neither the raw one nor the erased one."""
    crashing = Crashing(kind, tmp_path, rows=60)
    for change in itertools.count():
        crashing.fill()
        cut = killed_before(change, crashing.open).cut
        crashing.require_same_end()
        grown = np.vstack([crashing.erased, crashing.erased[:5]])
        if kind.startswith("npy"):
            np.save(tmp_path / "faces.npy", grown)
        else:
            index = faiss.read_index(str(tmp_path / "faces.index"))
            index.add_with_ids(grown[-5:], np.arange(90_000, 90_005))
            faiss.write_index(index, str(tmp_path / "faces.index"))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with refused("store", ...):
            sanitise_store(PROJECTION, crashing.open(), purge=True)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        if not cut:
            break
    assert change > 8


def test_codes_killed_before_each_change_leave_nothing_after_the_next_run(tmp_path: Path) -> None:
    """Their erased vectors lie in a file of their own until the swap."""
    index = faiss.index_factory(32, "SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(raw_vectors(60))
    index.add(raw_vectors(60))
    store = partial(FaissStore, tmp_path / "faces.index", lossy_ok=True)
    for change in itertools.count():
        for entry in list(tmp_path.iterdir()):
            entry.unlink()
        faiss.write_index(index, str(tmp_path / "faces.index"))
        cut = killed_before(change, store).cut
        if store().inspect().sanitised_with is None:
            sanitise_store(PROJECTION, store())
        names = {path.name for path in tmp_path.iterdir()}
        assert names - {"faces.index.raw"} == {"faces.index", "faces.index.unface.json"}
        if not cut:
            break
    assert change > 8
