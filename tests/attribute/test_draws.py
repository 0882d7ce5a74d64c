"""If this fails, medians, crossings or intervals over identities are not what they are said to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unface.attribute.measures import Draws, _medians, half_crossings, overtaking_points, smallest_levels
from unface.seeds import stream


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=30))
def test_a_weighted_median_is_that_of_the_values_repeated(rows: list[tuple[int, int]]) -> None:
    values, weights = np.array(sorted(rows), dtype=float).T
    if not weights.any():
        return
    expected = np.median(np.repeat(values, weights.astype(int)))
    assert _medians(values, weights[None])[0] == expected


def test_intervals_come_from_identities_and_not_from_pairs() -> None:
    rng = stream(0, "pairs")
    identities = np.repeat(np.arange(40), 25)
    values = rng.standard_normal(40)[identities] + 0.1 * rng.standard_normal(1000)
    draws = Draws.of(identities, seed=0, level=0.95)
    found = draws.mean(values)
    assert found.value == values.mean()
    assert (found.of, found.identities) == (1000, 40)
    standard_error = values.reshape(40, 25).mean(axis=1).std() / np.sqrt(40)
    assert found.high - found.low == pytest.approx(2 * 1.96 * standard_error, rel=0.08)
    middle = draws.median(values)
    assert middle.value == np.median(values)
    assert middle.low < middle.value < middle.high
    assert middle.high - middle.low > 2 * standard_error


def test_identities_that_are_named_otherwise_get_the_same_interval() -> None:
    values = stream(1, "pairs").standard_normal(60)
    codes = np.repeat(np.arange(20), 3)
    assert Draws.of(codes, 0, 0.95).mean(values) == Draws.of(7 * codes + 3, 0, 0.95).mean(values)


def test_a_share_of_none_or_all_is_not_sure() -> None:
    draws = Draws.of(np.repeat(np.arange(30), 4), seed=0, level=0.95)
    none, every = draws.share(np.zeros(120, dtype=bool)), draws.share(np.ones(120, dtype=bool))
    assert (none.numerator, none.denominator, none.identities, none.value) == (0, 120, 30, 0)
    assert none.high == pytest.approx(1 - 0.05 ** (1 / 30))
    assert every.low == pytest.approx(0.05 ** (1 / 30))
    change = draws.change(np.zeros(120, dtype=bool), np.zeros(120, dtype=bool))
    assert (change.value, change.low, change.high) == (0, -none.high, none.high)


def test_a_change_is_paired() -> None:
    identities = np.repeat(np.arange(30), 4)
    before = stream(2, "hits").random(120) < 0.5
    after = before.copy()
    after[::15] = True
    draws = Draws.of(identities, seed=0, level=0.95)
    found = draws.change(before, after)
    assert found.value == pytest.approx(after.mean() - before.mean())
    apart = draws.share(before)
    assert found.high - found.low < (apart.high - apart.low) / 2


@pytest.mark.parametrize(
    ("curve", "sigma"),
    [
        ([0.0, 0.0, 0.25, 0.75, 1.0, 1.0], 3.0),  # halfway between 2 and 4
        ([1.0, 0.75, 0.0, 0.0, 0.0, 0.0], 1 + 1 / 3),
        ([0.0, 0.5, 1.0, 0.0, 1.0, 1.0], 1.0),
        ([0.5, 1.0, 1.0, 1.0, 1.0, 1.0], 0.0),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 8.0),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.49], np.nan),
        ([1.0, 0.9, 0.9, 0.9, 0.9, 0.9], np.nan),
    ],
)
def test_the_crossover_lies_between_levels(curve: list[float], sigma: float) -> None:
    np.testing.assert_allclose(half_crossings(np.array([curve])), [sigma])


@pytest.mark.parametrize(
    ("margin", "level", "point"),
    [
        ([-1, -1, 1, 1, 1], 0.5, 0.375),
        ([-1, 3, 1, 1, 1], 0.25, 0.0625),
        ([1, -1, -1, -1, -1], 0.0, 0.0),  # the smallest B, whatever comes after it
        ([0, 0, 0, 1, 1], 0.75, 0.5),  # a tie is not overtaken
        ([-1, -1, -1, -1, 1], 1.0, 0.875),
        ([-1, -1, -1, -1, -1], 1.0, 1.0),
        ([0, 0, 0, 0, 0], 1.0, 1.0),
    ],
)
def test_b_star_by_hand(margin: list[float], level: float, point: float) -> None:
    margins = np.array([margin], dtype=float)
    assert smallest_levels(margins > 0).tolist() == [level]
    assert overtaking_points(margins).tolist() == [point]
