"""If these fail, the same table means different things depending on which library made it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from unface.data import EmbeddingSet, read_embeddings, read_images
from unface.data.embeddings import Columns
from unface.release.faces import parquet_faces

VECTORS = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
NAMES = ["zoe", "ann", "zoe", "ann"]


def table(vector: pa.Array | None = None, identity: pa.Array | None = None, **more: pa.Array) -> pa.Table:
    vector = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 3) if vector is None else vector
    return pa.table({"identity": NAMES if identity is None else identity, "vector": vector, **more})


def same(found: EmbeddingSet) -> bool:
    names = [found.names[code] for code in found.identities]
    return (
        bool(np.array_equal(found.vectors, VECTORS)) and names == NAMES and found.ids.tolist() == ["0", "1", "2", "3"]
    )


@pytest.mark.parametrize("number", [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint64()])
@pytest.mark.parametrize("form", ["fixed", "list", "large"])
def test_every_list_of_numbers_is_read(number: pa.DataType, form: str) -> None:
    kind = {"fixed": pa.list_(number, 3), "list": pa.list_(number), "large": pa.large_list(number)}[form]
    flat = VECTORS.astype(number.to_pandas_dtype())
    found = read_embeddings(table(pa.array(list(flat), type=kind)))
    assert same(found)
    expected = () if number == pa.float32() else (f"vectors converted from {flat.dtype} to float32",)
    assert found.notes == expected


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_every_kind_of_text_is_an_identity(kind: pa.DataType) -> None:
    assert same(read_embeddings(table(identity=pa.array(NAMES, type=kind))))


def test_integers_are_identities_and_ids() -> None:
    found = read_embeddings(table(identity=pa.array([7, 3, 7, 3]), id=pa.array([10, 11, 12, 13])))
    assert found.names == ("3", "7")
    assert found.ids.tolist() == ["10", "11", "12", "13"]


def test_pandas_and_polars_are_read_like_arrow() -> None:
    frame = pd.DataFrame({"identity": NAMES, "vector": list(VECTORS)})
    assert same(read_embeddings(frame))
    assert same(read_embeddings(frame.assign(identity=frame["identity"].astype("category"))))
    assert same(read_embeddings(pl.DataFrame({"identity": NAMES, "vector": VECTORS})))
    identity = pl.Series(NAMES, dtype=pl.Categorical)
    assert same(read_embeddings(pl.DataFrame({"identity": identity, "vector": VECTORS.tolist()})))


def test_a_filtered_pandas_frame_keeps_its_rows_and_hides_its_index() -> None:
    frame = pd.DataFrame({"identity": [*NAMES, "eve"], "vector": [*VECTORS, VECTORS[0]]})
    found = read_embeddings(frame[frame["identity"] != "eve"])
    assert same(found)
    assert not found.labels
    assert found.notes == ()


def test_reading_imports_neither_pandas_nor_polars() -> None:
    code = "import sys, unface.data; print(sorted({'pandas', 'polars'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_one_piece_of_float32_is_not_copied() -> None:
    flat = pa.array(VECTORS.reshape(-1))
    found = read_embeddings(table(pa.FixedSizeListArray.from_arrays(flat, 3)))
    assert np.shares_memory(found.vectors, flat.to_numpy())


def test_sliced_and_chunked_tables_give_their_own_rows() -> None:
    """Arrow slices keep the whole memory beneath; reading from its start would give other people's vectors."""
    doubled = pa.concat_tables([table(), table()])
    found = read_embeddings(doubled.slice(1, 6))
    assert np.array_equal(found.vectors, np.vstack([VECTORS, VECTORS])[1:7])
    lists = doubled.set_column(1, "vector", doubled["vector"].cast(pa.list_(pa.float32())))
    assert np.array_equal(read_embeddings(lists.slice(1, 6)).vectors, found.vectors)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 2), pa.list_(pa.int16())])
def test_nulls_name_their_row_or_are_dropped(kind: pa.DataType) -> None:
    vector = pa.chunked_array([pa.array([[1, 2], None], type=kind), pa.array([[3, 4], [5, None], [6, 7]], type=kind)])
    source = pa.table({"identity": list("abcab"), "id": list("vwxyz"), "vector": vector})
    for given, named in ((source, "row 1 (id 'w')"), (source.slice(2), "row 1 (id 'y')")):
        with refused("vectors", "table", named, "null"):
            read_embeddings(given)
    found = read_embeddings(source, bad_rows="drop")
    assert found.vectors.tolist() == [[1, 2], [3, 4], [6, 7]]
    assert found.ids.tolist() == ["v", "x", "z"]
    assert "skipped 2 of 5 rows: 2 with null in 'vector'" in found.notes


def test_columns_go_by_the_names_given() -> None:
    source = table().rename_columns(["who", "face"])
    assert same(read_embeddings(source, vector="face", identity="who"))


def test_other_columns_pass_through_with_their_types() -> None:
    more = {
        "age": pa.array([1, None, 3, 4]),
        "year": pa.array([1, 2, 3, 4], type=pa.int16()),
        "place": pa.array(["x", None, "y", "x"]).dictionary_encode(),
        "box": pa.array([[1, 2]] * 4),
    }
    found = read_embeddings(table(**more))
    assert found.labels["age"].tolist() == [1, None, 3, 4]
    assert found.labels["year"].dtype == np.int16
    assert found.labels["place"].tolist() == ["x", None, "y", "x"]
    assert found.notes == ("column 'box' left out: list<item: int64> is not a label",)


def test_arrays_and_sets_are_sources_too() -> None:
    found = read_embeddings((VECTORS, NAMES))
    assert same(found)
    assert read_embeddings(found) is found


def test_tensors_of_one_dimension_are_vectors(tmp_path: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(VECTORS)
    assert same(read_embeddings(table(tensors)))
    pq.write_table(table(tensors, around=tensors), tmp_path / "a.parquet")
    found = read_embeddings(tmp_path / "a.parquet", context="around")
    assert same(found)
    assert np.array_equal(found.labels["around"], VECTORS)
    halves = pa.chunked_array([tensors[:1], tensors[1:]])
    assert same(read_embeddings(table(halves)))


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_are_read_however_parquet_stores_them(tmp_path: Path, encoding: str) -> None:
    """DuckDB, Spark and Rust's writers store texts as differences; pyarrow reads those, but not as a dictionary."""
    group = pa.array(["a", None, "b", "b"])
    made, path = table(id=pa.array(["w", "x", "y", "z"]), group=group), tmp_path / "set.parquet"
    texts = dict.fromkeys(("identity", "id", "group"), encoding)
    pq.write_table(made, path, use_dictionary=False, column_encoding=texts, row_group_size=2)
    found = read_embeddings(path)
    assert [found.names[code] for code in found.identities] == NAMES
    assert found.ids.tolist() == ["w", "x", "y", "z"]
    assert found.labels["group"].tolist() == ["a", None, "b", "b"]
    streamed = parquet_faces(path, Columns(vector="vector", identity="identity", id="id"))
    assert [streamed.names[code] for code in streamed.people] == NAMES
    pictures = pa.table({"image": [b"1", b"2", b"3", b"4"], "identity": NAMES, "id": ["w", "x", "y", "z"]})
    del texts["group"]
    pq.write_table(pictures, path, use_dictionary=False, column_encoding=texts)
    assert [(ref.id, ref.identity, ref.read()) for ref in read_images(path)][1] == ("x", "ann", b"2")
