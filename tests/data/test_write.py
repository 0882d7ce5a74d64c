"""If these fail, what was written is not what was meant, or half of it stands where a whole file was."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.refusals.table import refused
from unface.data import EmbeddingSet, Space, make_identities, read_embeddings, write_embeddings

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.data(), st.integers(2, 6), st.integers(1, 5))
def test_what_is_written_is_read_back(data: st.DataObject, rows: int, dim: int) -> None:
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool)
    vectors = data.draw(npst.arrays(np.float32, (rows, dim), elements=numbers))
    names = data.draw(st.lists(text, min_size=rows, max_size=rows).filter(lambda drawn: len(set(drawn)) > 1))
    ids = data.draw(st.lists(text, min_size=rows, max_size=rows, unique=True))
    space = Space(data.draw(st.none() | text), data.draw(st.none() | text), dim, data.draw(st.booleans()))
    before = EmbeddingSet.from_arrays(vectors, names, ids=ids, space=space)
    with tempfile.TemporaryDirectory() as folder:
        write_embeddings(before, Path(folder) / "a.parquet")
        after = read_embeddings(Path(folder) / "a.parquet")
    assert after.sha256() == before.sha256()
    assert after.vectors.tobytes() == before.vectors.tobytes()
    assert after.names == before.names
    assert after.space == before.space
    assert after.notes == ()


def test_float16_halves_the_vectors_and_rounds_them(tmp_path: Path) -> None:
    before = make_identities(50, 10, 32)
    write_embeddings(before, tmp_path / "a.parquet", dtype="float16")
    stored = pq.read_schema(tmp_path / "a.parquet").field("vector").type
    assert stored == pa.list_(pa.field("item", pa.float16()), 32)
    after = read_embeddings(tmp_path / "a.parquet")
    assert np.array_equal(after.vectors, before.vectors.astype(np.float16).astype(np.float32))
    assert after.notes == ("vectors converted from float16 to float32",)


def test_labels_come_back_with_their_types_and_nulls(tmp_path: Path) -> None:
    labels = {
        "age": np.array([30, None, 31, 32], dtype=object),
        "year": np.array([1, 2, 3, 4], dtype=np.int16),
        "place": np.array(["x", "y", "x", "ü"]),
        "day": np.array(["2024-01-01", "NaT", "2024-01-03", "2024-01-04"], dtype="datetime64[s]"),
        "score": np.array([0.5, np.nan, 1, 2], dtype=np.float32),
    }
    before = EmbeddingSet.from_arrays(np.eye(4, dtype=np.float32), ["a", "b"] * 2, labels=labels)
    write_embeddings(before, tmp_path / "a.parquet")
    after = read_embeddings(tmp_path / "a.parquet")
    assert after.labels["age"].tolist() == [30, None, 31, 32]
    assert after.labels["year"].dtype == np.int16
    assert after.labels["place"].tolist() == ["x", "y", "x", "ü"]
    for name in ("day", "score"):
        assert np.array_equal(after.labels[name], labels[name], equal_nan=True)


def test_several_row_groups_are_one_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.data.parquet._ROW_GROUP_BYTES", 1000)
    before = make_identities(20, 5, 8)
    write_embeddings(before, tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 4
    assert read_embeddings(tmp_path / "a.parquet").sha256() == before.sha256()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_identities(3, 2, 4)
    write_embeddings(before, tmp_path / "a.parquet")

    def full(table: pa.Table, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with refused("output", "a.parquet", "No space left on device"):
        write_embeddings(make_identities(3, 2, 4, seed=1), tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert read_embeddings(tmp_path / "a.parquet").sha256() == before.sha256()


def test_a_write_replaces_what_was_there(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_embeddings(make_identities(3, 2, 4, seed=seed), tmp_path / "a.parquet")
    assert read_embeddings(tmp_path / "a.parquet").sha256() == make_identities(3, 2, 4, seed=1).sha256()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
