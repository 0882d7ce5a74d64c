"""If these fail, an index comes back as another kind, with other settings, or knowing something of raw vectors."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.stores.contract import DIM, Vectors, erased, projection, raw_vectors, shorter
from unface.erase import Projection
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.faiss_index import FaissStore

faiss = pytest.importorskip("faiss", reason="faiss is not installed")
PROJECTION = projection()
RAW = raw_vectors(600)
ERASED = PROJECTION.apply(RAW)
IP, L2 = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2


def written(index: Any, path: Path, vectors: Vectors = RAW, ids: Any = None) -> Path:
    index.train(vectors)
    index.add(vectors) if ids is None else index.add_with_ids(vectors, ids)
    faiss.write_index(index, str(path))
    return path


def sanitised(path: Path, lossy_ok: bool = False) -> Any:
    sanitise_store(PROJECTION, FaissStore(path, lossy_ok=lossy_ok), purge=True)
    return faiss.read_index(str(path))


def left(vectors: Any) -> float:
    """Of length one as they are, how much is left along what was removed."""
    return float(np.abs(np.asarray(vectors, np.float64) @ PROJECTION.directions).max())


def require_refused(path: Path, *names: str, lossy_ok: bool = False, code: str = "store") -> None:
    """It is refused, and not a byte of the folder changed."""
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    with refused(code, "faces.index", *names):
        sanitise_store(PROJECTION, FaissStore(path, lossy_ok=lossy_ok), purge=True)
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "faces.index"


@pytest.mark.parametrize("metric", [IP, L2, faiss.METRIC_L1, faiss.METRIC_Lp])
def test_a_flat_index_is_the_one_that_would_be_built_from_erased_vectors(path: Path, metric: int) -> None:
    index = faiss.IndexFlat(DIM, metric)
    index.metric_arg = 3
    found = sanitised(written(index, path))
    wanted = faiss.IndexFlat(DIM, metric)
    wanted.metric_arg = 3
    wanted.add(ERASED)
    assert faiss.serialize_index(found).tobytes() == faiss.serialize_index(wanted).tobytes()


def test_hnsw_keeps_its_settings_and_finds_as_well(path: Path) -> None:
    index = faiss.IndexHNSWFlat(DIM, 12, IP)
    index.hnsw.efConstruction, index.hnsw.efSearch = 77, 33
    found = sanitised(written(index, path))
    assert type(found) is faiss.IndexHNSWFlat
    assert found.hnsw.nb_neighbors(1) == 12
    assert (found.hnsw.efConstruction, found.hnsw.efSearch, found.metric_type) == (77, 33, IP)
    assert np.array_equal(found.reconstruct_n(0, len(RAW)), ERASED)
    exact = np.argsort(-ERASED[:100] @ ERASED.T, axis=1)[:, :5]
    near = found.search(ERASED[:100], 5)[1]
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, near, strict=True)]) > 0.95


@pytest.mark.parametrize("metric", [IP, L2])
@pytest.mark.parametrize("coarse", [faiss.IndexFlat, lambda dim, metric: faiss.IndexHNSWFlat(dim, 8, metric)])
def test_lists_are_chosen_anew_by_centroids_that_know_nothing_of_raw_vectors(
    path: Path, metric: int, coarse: Callable[[int, int], Any]
) -> None:
    quantizer = coarse(DIM, metric)
    index = faiss.IndexIVFFlat(quantizer, DIM, 9, metric)
    index.nprobe = 4
    ids = np.arange(len(RAW)) * 10**12 + 5
    found = sanitised(written(index, path, ids=ids))
    assert type(found) is faiss.IndexIVFFlat
    assert (found.nlist, found.nprobe, found.metric_type, found.ntotal) == (9, 4, metric, len(RAW))
    centroids = faiss.downcast_index(found.quantizer).reconstruct_n(0, 9)
    assert left(centroids) < 1e-6
    assert left(faiss.downcast_index(quantizer).reconstruct_n(0, 9)) > 0.01
    if metric == IP:
        assert np.linalg.norm(centroids, axis=1) == pytest.approx(1, abs=1e-5)
    # Every vector lies in the list that a search for it looks into first.
    found.nprobe = 1
    assert (found.search(ERASED, 1)[1][:, 0] == ids).mean() > 0.99
    assert [found.invlists.list_size(one) for one in range(9)] != [index.invlists.list_size(one) for one in range(9)]


@pytest.mark.parametrize("kind", ["NoMap", "Array", "Hashtable"])
def test_a_map_from_ids_to_lists_is_kept(path: Path, kind: str) -> None:
    index = faiss.index_factory(DIM, "IVF5,Flat", IP)
    index.set_direct_map_type(getattr(faiss.DirectMap, kind))
    found = sanitised(written(index, path))
    assert found.direct_map.type == getattr(faiss.DirectMap, kind)
    if kind != "NoMap":
        assert np.array_equal(found.reconstruct(17), ERASED[17])


def test_ids_that_repeat_and_ids_below_zero_are_kept(path: Path) -> None:
    ids = np.where(np.arange(len(RAW)) % 2, -1 - np.arange(len(RAW)), 7)
    found = sanitised(written(faiss.IndexIDMap(faiss.IndexFlatIP(DIM)), path, ids=ids))
    assert np.array_equal(faiss.vector_to_array(found.id_map), ids)
    assert np.array_equal(faiss.downcast_index(found.index).reconstruct_n(0, len(ids)), ERASED)


@pytest.mark.parametrize("factory", ["IDMap,IVF5,Flat", "IDMap2,IVF5,Flat"])
def test_ids_over_lists_stay_with_their_vectors(path: Path, factory: str) -> None:
    ids = 10**9 - 17 * np.random.default_rng(0).permutation(len(RAW))
    index = faiss.index_factory(DIM, factory, IP)
    faiss.downcast_index(index.index).nprobe = 5
    found = sanitised(written(index, path, ids=ids))
    assert np.array_equal(found.search(ERASED, 1)[1][:, 0], ids)


def test_fewer_vectors_than_lists_will_do(path: Path) -> None:
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(DIM), DIM, 50, IP)
    index.train(RAW)
    index.add(RAW[:7])
    faiss.write_index(index, str(path))
    found = sanitised(path)
    assert (found.nlist, found.ntotal) == (50, 7)
    assert left(faiss.downcast_index(found.quantizer).reconstruct_n(0, 50)) < 1e-6


@pytest.mark.parametrize("factory", ["IVF5,Flat", "IDMap,IVF5,Flat"])
def test_lists_without_vectors_forget_the_centroids_of_raw_ones(path: Path, factory: str) -> None:
    index = faiss.index_factory(DIM, factory, IP)
    index.train(RAW)
    faiss.write_index(index, str(path))
    found = sanitised(path)
    assert not found.is_trained
    assert faiss.extract_index_ivf(found).quantizer.ntotal == 0


def test_a_vector_with_nan_is_refused_and_nothing_is_left_lying_about(path: Path) -> None:
    broken = RAW.copy()
    broken[3, 3] = np.nan
    index = faiss.IndexFlatIP(DIM)
    index.add(broken)
    faiss.write_index(index, str(path))
    require_refused(path, "NaN", code="apply")


def test_lists_on_disk_are_refused(path: Path) -> None:
    index = faiss.index_factory(DIM, "IVF5,Flat")
    lists = faiss.OnDiskInvertedLists(5, index.code_size, str(path.with_name("lists")))
    index.replace_invlists(lists)
    require_refused(written(index, path), "OnDiskInvertedLists")


def test_lists_that_lost_a_vector_with_nan_are_refused(path: Path) -> None:
    index = faiss.index_factory(DIM, "IVF5,Flat")
    index.train(RAW)
    broken = RAW.copy()
    broken[3, 3] = np.nan
    index.add(broken)
    faiss.write_index(index, str(path))
    require_refused(path, "600", "599")


def test_ids_that_removals_took_from_under_their_vectors_are_refused(path: Path) -> None:
    index = faiss.index_factory(DIM, "IDMap,IVF5,Flat")
    index.train(RAW)
    index.add_with_ids(RAW, np.arange(len(RAW)) + 10)
    index.remove_ids(np.arange(20))
    faiss.write_index(index, str(path))
    require_refused(path, "ids")


def test_without_faiss_it_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with refused("store", None, "'unface[stores]'"):
        FaissStore(path)


def test_a_projection_that_keeps_lengths_serves_an_index_by_l2(path: Path) -> None:
    by = Projection(PROJECTION.kind, PROJECTION.directions, PROJECTION.spectrum, PROJECTION.space, normalise=False)
    written(faiss.IndexFlatL2(DIM), path)
    sanitise_store(by, FaissStore(path))
    found = faiss.read_index(str(path)).reconstruct_n(0, len(RAW))
    assert found == pytest.approx(by.apply(RAW), abs=1e-6)
    assert np.linalg.norm(found, axis=1).max() < 0.999


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
    with refused("store", "faces.index", "its codes"):
        list(store.staged())


KINDS = ("Flat", "IDMap,Flat", "IDMap2,Flat", "HNSW8,Flat", "IVF4,Flat", "SQ8", "PQ4x4", "LSH", "IVF4,PQ4x4,RFlat")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_in_its_header_is_one_line(kind: str, path: Path) -> None:
    """Read in this process, most of these end it."""
    whole = written(faiss.index_factory(DIM, kind), path, RAW[:200], np.arange(200) if "IDMap" in kind else None)
    content = whole.read_bytes()
    for length in (28, 47, 66, 82):
        path.write_bytes(content[:length])
        require_refused(path, lossy_ok=True)
    path.write_bytes(content)
    FaissStore(path, lossy_ok=True).inspect()


def test_numbers_that_end_the_process_when_the_index_is_built_again_are_refused(path: Path) -> None:
    """Found by fuzzing: FAISS reads both without a word."""
    content = bytearray(written(faiss.index_factory(DIM, "PQ4x4,RFlat"), path, RAW).read_bytes())
    content[8:16] = (1 << 60).to_bytes(8, "little")  # how many vectors there are
    path.write_bytes(content)
    require_refused(path, "declares more", lossy_ok=True)
    scalar = faiss.index_factory(DIM, "SQ8")
    scalar.train(RAW)
    scalar.add(RAW)
    scalar.sq.rangestat = 77
    faiss.write_index(scalar, str(path))
    require_refused(path, "kind", lossy_ok=True)


def test_files_are_tried_in_a_process_of_their_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it; whole, cut in the header, and cut in the middle."""
    monkeypatch.setattr("unface.stores.faiss_index.subprocess", subprocess)
    whole = written(faiss.IndexHNSWFlat(DIM, 8, IP), path).read_bytes()
    assert sanitised(path).ntotal == len(RAW)
    for length in (30, len(whole) // 2):
        path.write_bytes(whole[:length])
        path.with_name("faces.index.unface.json").unlink(missing_ok=True)
        require_refused(path)


def test_a_size_that_the_file_does_not_hold_is_refused_before_it_is_allocated(path: Path) -> None:
    content = bytearray(written(faiss.IndexIDMap(faiss.IndexFlatL2(DIM)), path, RAW, np.arange(600)).read_bytes())
    content[-8 * 600 - 8 : -8 * 600] = (1 << 34).to_bytes(8, "little")  # how many ids follow
    path.write_bytes(content)
    require_refused(path, "declares more")


@pytest.mark.parametrize(
    "factory",
    [
        "IVF4,SQ8",
        "IVF4,PQ4x4",
        "IVF4_HNSW8,Flat",
        "SQ8",
        "PQ4x4",
        "LSH",
        "HNSW8_SQ8",
        "HNSW8_PQ4x4",
        "IDMap2,IVF4,Flat",
        "IVF4,Flat,RFlat",
    ],
)
def test_an_index_of_shorter_vectors_is_of_the_same_kind_and_settings(factory: str, tmp_path: Path) -> None:
    made = shorter()
    index = faiss.index_factory(DIM, factory, faiss.METRIC_INNER_PRODUCT if "IVF" in factory else faiss.METRIC_L2)
    raw = raw_vectors()
    index.train(raw)
    index.add(raw) if "IDMap" not in factory else index.add_with_ids(raw, np.arange(len(raw)) + 7)
    faiss.write_index(index, str(tmp_path / "faces.faiss"))
    receipt = sanitise_store(made, FaissStore(tmp_path / "faces.faiss", lossy_ok=True))
    after = faiss.read_index(str(tmp_path / "faces.faiss"))
    assert (type(after), after.d, after.ntotal, after.metric_type) == (type(index), 12, len(raw), index.metric_type)
    assert receipt.released_dim == 12
    found = after.search(made.apply(raw[:20]), 5)[1]
    first = 7 if "IDMap" in factory else 0
    # Codes of two bytes find a vector less often than the vector itself does.
    least = 0.2 if "PQ" in factory or factory == "LSH" else 0.9
    assert np.mean([number + first in row for number, row in enumerate(found)]) > least


def test_codes_of_parts_that_shorter_vectors_do_not_have_are_refused(tmp_path: Path) -> None:
    index = faiss.index_factory(DIM, "PQ8x4")
    index.train(raw_vectors())
    index.add(raw_vectors())
    faiss.write_index(index, str(tmp_path / "faces.faiss"))
    with refused("store", "faces.faiss", "8", "which 12", "--keep"):
        sanitise_store(shorter(), FaissStore(tmp_path / "faces.faiss", lossy_ok=True))


@pytest.mark.parametrize(
    ("factory", "part", "name", "value"),
    [
        ("IVF4,PQ4x4,RFlat", "", "ntotal", 1 << 40),  # FAISS allocates or loops for as many
        ("IVF4,PQ4x4,RFlat", "base_index", "ntotal", 7),
        ("IVF4,Flat", "quantizer", "d", 5),  # k-means writes past its end
        ("IDMap,Flat", "", "ntotal", 1 << 40),
        ("HNSW16", "storage", "d", 5),
        ("Flat", "", "ntotal", 1 << 40),
    ],
)
def test_an_index_whose_counts_do_not_agree_is_refused_before_it_is_rebuilt(
    path: Path, factory: str, part: str, name: str, value: int
) -> None:
    """FAISS reads some of these files, and crashes, hangs or fills the memory when they are rebuilt."""
    index = faiss.index_factory(DIM, factory)
    index.train(raw_vectors(300))
    if factory.startswith("IDMap"):
        index.add_with_ids(raw_vectors(300), np.arange(300))
    else:
        index.add(raw_vectors(300))
    setattr(faiss.downcast_index(getattr(index, part)) if part else index, name, value)
    faiss.write_index(index, str(path))
    require_refused(path, lossy_ok=True)


@pytest.mark.parametrize("made", [PROJECTION, shorter()], ids=["in the same dimension", "shorter"])
def test_the_receipt_says_what_its_index_finds_before_and_after(made: Projection, tmp_path: Path) -> None:
    """Of the ten nearest, the vector itself apart; by FAISS's own exact search."""

    def by_faiss(index: Any, vectors: Vectors) -> float:
        exact = faiss.IndexFlatIP(vectors.shape[1])
        exact.add(vectors)
        rows = range(len(vectors))
        near, found = (one.search(vectors, 11)[1] for one in (exact, index))
        return float(np.mean([len((set(near[row]) - {row}) & set(found[row])) / 10 for row in rows]))

    index = faiss.index_factory(DIM, "IVF32,Flat", IP)
    path = written(index, tmp_path / "faces.faiss")
    receipt = sanitise_store(made, FaissStore(path))
    after = faiss.read_index(str(path))
    assert receipt.recall_before is not None
    assert receipt.recall_after is not None
    assert receipt.recall_before < 0.9, "one list of 32 cannot hold all neighbours"
    wanted = by_faiss(index, RAW), by_faiss(after, made.apply(RAW))
    assert (receipt.recall_before, receipt.recall_after) == pytest.approx(wanted, abs=0.1)
    assert "recall@10 of its index" in receipt.sentence()
    exact = written(faiss.IndexFlatIP(DIM), tmp_path / "flat.faiss")
    assert sanitise_store(made, FaissStore(exact)).recall_before is None
