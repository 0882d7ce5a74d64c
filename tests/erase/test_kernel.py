"""If these fail, vectors are erased that were scaled otherwise than the audited ones, or blocks show in the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.scale.stored import DIM, PEOPLE, oblique, projection
from unface.data import Space, make_identities
from unface.erase import LEACE, Projection, fit_projection


def first_removed(*, normalised: bool, normalise: bool) -> Projection:
    """Of three dimensions the first."""
    space = Space(None, None, 3, normalised=normalised)
    return Projection("isp", np.eye(3)[:, :1].copy(), np.ones(1), space, normalise=normalise)


@pytest.mark.parametrize(
    ("normalised", "normalise", "expected"),
    [
        (False, False, [0, 4, 0]),
        (True, False, [0, 0.8, 0]),
        (False, True, [0, 1, 0]),
        (True, True, [0, 1, 0]),
    ],
)
def test_vectors_are_scaled_before_as_the_projection_was_fitted_and_after_if_it_says_so(
    normalised: bool, normalise: bool, expected: list[float]
) -> None:
    by = first_removed(normalised=normalised, normalise=normalise)
    assert by.kernel.rows(np.array([[3, 4, 0]])).vectors == pytest.approx(np.array([expected]))
    assert by.apply(np.array([3, 4, 0])) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("length", [1e-3, 1, 1e3])
@pytest.mark.parametrize("normalised", [True, False])
def test_of_what_a_millionth_is_left_of_nothing_is_left_whatever_its_length(length: float, normalised: bool) -> None:
    by = first_removed(normalised=normalised, normalise=True)
    done = by.kernel.rows(length * np.array([[1, 5e-7, 0], [1, 2e-6, 0], [1, 0, 0]]))
    assert done.degenerate == 2
    assert done.vectors == pytest.approx(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threads", [1, 2, None])
def test_blocks_change_no_number_and_no_row(threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = PEOPLE.vectors.astype(np.float64)
    vectors[[3, 100]] = 0
    whole = projection().kernel.rows(vectors)
    monkeypatch.setattr("unface.erase.kernel._BLOCK_BYTES", 7 * 8 * DIM)
    blocks = projection().kernel.rows(vectors, threads)
    assert np.array_equal(blocks.vectors, whole.vectors)
    assert blocks.vectors.dtype == np.float32
    assert blocks.degenerate == whole.degenerate == 2
    assert len(blocks.bad) == 0
    vectors[[0, 13, 14, 119], 5] = [np.nan, np.inf, -np.inf, 1e39]
    assert projection().kernel.rows(vectors, threads).bad.tolist() == [0, 13, 14, 119]


def test_rows_may_be_larger_than_a_block_or_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.erase.kernel._BLOCK_BYTES", 1)
    assert np.array_equal(projection().kernel.rows(PEOPLE.vectors).vectors, projection().apply(PEOPLE.unit().vectors))
    assert projection().kernel.rows(PEOPLE.vectors[:0]).vectors.shape == (0, DIM)


@pytest.mark.parametrize("normalised", [True, False])
def test_a_zero_vector_stays_zero_whatever_the_mean(normalised: bool) -> None:
    given = oblique()
    assert given.mean is not None
    by = replace(given, space=replace(given.space, normalised=normalised))
    assert not by.apply(np.zeros(DIM)).any()
    assert not by.apply(np.zeros((2, DIM))).any()
    assert by.count_degenerate(np.zeros(DIM)) == 1
    assert by.count_degenerate(np.stack([np.zeros(DIM), PEOPLE.vectors[0]])) == 1


@pytest.mark.parametrize("dim", [2, 3, 16, 128])
def test_a_vector_and_its_unit_form_are_released_as_the_same_bits(dim: int) -> None:
    """An audit scales vectors and then erases them; scaling twice must not change a bit of what it measures."""
    people = make_identities(300, 5, dim, seed=4)
    unit = people.unit()
    by = fit_projection(LEACE(dim // 2), unit)
    audited = replace(by, space=replace(by.space, normalised=False)).apply(unit.vectors)
    assert np.array_equal(by.apply(unit.vectors), audited)
    assert np.array_equal(by.apply(people.vectors), audited)
    assert np.array_equal([by.apply(row) for row in unit.vectors[:99]], [by.apply(row) for row in people.vectors[:99]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("many", [True, False])
def test_a_map_that_overflows_is_refused_and_not_released(many: bool) -> None:
    readers = np.array([[1.0], [1e180]])
    by = Projection(
        "made", np.eye(2)[:, :1].copy(), np.ones(1), Space(None, None, 2, normalised=False), readers=readers
    )
    given = np.array([[1.0, 1.0]]) if many else np.ones(2)
    with refused("projection", "apply", "vector 0"):
        by.apply(given)
