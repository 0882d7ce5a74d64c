"""If these fail, a set of vectors is not what was given, or bad rows are in it."""

import hashlib
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Space, make_identities, require_same_space
from unface.errors import UnfaceError


def small(rows: int = 6, seed: int = 0) -> EmbeddingSet:
    rng = np.random.default_rng(seed)
    names = ["zoe", "ann", "bob"] * rows
    return EmbeddingSet.from_arrays(
        rng.standard_normal((rows, 4), dtype=np.float32), names[:rows], labels={"age": np.arange(rows)}
    )


def names_of(embeddings: EmbeddingSet) -> list[str]:
    return [embeddings.names[code] for code in embeddings.identities]


def test_names_are_sorted_and_codes_point_at_them() -> None:
    found = EmbeddingSet.from_arrays(np.eye(3, dtype=np.float32), ["zoe", "ann", "zoe"], ids=["a", "b", "c"])
    assert found.names == ("ann", "zoe")
    assert found.identities.tolist() == [1, 0, 1]
    assert found.identities.dtype == np.int64
    assert found.ids.tolist() == ["a", "b", "c"]


@given(st.permutations(range(6)))
def test_codes_do_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    whole = small()
    shuffled = EmbeddingSet.from_arrays(whole.vectors[order], np.array(names_of(whole))[order])
    assert shuffled.names == whole.names
    assert shuffled.identities.tolist() == whole.identities[order].tolist()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_take_keeps_each_row_with_its_identity_and_drops_unused_names(rows: list[int]) -> None:
    whole = small()
    part = whole.take(np.array(rows, dtype=np.int64))
    assert names_of(part) == [names_of(whole)[row] for row in rows]
    assert set(part.names) == set(names_of(part))
    assert list(part.names) == sorted(part.names)
    assert np.array_equal(part.vectors, whole.vectors[rows])
    assert part.ids.tolist() == [whole.ids[row] for row in rows]
    assert part.labels["age"].tolist() == rows


def test_take_accepts_a_mask() -> None:
    whole = small()
    assert names_of(whole.take(whole.identities == 0)) == ["ann", "ann"]


@given(st.floats(1e-30, 1e30))
def test_unit_rows_have_length_one_and_the_same_direction_at_any_scale(scale: float) -> None:
    vectors = (np.array([[3.0, 4.0], [1.0, 0.0]]) * scale).astype(np.float32)
    unit = EmbeddingSet.from_arrays(vectors, ["a", "b"]).unit()
    assert np.allclose(unit.vectors, [[0.6, 0.8], [1.0, 0.0]], rtol=1e-6, atol=0)
    assert unit.vectors.dtype == np.float32
    assert unit.space.normalised


def test_unit_rows_are_the_float64_ones_rounded_once() -> None:
    vectors = np.random.default_rng(0).standard_normal((200, 64), dtype=np.float32)
    exact = vectors.astype(np.float64)
    exact /= np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    assert np.array_equal(EmbeddingSet.from_arrays(vectors, np.arange(200)).unit().vectors, exact.astype(np.float32))


def test_float32_vectors_are_shared_and_read_only_here_alone() -> None:
    mine = np.eye(2, dtype=np.float32)
    found = EmbeddingSet.from_arrays(mine, ["a", "b"])
    assert np.shares_memory(found.vectors, mine)
    with pytest.raises(ValueError, match="read-only"):
        found.vectors[0, 0] = 5
    mine[0, 0] = 5  # the caller's own array stays writeable
    with pytest.raises(FrozenInstanceError):
        found.names = ()  # type: ignore[misc]


def test_fortran_order_becomes_c_order() -> None:
    vectors = np.asfortranarray(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    found = EmbeddingSet.from_arrays(vectors, ["a", "b"])
    assert found.vectors.flags.c_contiguous
    assert np.array_equal(found.vectors, vectors)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64", ">f4"])
def test_a_changed_number_type_is_told(dtype: str) -> None:
    vectors = np.eye(2).astype(dtype)
    found = EmbeddingSet.from_arrays(vectors, ["a", "b"])
    assert found.vectors.dtype == np.float32
    assert found.notes == (f"vectors converted from {np.dtype(dtype)} to float32",)


def test_float32_is_not_noted_as_changed() -> None:
    assert small().notes == ()


def test_integer_identities_become_text_and_lists_keep_their_types() -> None:
    assert EmbeddingSet.from_arrays(np.eye(2), np.array([7, 3])).names == ("3", "7")
    assert EmbeddingSet.from_arrays(np.eye(3), np.array([7, 3, "7"], dtype=object)).names == ("3", "7")


def test_sha256_is_this_one_for_this_set() -> None:
    """A golden value: a hash that moves makes every stored result unverifiable."""
    found = EmbeddingSet.from_arrays(np.eye(2, dtype=np.float32), ["b", "a"], ids=["x", "y"])
    expected = hashlib.sha256(b"[2, 2]")
    expected.update(bytes.fromhex("0000803f00000000000000000000803f"))
    expected.update(bytes.fromhex("01000000000000000000000000000000"))
    expected.update(b'[["a", "b"], ["x", "y"]]')
    assert found.sha256() == expected.hexdigest()


def changed(what: str) -> EmbeddingSet:
    vectors: NDArray[np.float32] = np.eye(2, dtype=np.float32)
    identities, ids = ["b", "a"], ["x", "y"]
    if what == "vectors":
        vectors[1, 1] = np.nextafter(np.float32(1), np.float32(2))
    elif what == "identities":
        identities = ["a", "b"]
    elif what == "ids":
        ids = ["x", "z"]
    return EmbeddingSet.from_arrays(vectors, identities, ids=ids, source=what)


def test_sha256_moves_with_content_and_not_with_source() -> None:
    hashes = {changed(what).sha256() for what in ("nothing", "vectors", "identities", "ids")}
    assert len(hashes) == 4
    assert changed("nothing").sha256() == changed("only the source").sha256()


@pytest.mark.parametrize(
    "other",
    [Space("b", "00", 4, True), Space("a", "01", 4, True), Space("a", "00", 5, True), Space("a", "00", 4, False)],
)
def test_every_part_of_a_space_counts(other: Space) -> None:
    require_same_space(Space("a", "00", 4, True), Space("a", "00", 4, True))
    with pytest.raises(UnfaceError):
        require_same_space(Space("a", "00", 4, True), other)


def test_repr_says_sizes_and_no_name() -> None:
    assert repr(make_identities(3, 2, 4)) == "EmbeddingSet('synthetic': 6 × 4, 3 identities)"


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
