"""If these fail, codes of raw vectors, or a code book learned from them, stay in an index."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stores.contract import DIM, Vectors, erased
from tests.stores.faiss_file import ERASED, IP, PROJECTION, RAW, faiss, refused, sanitised, written
from unface import UnfaceError
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.faiss_index import FaissStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "faces.index"


@pytest.mark.parametrize("factory", ["Flat,RFlat", "SQ8,RFlat", "IVF5,PQ4x4np,RFlat"])
def test_codes_refined_by_whole_vectors_are_exact_and_learned_again(path: Path, factory: str) -> None:
    index = faiss.index_factory(DIM, factory, IP)
    index.k_factor = 7
    found = sanitised(written(index, path))
    assert found.k_factor == 7
    assert np.array_equal(faiss.downcast_index(found.refine_index).reconstruct_n(0, len(RAW)), ERASED)
    wanted = faiss.index_factory(DIM, factory, IP)
    wanted.train(ERASED)
    wanted.add(ERASED)
    base, built = (faiss.downcast_index(one.base_index) for one in (found, wanted))
    assert base.reconstruct_n(0, 600) == pytest.approx(built.reconstruct_n(0, 600), abs=1e-6)


LOSSY = ["SQ8", "SQfp16", "PQ8x4np", "LSH", "IVF5,SQ8", "IVF5,PQ8x4np", "HNSW8_SQ8", "IDMap,PQ8x4np"]


@pytest.mark.parametrize("factory", LOSSY)
def test_codes_are_refused_with_the_reason(path: Path, factory: str) -> None:
    ids = np.arange(len(RAW)) if "IDMap" in factory else None
    told = refused(written(faiss.index_factory(DIM, factory), path, ids=ids))
    assert "keeps codes, so only rounded vectors can be erased" in told
    assert "its code book was learned from raw ones" in told


@pytest.mark.parametrize("factory", [*LOSSY, pytest.param("HNSW8_PQ8x4", marks=pytest.mark.slow)])
def test_codes_are_those_of_the_erased_rounded_vectors_if_that_is_allowed(path: Path, factory: str) -> None:
    ids = np.arange(len(RAW)) if "IDMap" in factory else None
    index = faiss.index_factory(DIM, factory)
    written(index, path, ids=ids)
    rounded = decoded(index)
    found = sanitised(path, lossy_ok=True)
    assert type(found) is type(faiss.downcast_index(index))
    wanted = erased(PROJECTION, rounded, "float32")
    if factory.startswith("IVF"):  # lists give another order, and so a slightly other code book
        assert np.abs(decoded(found) - wanted).mean() < 0.5 * np.abs(wanted).mean()
    else:
        again = faiss.index_factory(DIM, factory)
        written(again, path.with_name("again"), wanted, ids)
        assert np.array_equal(decoded(found), decoded(again))
    assert sorted(entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")) == []


def decoded(index: Any) -> Vectors:
    inner = faiss.downcast_index(index.index) if hasattr(index, "id_map") else index
    if hasattr(inner, "make_direct_map"):
        inner.make_direct_map()
    found: Vectors = inner.reconstruct_n(0, inner.ntotal)
    return found


def test_the_erased_vectors_that_codes_are_checked_by_do_not_stay(path: Path) -> None:
    written(faiss.index_factory(DIM, "SQ8"), path)
    sanitise_store(PROJECTION, FaissStore(path, lossy_ok=True))
    left = sorted(entry.name for entry in path.parent.iterdir())
    assert left == ["faces.index", "faces.index.raw", "faces.index.unface.json"]


def test_codes_of_other_vectors_than_the_erased_ones_are_not_swapped_in(path: Path) -> None:
    written(faiss.index_factory(DIM, "PQ8x4np"), path)
    store = FaissStore(path, lossy_ok=True)
    store.stage(PROJECTION.apply, PROJECTION.sha256, Silent())
    rows = next(path.parent.glob(".*.rows"))
    kept = np.lib.format.open_memmap(rows, "r+")
    kept[5] = -kept[5]
    kept.flush()
    with pytest.raises(UnfaceError, match="its codes are not those of the erased vectors"):
        list(store.staged())


@pytest.mark.parametrize("factory", ["PQ8x4np", "IVF5,SQ8", "PQ8x4np,RFlat"])
def test_codes_without_vectors_are_refused_since_their_book_is_all_they_hold(path: Path, factory: str) -> None:
    index = faiss.index_factory(DIM, factory)
    index.train(RAW)
    faiss.write_index(index, str(path))
    assert "only what was learned from raw ones" in refused(path, lossy_ok=True)
