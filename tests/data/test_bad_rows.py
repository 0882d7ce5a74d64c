"""If these fail, a bad row is measured as if it were a face, or its owner is not told which row it is."""

import numpy as np

from unface.data import EmbeddingSet

GOOD = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["ann", "bob", "ann", "bob"]


def with_row(value: float, row: int = 2, dtype: str = "float32") -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    vectors = GOOD.astype(dtype)
    vectors[row, 1] = value
    if value == 0:
        vectors[row] = 0
    return vectors


def test_bad_rows_are_dropped_and_counted_when_asked() -> None:
    vectors = np.vstack([GOOD, GOOD + 10])
    vectors[0, 0], vectors[3, 1], vectors[4], vectors[5, 0] = np.nan, np.inf, 0, np.nan
    names = ["ann", "bob"] * 3 + ["", "bob"]
    labels = {"age": np.arange(8)}
    found = EmbeddingSet.from_arrays(vectors, names, labels=labels, bad_rows="drop", source="x")
    assert found.ids.tolist() == ["1", "2", "7"]
    assert found.labels["age"].tolist() == [1, 2, 7]
    assert np.array_equal(found.vectors, vectors[[1, 2, 7]])
    assert found.notes == (
        "skipped 5 of 8 rows: 2 with NaN in 'vector', 1 with Inf in 'vector', 1 with only zeros in 'vector',"
        " 1 with no identity in 'identity'",
    )


def test_a_row_with_two_faults_is_counted_once() -> None:
    vectors = GOOD.copy()
    vectors[0] = [np.nan, np.inf]
    found = EmbeddingSet.from_arrays(vectors, ["", "bob", "ann", "bob"], bad_rows="drop")
    assert found.notes == ("skipped 1 of 4 rows: 1 with NaN in 'vector'",)


def test_names_are_dropped_with_their_last_row() -> None:
    found = EmbeddingSet.from_arrays(with_row(np.nan), ["ann", "bob", "zoe", "bob"], bad_rows="drop")
    assert found.names == ("ann", "bob")
