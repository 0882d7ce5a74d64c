"""If these fail, a bad row is measured as if it were a face, or its owner is not told which row it is."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from unface.data import EmbeddingSet, Space
from unface.errors import UnfaceError

GOOD = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["ann", "bob", "ann", "bob"]
IDS = ["a1", "b1", "a2", "b2"]


def refusal(
    vectors: ArrayLike = GOOD, identities: ArrayLike = NAMES, ids: ArrayLike | None = IDS, **more: object
) -> str:
    with pytest.raises(UnfaceError) as caught:
        EmbeddingSet.from_arrays(vectors, identities, ids=ids, source="faces.parquet", **more)  # type: ignore[arg-type]
    return str(caught.value)


def with_row(value: float, row: int = 2, dtype: str = "float32") -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    vectors = GOOD.astype(dtype)
    vectors[row, 1] = value
    if value == 0:
        vectors[row] = 0
    return vectors


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (np.nan, "float32", "NaN in 'vector'"),
        (np.inf, "float32", "Inf in 'vector'"),
        (-np.inf, "float16", "Inf in 'vector'"),
        (1e300, "float64", "Inf in 'vector'"),
        (0, "float32", "only zeros in 'vector'"),
        (0, "int16", "only zeros in 'vector'"),
    ],
)
def test_a_bad_vector_is_named_by_row_and_id(value: float, dtype: str, words: str) -> None:
    expected = f"faces.parquet: row 2 (id 'a2') has {words}; drop it or pass --bad-rows drop"
    assert refusal(with_row(value, dtype=dtype)) == expected


def test_numbers_that_vanish_in_float32_are_a_row_of_zeros() -> None:
    vectors = GOOD.astype(np.float64)
    vectors[1] = 1e-300
    expected = "faces.parquet: row 1 (id 'b1') has only zeros in 'vector'; drop it or pass --bad-rows drop"
    assert refusal(vectors) == expected


@pytest.mark.parametrize("missing", [None, "", float("nan")])
def test_a_missing_identity_is_named_by_row_and_id(missing: object) -> None:
    names = ["ann", "bob", "ann", missing]
    expected = "faces.parquet: row 3 (id 'b2') has no identity in 'identity'; drop it or pass --bad-rows drop"
    assert refusal(identities=names) == expected  # type: ignore[arg-type]


def test_a_missing_id_is_named_by_row() -> None:
    expected = "faces.parquet: row 1 has no id in 'id'; drop it or pass --bad-rows drop"
    assert refusal(ids=["a1", None, "a2", "b2"]) == expected  # type: ignore[arg-type]


def test_the_first_bad_row_is_the_one_named() -> None:
    vectors = with_row(np.nan, row=3)
    vectors[1] = 0
    assert refusal(vectors).startswith("faces.parquet: row 1 (id 'b1') has only zeros")


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


def test_nothing_left_is_an_error() -> None:
    expected = "faces.parquet: no usable rows; skipped 4 of 4 rows: 4 with NaN in 'vector'"
    assert refusal(np.full((4, 2), np.nan, dtype=np.float32), bad_rows="drop") == expected


def test_one_identity_is_not_enough() -> None:
    expected = "faces.parquet: every row has identity 'ann' in 'identity'; at least two identities are needed"
    assert refusal(identities=["ann"] * 4) == expected
    assert refusal(with_row(0, row=1), ["ann", "bob", "ann", "ann"], bad_rows="drop") == expected


def test_a_repeated_id_is_named() -> None:
    expected = "faces.parquet: id 'a1' occurs more than once in 'id'; make ids unique"
    assert refusal(ids=["a1", "b1", "a1", "b2"]) == expected


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (np.empty((0, 2)), "faces.parquet: no rows; at least two identities are needed"),
        (np.empty((4, 0)), "faces.parquet: 'vector' has no dimensions; expected at least one number in each row"),
        (np.ones(4), "faces.parquet: 'vector' has shape (4,); expected (rows, dimensions)"),
        (np.float32(1), "faces.parquet: 'vector' has shape (); expected (rows, dimensions)"),
        (GOOD > 2, "faces.parquet: 'vector' holds bool; expected real numbers"),
        (GOOD * 1j, "faces.parquet: 'vector' holds complex64; expected real numbers"),
        (GOOD.astype("U3"), "faces.parquet: 'vector' holds <U3; expected real numbers"),
        (GOOD.astype(object), "faces.parquet: 'vector' holds object; expected real numbers"),
        ([[1.0, 2.0], [3.0]], "faces.parquet: 'vector' is not one array; are its rows of one length?"),
        (GOOD[:3], "faces.parquet: 'identity' has 4 rows, 'vector' has 3; give one for each vector"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(vectors: ArrayLike, sentence: str) -> None:
    assert refusal(vectors) == sentence


@pytest.mark.parametrize(
    ("identities", "sentence"),
    [
        (np.array([0.5, 1, 2, 3]), "faces.parquet: 'identity' holds float64; expected text or integers"),
        (np.array([True, False] * 2), "faces.parquet: 'identity' holds bool; expected text or integers"),
        (["a", 1.5, "b", "c"], "faces.parquet: 'identity' holds a value of type float; expected text or integers"),
        ([["a"], ["b"], ["c"], ["d"]], "faces.parquet: 'identity' has shape (4, 1); expected one value for each row"),
        (
            ["a", "\ud800", "b", "c"],
            "faces.parquet: 'identity' holds text that is not valid Unicode; save it again as UTF-8",
        ),
    ],
)
def test_what_is_no_identity_is_refused(identities: ArrayLike, sentence: str) -> None:
    assert refusal(identities=identities) == sentence


def test_ids_and_labels_must_have_the_same_length() -> None:
    advice = "give one for each vector"
    assert refusal(ids=["a"]) == f"faces.parquet: 'id' has 1 rows, 'vector' has 4; {advice}"
    assert refusal(labels={"age": [1, 2]}) == f"faces.parquet: 'age' has 2 rows, 'vector' has 4; {advice}"


def test_a_space_of_another_dimension_is_refused() -> None:
    assert refusal(space=Space("arcface", None, 512, True)) == "faces.parquet: the space has 512 dimensions, 'vector' 2"


def test_names_that_would_break_a_line_do_not() -> None:
    sentence = refusal(with_row(np.nan), ids=["a", "b", "c\nd", "e"])
    assert sentence == "faces.parquet: row 2 (id 'c\\nd') has NaN in 'vector'; drop it or pass --bad-rows drop"
