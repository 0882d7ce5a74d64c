"""If these fail, a LanceDB table loses an index or a row on its way, or keeps raw vectors where somebody finds them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.stores.cases_lance import TABLE, table_of
from tests.stores.contract import DIM, raw_vectors
from tests.stores.lance_table import (
    MARK,
    PROJECTION,
    ROWS,
    erase,
    holding,
    lance,
    lancedb,
    opened,
    path,
    rows,
    table_in,
    told,
    vectors,
)
from unface import UnfaceError
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.lance import LanceStore


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
    with pytest.raises(UnfaceError, match="tag 'golden' would keep raw vectors; delete them and purge again"):
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
    with pytest.raises(UnfaceError, match=r"1 rows have no vector; fill or delete them"):
        LanceStore(str(folder), TABLE).inspect()
    with pytest.raises(UnfaceError, match=r"1 rows have no vector \(first id 'empty'\)"):
        LanceStore(str(folder), TABLE, id_column="id").inspect()


def test_nan_is_refused_and_nothing_changes(folder: Path) -> None:
    lance.write_dataset(table_of(np.full((1, DIM), np.nan, np.float32), ["bad"]), path(folder), mode="append")
    before = lance.dataset(path(folder)).version
    with pytest.raises(UnfaceError, match="has NaN or Inf"):
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert lance.dataset(path(folder)).version == before


def test_what_cannot_be_sanitised_is_refused_in_a_sentence(folder: Path) -> None:
    lance.write_dataset(pa.table({"vector": [[1.0, 2.0], [3.0]]}), folder / "ragged.lance")
    lance.dataset(path(folder)).shallow_clone(str(folder / "clone.lance"), 1)
    for store, sentence in (
        (LanceStore(str(folder), TABLE, "embedding"), "no column 'embedding'; there is 'id', 'vector', 'row'"),
        (LanceStore(str(folder), TABLE, id_column="key"), "no column 'key'; there is"),
        (LanceStore(str(folder), "other"), "there is no folder 'other.lance' in the database's"),
        (LanceStore(str(folder), "ragged"), "expected a fixed_size_list of float16, float32 or float64"),
        (LanceStore(str(folder), "clone"), "a shallow clone, whose vectors lie in another table"),
        (LanceStore(str(folder), TABLE, "row"), "int64; expected a fixed_size_list"),
    ):
        with pytest.raises(UnfaceError, match=sentence):
            store.inspect()
    with pytest.raises(UnfaceError, match="only tables in a folder on this machine"):
        LanceStore("s3://bucket/db", TABLE)
    with pytest.raises(UnfaceError, match="nothing is staged"):
        LanceStore(str(folder), TABLE).swap(MARK)
    with pytest.raises(UnfaceError, match="not sanitised yet; there is nothing to purge"):
        LanceStore(str(folder), TABLE).purge()
