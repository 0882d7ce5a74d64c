"""If this fails, a score is not the number it is said to be, or depends on the units the vectors came in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.pairs.crowd import KINDS, SPACES, Crowd, crowds, make_crowd
from unface.pairs import PairSpace, cosine_space, l2_space, quadratic_space


def all_pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    i, j = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    return i.ravel(), j.ravel()


@given(crowds(("cosine",)))
def test_cosine_scores_are_cosines(crowd: Crowd) -> None:
    vectors = crowd.vectors.astype(np.float64)
    i, j = all_pairs(len(vectors))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(crowd.space.exact(i, j), (unit[i] * unit[j]).sum(axis=1), atol=3e-7, rtol=0)


@given(crowds(("l2",)))
def test_l2_scores_are_minus_squared_distances(crowd: Crowd) -> None:
    vectors = crowd.vectors.astype(np.float64)
    i, j = all_pairs(len(vectors))
    largest = (vectors**2).sum(axis=1).max()
    np.testing.assert_allclose(
        crowd.space.exact(i, j), -((vectors[i] - vectors[j]) ** 2).sum(axis=1), rtol=1e-7, atol=1e-11 * largest
    )


@pytest.mark.parametrize("score", ["cosine", "l2"])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS))
def test_scores_are_the_same_either_way_round(score: str, seed: int, kind: str) -> None:
    space = make_crowd(seed, kind, 20, score).space
    i, j = all_pairs(len(space))
    np.testing.assert_array_equal(space.exact(i, j), space.exact(j, i))


@given(crowds(), st.data())
def test_a_score_does_not_depend_on_which_others_are_asked_for(crowd: Crowd, data: st.DataObject) -> None:
    space = crowd.space
    i, j = all_pairs(len(space))
    some = np.array(data.draw(st.lists(st.integers(0, len(i) - 1), min_size=1, max_size=20)))
    np.testing.assert_array_equal(space.exact(i, j)[some], space.exact(i[some], j[some]))


@given(crowds(("l2",)), st.integers(-40, 40))
def test_l2_scores_follow_the_scale_of_the_vectors(crowd: Crowd, power: int) -> None:
    scale = np.float32(2.0) ** power
    i, j = all_pairs(len(crowd.vectors))
    plain, scaled = crowd.space, l2_space(crowd.vectors * scale)
    np.testing.assert_array_equal(scaled.exact(i, j), plain.exact(i, j) * scale**2)
    assert scaled.float32_margin() == pytest.approx(plain.float32_margin() * float(scale) ** 2, rel=1e-12)


def test_the_l2_margin_is_small_beside_the_scores_of_long_vectors() -> None:
    vectors = 100 * np.random.default_rng(0).normal(size=(50, 64)).astype(np.float32)
    space = l2_space(vectors)
    i, j = all_pairs(len(vectors))
    assert space.float32_margin() < 1e-3 * np.abs(space.exact(i, j)).max()


@given(crowds(("l2",)))
def test_equal_vectors_are_at_distance_zero_exactly(crowd: Crowd) -> None:
    doubled = l2_space(np.vstack([crowd.vectors, crowd.vectors]))
    i = np.arange(len(crowd.vectors))
    score = doubled.exact(i, i + len(i))
    largest = (crowd.vectors.astype(np.float64) ** 2).sum(axis=1).max()
    assert np.abs(score).max() <= 1e-11 * largest
    np.testing.assert_array_equal(score[score < 0], [])


def test_quadratic_scores_add_an_own_term_for_each_side() -> None:
    left, right = np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 0], [0, 1]], np.float32)
    space = quadratic_space(left, right, np.array([0.25, -8.0]))
    np.testing.assert_array_equal(space.exact(np.array([0, 0]), np.array([0, 1])), [1 + 0.5, 2 - 7.75])


def test_quadratic_scores_without_own_terms_are_products() -> None:
    plain = np.array([[1, 2], [3, 4]], np.float32)
    space = quadratic_space(plain, plain, np.zeros(2))
    np.testing.assert_array_equal(space.exact(np.array([0]), np.array([1])), [11])
    assert space.bound == pytest.approx(3**2 + 4**2 + 2)  # two more columns of ones


@pytest.mark.parametrize("score", ["cosine", "l2"])
def test_no_vectors_make_a_space_without_rows(score: str) -> None:
    assert len(SPACES[score](np.empty((0, 3), np.float32))) == 0


@pytest.mark.parametrize("score", ["cosine", "l2"])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), dimension=st.sampled_from([1, 3, 64, 700]))
def test_no_float32_product_is_further_than_the_margin(score: str, seed: int, kind: str, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(24, dimension)).astype(np.float32)
    if kind == "integers":
        vectors = rng.integers(1, 3, size=vectors.shape).astype(np.float32)
    elif kind == "duplicates":
        vectors[12:] = vectors[:12]
    elif kind == "scales":
        vectors *= (10.0 ** rng.uniform(-6, 6, size=vectors.shape)).astype(np.float32)
    space = SPACES[score](vectors)
    i, j = all_pairs(len(vectors))
    exact = space.exact(i, j).astype(np.float64)
    for screened in (space.left @ space.right.T, one_by_one(space), one_by_one(space, backwards=True)):
        assert np.abs(screened.ravel().astype(np.float64) - exact).max() <= space.float32_margin()


def one_by_one(space: PairSpace, *, backwards: bool = False) -> NDArray[np.float32]:
    """The worst order of summation: each term is added to one float32 total."""
    total = np.zeros((len(space), len(space)), np.float32)
    columns = range(space.left.shape[1])
    for column in reversed(columns) if backwards else columns:
        total += np.outer(space.left[:, column], space.right[:, column])
    return total


def test_the_margin_is_not_so_wide_that_it_would_hide_a_wrong_screen() -> None:
    rng = np.random.default_rng(0)
    space = cosine_space(rng.normal(size=(200, 512)))
    assert space.float32_margin() < 512 * 2.0**-23


def test_the_margin_of_a_case_worked_by_hand() -> None:
    space = PairSpace(np.array([[3, 4, 0, 0]], np.float32), np.array([[0, 0, 6, 8]], np.float32))
    unit = 2.0**-24
    assert space.bound == 50
    assert space.float32_margin() == pytest.approx(50 * (4 * unit / (1 - 4 * unit) + unit), rel=1e-14)


def test_own_terms_are_shared_so_that_the_bound_of_l2_stays_near_its_scores() -> None:
    # 2 · 4 · 4 − 16 − 16 as (8, −4, 0, 4, 4) · (4, 4, 4, −4, 0)
    assert l2_space(np.array([[4.0]])).bound == pytest.approx(np.sqrt(112) * 8)


def test_finer_vectors_are_rounded_to_float32_before_anything_is_made_of_them() -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 6))
    for space in (cosine_space(vectors), l2_space(vectors)):
        assert {str(side.dtype) for side in (space.left, space.right)} == {"float32"}
    i, j = all_pairs(20)
    np.testing.assert_array_equal(l2_space(vectors).exact(i, j), l2_space(vectors.astype(np.float32)).exact(i, j))


def test_products_are_settled_on_a_grid_of_the_bounds_fortieth_bit() -> None:
    space = PairSpace(np.array([[3]], np.float32), np.array([[1]], np.float32))  # bound 3, next power of two 4
    grid = 4 * 2.0**-40
    settled = space.settle(np.array([0.49, -0.49, 0.51, 1.75, 2.0**33]) * grid)
    np.testing.assert_array_equal(settled, np.array([0, 0, 1, 2, 2.0**33]) * grid)
    assert settled.dtype == np.float32


def test_many_exact_scores_keep_their_order_whatever_the_threads() -> None:
    vectors = np.random.default_rng(0).normal(size=(5000, 3))
    space, i = cosine_space(vectors), np.arange(5000)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for threads in (1, 3):
        found = space.exact(i, i[::-1], threads=threads)
        np.testing.assert_allclose(found, (unit * unit[::-1]).sum(axis=1), atol=3e-7, rtol=0)
    none = space.exact(i[:0], i[:0])
    assert (none.shape, str(none.dtype)) == ((0,), "float32")


@given(crowds())
def test_no_score_exceeds_the_bound(crowd: Crowd) -> None:
    space = crowd.space
    assert np.abs(space.exact(*all_pairs(len(space)))).max() <= space.bound * (1 + 1e-6)


@pytest.mark.parametrize("length", [0.0, 2e-17, 5e17])
def test_l2_vectors_that_float32_can_square_are_taken(length: float) -> None:
    space = l2_space(np.array([[length, 0], [0, 0]]))
    assert space.exact(np.array([0]), np.array([1])) == pytest.approx(-(length**2), rel=1e-6)
