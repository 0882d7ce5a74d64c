"""If these fail, sanitising a LanceDB table, killed or not, loses a row or an index, or keeps raw vectors."""

import importlib
import itertools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.stores.cases_lance import TABLE, table_of
from tests.stores.contract import DIM, projection, raw_vectors
from tests.stores.killed import killing
from unface import Projection, UnfaceError
from unface.progress import Silent
from unface.scale import released_vectors
from unface.seeds import stream
from unface.stores import sanitise_store
from unface.stores.lance import LanceStore, Staging

lance = pytest.importorskip("lance")
lancedb = pytest.importorskip("lancedb")
PROJECTION = projection()
MARK = PROJECTION.sha256
ROWS = 600


def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    return released_vectors(PROJECTION, vectors, "here")


def table_in(folder: Path) -> Path:
    """A table of two fragments with an index on a column that is not the vectors'."""
    table = lancedb.connect(folder).create_table(TABLE, rows(0, ROWS // 2))
    table.add(rows(ROWS // 2, ROWS))
    table.create_index("row", config=lancedb.index.BTree())
    return folder


def rows(start: int, stop: int) -> pa.Table:
    made = table_of(raw_vectors(ROWS)[start:stop], [f"id {row}" for row in range(start, stop)])
    return made.set_column(2, "row", pa.array(range(start, stop), pa.int64()))


def opened(folder: Path) -> Any:
    return lancedb.connect(folder).open_table(TABLE)


def vectors(folder: Path) -> NDArray[np.float32]:
    found = opened(folder).to_arrow().sort_by("row").column("vector").combine_chunks()
    numbers: NDArray[np.float32] = found.flatten().to_numpy()
    return numbers.reshape(-1, DIM)


def holding(folder: Path, vector: NDArray[np.float32]) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if vector.tobytes() in path.read_bytes()]


def told(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Of each index: which one it is, its type, its settings, and how many rows it covers."""
    data = lance.dataset(folder / f"{TABLE}.lance")
    found = {}
    for index in opened(folder).list_indices():
        first = data.stats.index_stats(index.name)["indices"][0]
        inner = first.get("sub_index", {})
        settings = [first.get("metric_type"), first.get("num_partitions"), inner.get("params")]
        settings += [inner.get(key) for key in ("nbits", "num_bits", "num_sub_vectors")]
        found[index.name] = (index.index_uuid, index.index_type, index.columns, settings, index.num_indexed_rows)
    return dict(sorted(found.items()))


def path(folder: Path) -> Path:
    return folder / f"{TABLE}.lance"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return table_in(tmp_path)


INDICES = {
    "IvfFlat": {"num_partitions": 2},
    "IvfSq": {"num_partitions": 2},
    "IvfPq": {"num_partitions": 2, "num_sub_vectors": 8, "num_bits": 4},
    "IvfRq": {"num_partitions": 2},
    "HnswSq": {"num_partitions": 1, "m": 12, "ef_construction": 77},
    "HnswPq": {"num_partitions": 1, "m": 12, "ef_construction": 77, "num_sub_vectors": 8},
}


@pytest.mark.parametrize("kind", INDICES)
def test_the_vector_index_is_made_again_as_it_was_and_other_indices_stay(folder: Path, kind: str) -> None:
    config = getattr(lancedb.index, kind)(distance_type="cosine", **INDICES[kind])
    opened(folder).create_index("vector", config=config, name="my own name")
    before = told(folder)
    assert before.keys() == {"my own name", "row_idx"}
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    after = told(folder)
    assert [after[name][1:] for name in after] == [before[name][1:] for name in before]
    assert after["my own name"][0] != before["my own name"][0]
    assert len(list((folder / f"{TABLE}.lance" / "_indices").iterdir())) == 2
    erased = erase(raw_vectors(ROWS))
    found = opened(folder).search(erased[5]).distance_type("cosine").refine_factor(20).limit(1).to_list()
    assert found[0]["id"] == "id 5"
    assert opened(folder).search().where("row = 7").to_list()[0]["id"] == "id 7"


def test_other_columns_and_the_order_of_columns_stay(folder: Path) -> None:
    before = opened(folder).to_arrow().sort_by("row")
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    after = opened(folder).to_arrow().sort_by("row")
    assert after.schema.equals(before.schema)
    assert after.drop_columns("vector").equals(before.drop_columns("vector"))


def test_while_it_is_staged_a_search_needs_no_column_name_and_finds_raw_vectors(folder: Path) -> None:
    LanceStore(str(folder), TABLE).stage(erase, MARK, Silent())
    assert opened(folder).search(raw_vectors(ROWS)[9]).limit(1).to_list()[0]["_distance"] == 0


def test_vectors_of_deleted_rows_are_purged_too(folder: Path) -> None:
    opened(folder).delete("row = 3")
    assert holding(folder, raw_vectors(ROWS)[3])
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert holding(folder, raw_vectors(ROWS)[3]) == []
    assert len(vectors(folder)) == ROWS - 1


def test_a_table_of_one_fragment_which_lance_sees_no_need_to_compact_is_purged_too(tmp_path: Path) -> None:
    lancedb.connect(tmp_path).create_table(TABLE, rows(0, ROWS))
    sanitise_store(PROJECTION, LanceStore(str(tmp_path), TABLE), purge=True)
    assert vectors(tmp_path) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert holding(tmp_path, raw_vectors(ROWS)[7]) == []


def test_vectors_in_data_files_of_their_own_are_replaced_and_purged(folder: Path) -> None:
    table = opened(folder)
    table.add_columns({"second": "vector"})
    table.drop_columns(["vector"])
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE, "second"), purge=True)
    found = opened(folder).to_arrow().sort_by("row").column("second").combine_chunks().flatten().to_numpy()
    assert found.reshape(-1, DIM) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


def test_of_two_columns_of_vectors_one_is_replaced(folder: Path) -> None:
    opened(folder).add_columns({"scene": "vector"})
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    found = opened(folder).to_arrow().sort_by("row").column("scene").combine_chunks().flatten().to_numpy()
    assert np.array_equal(found.reshape(-1, DIM), raw_vectors(ROWS))
    assert vectors(folder) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)


def test_a_tag_that_would_keep_raw_vectors_stops_the_purge(folder: Path) -> None:
    opened(folder).tags.create("golden", 1)
    store = LanceStore(str(folder), TABLE)
    with refused("store", "faces.lance, column 'vector'", "'golden'"):
        sanitise_store(PROJECTION, store, purge=True)
    assert store.inspect().raw_kept
    opened(folder).tags.delete("golden")
    sanitise_store(PROJECTION, store, purge=True)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


def test_rows_without_a_vector_are_refused_by_their_ids(folder: Path) -> None:
    schema = rows(0, 1).schema
    lance.write_dataset(
        pa.table({"id": ["empty"], "vector": [None], "row": [-1]}, schema=schema), path(folder), mode="append"
    )
    with refused("store", "faces.lance, column 'vector'", "1", "without"):
        LanceStore(str(folder), TABLE).inspect()
    with refused("store", "faces.lance, column 'vector'", "1", "'empty'"):
        LanceStore(str(folder), TABLE, id_column="id").inspect()


def test_nan_is_refused_and_nothing_changes(folder: Path) -> None:
    lance.write_dataset(table_of(np.full((1, DIM), np.nan, np.float32), ["bad"]), path(folder), mode="append")
    before = lance.dataset(path(folder)).version
    with refused("apply", "faces.lance, column 'vector'"):
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert lance.dataset(path(folder)).version == before


def test_without_lance_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lance", None)
    with refused("store", None, "'unface[stores]'"):
        LanceStore(str(folder), TABLE).inspect()


def test_what_cannot_be_sanitised_is_refused_in_a_sentence(folder: Path) -> None:
    lance.write_dataset(pa.table({"vector": [[1.0, 2.0], [3.0]]}), folder / "ragged.lance")
    lance.dataset(path(folder)).shallow_clone(str(folder / "clone.lance"), 1)
    for store, named in (
        (
            LanceStore(str(folder), TABLE, "embedding"),
            "'embedding'",
        ),
        (LanceStore(str(folder), TABLE, id_column="key"), "'key'"),
        (LanceStore(str(folder), "other"), "'other.lance'"),
        (LanceStore(str(folder / "gone"), TABLE), f"{folder / 'gone'}"),
        (LanceStore(str(folder), "ragged"), "fixed_size_list"),
        (LanceStore(str(folder), "clone"), "clone"),
        (LanceStore(str(folder), TABLE, "row"), "int64"),
    ):
        with refused(..., ..., named):
            store.inspect()
    with refused("store", "faces"):
        LanceStore("s3://bucket/db", TABLE)
    with refused("store", "faces.lance, column 'vector'", "nothing is"):
        LanceStore(str(folder), TABLE).swap(MARK)
    with refused("store", "faces.lance, column 'vector'", "not sanitised"):
        LanceStore(str(folder), TABLE).purge()


def test_staging_goes_on_after_the_last_whole_fragment(folder: Path) -> None:
    def dies(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        if len(vectors):  # no rows: a question about the dimension
            seen.append(len(vectors))
            if len(seen) == 2:
                raise KeyboardInterrupt
        return erase(vectors)

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        LanceStore(str(folder), TABLE).stage(dies, MARK, Silent())
    assert seen == [ROWS // 2, ROWS // 2]
    seen = [0] * 9
    LanceStore(str(folder), TABLE).stage(dies, MARK, Silent())
    assert seen[9:] == [ROWS // 2]


@pytest.mark.parametrize("step", ["drop_index", "save", "commit", "create_index", "update_field_metadata"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_around_each_step_of_the_swap_the_same_call_ends_right(
    folder: Path, step: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    where: Any = lance.LanceDataset
    if step == "save":
        where = Staging
    with monkeypatch.context() as patch:
        patch.setattr(where, step, killing(getattr(where, step), before))
        with pytest.raises(KeyboardInterrupt):
            store.swap(MARK)
    held = LanceStore(str(folder), TABLE).inspect()
    if (step, before) == ("update_field_metadata", False):
        assert held.sanitised_with == MARK
        LanceStore(str(folder), TABLE).purge()
    else:
        assert held.sanitised_with is None
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert told(folder).keys() == {"vector_idx", "row_idx"}
    assert holding(folder, raw_vectors(ROWS)[7]) == []
    assert LanceStore(str(folder), TABLE).inspect().sanitised_with == MARK


@pytest.mark.parametrize("step", ["cleanup_old_versions", "update_field_metadata"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_around_each_step_of_a_purge_the_same_call_ends_right(
    folder: Path, step: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, step, killing(getattr(lance.LanceDataset, step), before))
        with pytest.raises(KeyboardInterrupt):
            LanceStore(str(folder), TABLE).purge()
    unpurged = LanceStore(str(folder), TABLE).inspect().raw_kept
    assert unpurged is not (step == "update_field_metadata" and not before)
    if unpurged:
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


@pytest.mark.parametrize("write", ["add", "update", "delete"])
def test_what_is_written_after_staging_is_neither_lost_nor_left_raw(folder: Path, write: str) -> None:
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    if write == "add":
        opened(folder).add(table_of(-raw_vectors(1), ["late"]))
    elif write == "update":
        opened(folder).update(where="row = 3", values={"vector": (-raw_vectors(1)[0]).tolist()})
    else:
        opened(folder).delete("row = 3")
    assert store.unmatched() > 0
    with refused("store", "faces.lance, column 'vector'", "written"):
        store.swap(MARK)
    wanted = erase(vectors(folder))
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("purge", [True, False])
def test_rows_added_raw_after_an_earlier_run_are_erased_by_the_same_call_and_listed(folder: Path, purge: bool) -> None:
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    opened(folder).add(table_of(-raw_vectors(1), ["late"]))
    wanted = np.insert(erase(raw_vectors(ROWS)), 1, erase(-raw_vectors(1)), axis=0)  # both are row 0
    receipt = sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=purge)
    assert (receipt.rows, receipt.arrived, receipt.raw_purged) == (ROWS + 1, 1, purge)
    assert vectors(folder) == pytest.approx(wanted, abs=1e-6)
    with refused("store", "faces.lance, column 'vector'", "already"):
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    assert bool(holding(folder, -raw_vectors(1)[0])) is not purge


ARRIVALS = [
    ("commit", False),
    ("create_index", True),
    ("create_index", False),
    ("compact_files", True),
    ("compact_files", False),
    ("cleanup_old_versions", True),
    ("cleanup_old_versions", False),
]


@pytest.mark.parametrize("write", ["add", "add and delete", "update"])
@pytest.mark.parametrize(("step", "before"), ARRIVALS)
def test_what_is_written_raw_between_the_swap_and_the_receipt_is_erased_and_listed(
    folder: Path, step: str, before: bool, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    late = -raw_vectors(1)
    wanted = dict(enumerate(erase(raw_vectors(ROWS))))

    def write_meanwhile() -> None:
        if write == "update":
            opened(folder).update(where="row = 3", values={"vector": late[0].tolist()})
            wanted[3] = erase(late)[0]
            return
        opened(folder).add(table_of(late, ["late"]))
        if write == "add and delete":
            opened(folder).delete("id = 'late'")
        else:
            wanted[ROWS] = erase(late)[0]

    owner = type(lance.dataset(path(folder)).optimize) if step == "compact_files" else lance.LanceDataset
    if step == "commit":  # the first two make the detached versions
        patch_with_writer(monkeypatch, "_commit_swap", before, write_meanwhile, LanceStore)
    else:
        patch_with_writer(monkeypatch, step, before, write_meanwhile, owner)
    receipt = sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert receipt.arrived == (write != "add and delete")
    found = opened(folder).to_arrow()
    assert len(found) == len(wanted)
    now = np.stack(found.column("vector").to_pylist()).astype(np.float32)
    assert sorted(now[:, 0]) == pytest.approx(sorted(vector[0] for vector in wanted.values()), abs=1e-6)
    assert told(folder).keys() == {"vector_idx", "row_idx"}
    # A compaction that met another writer leaves files, which only differ from those of other writers in their owner.
    listed = [note for note in receipt.notes if "belong to no version of the table" in note]
    assert all(str(name).rpartition("/")[2] in listed[0] for name in holding(folder, late[0]))
    assert LanceStore(str(folder), TABLE).inspect().raw_kept is bool(listed)
    assert bool(listed) is ((step, before, write) == ("compact_files", True, "update"))
    (nearest,) = opened(folder).search(erase(late)[0]).limit(1).to_list()
    assert write == "add and delete" or np.allclose(nearest["vector"], erase(late)[0], atol=1e-6)


def test_a_write_in_progress_survives_a_purge_and_is_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data file is there and its commit is still to come."""
    late = -raw_vectors(1)
    begun = []

    def begin() -> None:
        begun.extend(lance.fragment.write_fragments(table_of(late, ["late"]), path(folder)))

    patch_with_writer(monkeypatch, "cleanup_old_versions", True, begin)
    receipt = sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    monkeypatch.undo()
    (file,) = begun[0].files
    assert any(file.path in note and "belong to no version" in note for note in receipt.notes)
    latest = lance.dataset(path(folder)).version
    lance.LanceDataset.commit(path(folder), lance.LanceOperation.Append(begun), read_version=latest)
    assert len(vectors(folder)) == ROWS + 1
    receipt = sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert (receipt.arrived, receipt.notes[1:]) == (1, [])
    assert holding(folder, late[0]) == []


def test_an_index_that_cannot_be_made_again_is_named_and_does_not_stand_in_the_way_of_a_purge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise RuntimeError("no memory")

    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, "create_index", fails)
        with refused("store", "faces.lance, column 'vector'", "'vector_idx'", "l2", "2"):
            sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


WRITES = {
    "add": lambda folder: opened(folder).add(table_of(-raw_vectors(1), ["late"])),
    "update": lambda folder: opened(folder).update(where="row = 3", values={"vector": (-raw_vectors(1)[0]).tolist()}),
    "delete": lambda folder: opened(folder).delete("row < 4"),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_during_staging_is_refused_and_staged_by_the_next_run(
    folder: Path, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_with_writer(monkeypatch, "merge_columns", False, lambda: WRITES[write](folder), lance.LanceFragment)
    with refused("store", "faces.lance, column 'vector'", "written"):
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    wanted = erase(vectors(folder))
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("step", ["drop_index", "commit"])
@pytest.mark.parametrize("before", [True, False])
def test_what_is_written_during_the_swap_is_neither_lost_nor_left_raw_nor_brought_back(
    folder: Path, step: str, before: bool, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client writes right before or after a step; after the commit it writes to a sanitised table."""
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    wanted = {}

    def write_meanwhile() -> None:
        WRITES[write](folder)
        wanted["vectors"] = erase(vectors(folder))

    patch_with_writer(monkeypatch, step, before, write_meanwhile)
    if (step, before) == ("commit", False):
        store.swap(MARK)
        assert len(vectors(folder)) == {"add": ROWS + 1, "update": ROWS, "delete": ROWS - 4}[write]
        return
    with refused("store", "faces.lance, column 'vector'", "written"):
        store.swap(MARK)
    monkeypatch.undo()
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(wanted["vectors"], abs=1e-6)
    assert told(folder).keys() == {"vector_idx", "row_idx"}


def test_an_index_that_another_client_builds_from_raw_vectors_during_the_swap_is_dropped_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_meanwhile() -> None:
        opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2), name="late")

    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    patch_with_writer(monkeypatch, "commit", True, build_meanwhile)
    with refused("store", "faces.lance, column 'vector'", "'late'"):
        store.swap(MARK)
    monkeypatch.undo()
    assert told(folder).keys() == {"vector_idx", "row_idx"}
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


def patch_with_writer(
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    before: bool,
    write: Callable[[], None],
    owner: type = lance.LanceDataset,
) -> None:
    """Let another client write once, right before or after a step."""
    whole = getattr(owner, step)
    writes = [write]

    def with_writer(*given: Any, **more: Any) -> Any:
        if before and writes:
            writes.pop()()
        made = whole(*given, **more)
        if writes:
            writes.pop()()
        return made

    monkeypatch.setattr(owner, step, staticmethod(with_writer) if step == "commit" else with_writer)


KILLS = [
    (lance.LanceDataset, "drop_index"),
    (lance.LanceDataset, "commit"),
    (lance.LanceDataset, "create_index"),
    (lance.LanceDataset, "update_field_metadata"),
    (Staging, "save"),
    (Path, "unlink"),
]


def cut_at(step: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run it up to its nth change, counting before and after each; returns whether it got there."""
    passed = [0]

    def count() -> None:
        passed[0] += 1
        if passed[0] >= step:
            raise KeyboardInterrupt

    def counted(whole: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **more: Any) -> Any:
            count()
            made = whole(*given, **more)
            count()
            return made

        return run

    with monkeypatch.context() as patch:
        for owner, name in KILLS:
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
        except KeyboardInterrupt:
            return True
        except UnfaceError as error:
            if "raw vectors are still kept" not in str(error):  # unless an earlier run was as good as done
                raise
    return False


SECOND_STEPS = (1, 2, 3, 4, 6, 9, 1000)


def second_steps(first: int) -> tuple[int, ...]:
    """Every step is the first to be cut at; which one is the second is drawn, but ``make campaign`` tries them all."""
    if os.environ.get("UNFACE_CAMPAIGN"):
        return SECOND_STEPS
    return (int(stream(2026, "killed twice", first).choice(SECOND_STEPS)),)


@pytest.mark.slow
def test_killed_twice_anywhere_it_keeps_rows_and_indices_and_leaves_no_working_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_over(folder: Path) -> list[str]:
        versions = path(folder) / "_versions"
        return [file.name for file in [*folder.glob(".*"), *versions.glob("d*.manifest")]]

    source = table_in(tmp_path / "source")
    opened(source).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    wanted = erase(raw_vectors(ROWS))
    lost: list[tuple[int, int, str]] = []
    for first in itertools.count(1):
        once = tmp_path / f"once {first}"
        shutil.copytree(source, once)
        if not cut_at(first, once, monkeypatch):
            break
        for second in second_steps(first):
            twice = tmp_path / "twice"
            shutil.copytree(once, twice)
            cut_at(second, twice, monkeypatch)
            cut_at(1000, twice, monkeypatch)
            assert vectors(twice) == pytest.approx(wanted, abs=1e-6)
            if told(twice).keys() != {"vector_idx", "row_idx"}:
                lost.append((first, second, "index"))
            lost += [(first, second, name[:1]) for name in left_over(twice)]
            shutil.rmtree(twice)
    assert first > 20
    assert lost == []


def test_a_note_that_cannot_be_read_is_refused_since_it_may_list_dropped_indices(folder: Path) -> None:
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    note = folder / f".{TABLE}.vector.unface.json"
    note.write_bytes(note.read_bytes()[:-9])
    with refused("store", "faces.lance, column 'vector'", "list"):
        sanitise_store(PROJECTION, store)
    note.unlink()
    sanitise_store(PROJECTION, store)


def test_detached_versions_of_others_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {1: lance.LanceOperation.UpdateMap({"theirs": "yes"})}
    theirs = lance.LanceDataset.commit(
        path(folder), lance.LanceOperation.UpdateConfig(field_metadata_updates=changed), read_version=1, detached=True
    )
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert [file.name for file in (path(folder) / "_versions").glob("d*")] == [f"d{theirs.version}.manifest"]


OWNERS: dict[str, Any] = {
    "merge_columns": lance.LanceFragment,
    "compact_files": importlib.import_module("lance.dataset").DatasetOptimizer,
    **dict.fromkeys(("drop_index", "commit", "create_index", "cleanup_old_versions"), lance.LanceDataset),
    **dict.fromkeys(("inspect", "staged", "unmatched", "swap", "erase_arrivals", "purge"), LanceStore),
}


@pytest.mark.parametrize("step", OWNERS)
def test_a_second_run_is_refused_from_the_first_step_to_the_last(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its projection: between two steps it would purge files that the first one still reads."""
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    refusals = []

    def second() -> None:
        for other in (PROJECTION, projection(seed=1)):
            with refused("store", ..., "another run") as caught:
                sanitise_store(other, LanceStore(str(folder), TABLE), purge=True)
            refusals.append(caught)

    patch_with_writer(monkeypatch, step, True, second, OWNERS[step])
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    monkeypatch.undo()
    assert refusals
    check_finished(folder)


def test_a_file_that_another_client_cleans_up_during_reading_back_is_one_line(folder: Path) -> None:
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    for file in (path(folder) / "data").iterdir():
        file.unlink()
    with refused("store", "faces.lance, column 'vector'", "Lance"):
        list(store.staged())


def check_finished(folder: Path, by: Projection = PROJECTION) -> None:
    assert vectors(folder) == pytest.approx(released_vectors(by, raw_vectors(ROWS), "here"), abs=1e-6)
    assert told(folder).keys() == {"vector_idx", "row_idx"}
    assert LanceStore(str(folder), TABLE).inspect().sanitised_with == by.sha256
    assert [file.name for file in [*folder.glob(".*"), *(path(folder) / "_versions").glob("d*")]] == []
    assert holding(folder, raw_vectors(ROWS)[7]) == []


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_the_receipt_says_what_its_index_finds_before_and_after(tmp_path: Path, metric: Any) -> None:
    """One list of 48 is searched; by hand, of the ten nearest of every fourth vector."""
    folder = table_in(tmp_path)
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=48, distance_type=metric))

    def by_hand() -> float:
        found = vectors(folder)
        scores = found @ found.T
        if metric == "cosine":
            lengths = np.linalg.norm(found, axis=1)
            scores = scores / np.outer(lengths, lengths)
        if metric == "l2":
            scores = 2 * scores - np.einsum("ij,ij->i", found, found)
        np.fill_diagonal(scores, -np.inf)
        near, table = np.argsort(-scores, axis=1)[:, :10], lance.dataset(folder / f"{TABLE}.lance")
        shares = []
        for row, vector in list(enumerate(found))[::4]:
            got = table.to_table(columns=["row"], nearest={"column": "vector", "q": vector, "k": 11})
            shares.append(len(set(near[row]) & set(got.column("row").to_pylist())) / 10)
        return float(np.mean(shares))

    before = by_hand()
    receipt = sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    assert before < 0.9
    assert (receipt.recall_before, receipt.recall_after) == pytest.approx((before, by_hand()), abs=0.1)


def test_without_a_vector_index_nothing_is_missed(tmp_path: Path) -> None:
    assert sanitise_store(PROJECTION, LanceStore(str(table_in(tmp_path)), TABLE)).recall_before is None
