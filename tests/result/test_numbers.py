"""If these fail, an interval has other ends than its formula, or a damaged count is taken for a number."""

import math
from collections.abc import Callable

import pytest

from unface.result.numbers import Estimate, Interval, Kept, Mean, Rate, Share, fewest_trials, wilson_ends, zero_bound


@pytest.mark.parametrize(
    ("rate", "trials", "ends"),
    [
        # z = 2, 12 trials: z²/n = 1/3, so that the centre of 0 is (1/6) / (4/3) = 1/8 and half is as much.
        (0.0, 12, (0.0, 0.25)),
        (1.0, 12, (0.75, 1.0)),
        (1.0 + 1e-15, 12, (0.75, 1.0)),  # rounded beyond all
        # z²/n = 1: centre 1/2, half = 2 · √(1/16 + 1/16) / 2 = √(1/8).
        (0.5, 4, (0.5 - math.sqrt(1 / 8), 0.5 + math.sqrt(1 / 8))),
        # z²/n = 1: centre (1/4 + 1/2) / 2 = 3/8, half = 2 · √(3/64 + 1/16) / 2 = √7 / 8.
        (0.25, 4, ((3 - math.sqrt(7)) / 8, (3 + math.sqrt(7)) / 8)),
    ],
)
def test_wilsons_ends_are_those_worked_by_hand(rate: float, trials: int, ends: tuple[float, float]) -> None:
    assert wilson_ends(rate, trials, 2.0) == pytest.approx(ends, abs=1e-12)


def test_no_success_bounds_a_rate_and_the_fewest_trials_are_the_inverse() -> None:
    assert zero_bound(1) == pytest.approx(0.95)
    assert zero_bound(2, 0.75) == 0.5  # half of a quarter's square root
    assert [fewest_trials(limit, 0.75) for limit in (0.5, 0.4999, 0.75, 0.76)] == [2, 3, 1, 1]
    assert [fewest_trials(limit) for limit in (0.05, 0.01, 0.95, 0.999)] == [59, 299, 1, 1]


@pytest.mark.parametrize("make", [lambda level: Interval(0, 1, level), lambda level: Estimate(0.5, 0, 1, level)])
def test_a_level_without_a_width_is_refused(make: Callable[[float], object]) -> None:
    for level in (0.01, 0.95, 1 - 1e-12):
        make(level)
    for level, shown in ((0.0099, "0.0099"), (1 - 1e-13, "1"), (95, "95")):
        with pytest.raises(ValueError, match="no level") as caught:
            make(level)
        assert str(caught.value) == f"{shown} is no level of an interval, such as 0.95"


def test_a_share_is_its_counts_and_nothing_else() -> None:
    ends = Interval(0.1, 0.4, 0.9)
    assert Share.counted(1, 4, ends, 3, 2.5) == Share(0.25, 0.1, 0.4, 0.9, 1, 4, 3, 2.5)
    assert Share.counted(1, 4, ends, 3).effective_n is None
    assert Rate.counted(3, 4) == Rate(0.75, 3, 4)
    assert (Rate.counted(0, 4).value, Rate.counted(4, 4).value) == (0, 1)
    assert Estimate.within(0.2, ends) == Estimate(0.2, 0.1, 0.4, 0.9)
    Rate(0.25 * (1 + 0.9e-9), 1, 4)
    for value, numerator, denominator, said in (
        (0.0, 0, 0, "0 of 0 is no share"),
        (1.25, 5, 4, "5 of 4 is no share"),
        (-0.25, -1, 4, "-1 of 4 is no share"),
        (1.0, 1234, 1000, "1,234 of 1,000 is no share"),
        (0.3, 1, 4, "0.3 is not 1 of 4"),
        (0.25 * (1 + 1.1e-9), 1, 4, "0.25 is not 1 of 4"),
    ):
        for make in (
            lambda v=value, n=numerator, d=denominator: Rate(v, n, d),
            lambda v=value, n=numerator, d=denominator: Share(v, 0, 1, 0.95, n, d, 3),
        ):
            with pytest.raises(ValueError, match="of") as caught:
                make()
            assert str(caught.value) == said
    with pytest.raises(ValueError, match="0 is no level of an interval"):
        Share(0.25, 0, 1, 0, 1, 4, 3)
    with pytest.raises(ValueError, match="0 is no level of an interval"):
        Mean(0.25, 0, 1, 0, 5, 3)


def test_neighbours_of_the_audited_are_no_usefulness() -> None:
    some = Estimate(0.5, 0.4, 0.6, 0.95)
    assert Kept("knn", "objects", 9, some, some, some).is_usefulness
    assert not Kept("neighbour overlap@10", "faces", 9, some, some, some).is_usefulness
