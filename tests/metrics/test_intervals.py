"""If this fails, an interval is narrower than the identities justify, or does not hold the rate it is about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.metrics import (
    Interval,
    Replicates,
    difference_interval,
    effective_trials,
    paired_interval,
    rate_interval,
    wilson,
    zero_bound,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3
    found = wilson(successes, trials)
    assert (round(found.low, 4), round(found.high, 4), found.level) == (low, high, 0.95)


@given(st.integers(1, 5000), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_holds_the_rate_and_mirrors(trials: int, share: float, level: float) -> None:
    successes = round(share * trials)
    interval, mirror = wilson(successes, trials, level), wilson(trials - successes, trials, level)
    assert 0 <= interval.low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= interval.high <= 1
    assert (interval.low, interval.high) == pytest.approx((1 - mirror.high, 1 - mirror.low), abs=1e-12)


def test_wilson_stays_a_rate_where_rounding_would_carry_it_out() -> None:
    for trials in range(1, 200):  # unbounded, the ends would be 1 + 2e-16 of 16 trials and −3e-17 of 21
        assert 1 - 1e-12 < wilson(trials, trials).high <= 1
        assert 0 <= wilson(0, trials).low < 1e-12


@pytest.mark.parametrize(("identities", "bound"), [(1, 0.95), (2, 1 - 0.05**0.5), (100, 0.02951), (3000, 0.000998)])
def test_the_bound_after_no_accepts(identities: int, bound: float) -> None:
    assert zero_bound(identities) == pytest.approx(bound, rel=1e-3)
    assert (1 - zero_bound(identities)) ** identities == pytest.approx(0.05)


def test_the_bound_after_no_accepts_is_the_rule_of_three() -> None:
    assert zero_bound(1000) * 1000 == pytest.approx(3, rel=3e-3)
    assert zero_bound(1000, level=0.99) * 1000 == pytest.approx(-np.log(0.01), rel=3e-3)


def test_effective_trials_of_independent_trials_are_their_number() -> None:
    replicates = np.random.default_rng(0).binomial(500, 0.2, size=40_000) / 500
    assert effective_trials(0.2, float(replicates.var()), identities=10, pairs=10**6) == pytest.approx(500, rel=0.05)


def test_effective_trials_are_never_more_than_the_pairs() -> None:
    assert effective_trials(0.5, 1e-9, identities=10, pairs=77) == 77


@pytest.mark.parametrize("rate", [0.0, 1e-6, 0.3, 0.5, 1.0])
def test_replicates_that_do_not_spread_are_worth_the_identities(rate: float) -> None:
    assert effective_trials(rate, 0.0, identities=12, pairs=10**6) == 12
    by_rounding = plain(np.full(500, rate)).variance()
    assert effective_trials(rate, by_rounding, identities=12, pairs=10**6) == 12


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_of_none_or_all_is_worth_the_identities_however_the_replicates_spread(rate: float) -> None:
    assert effective_trials(rate, 0.01, identities=12, pairs=10**6) == 12


@given(st.integers(0, 400), st.integers(0, 2**32), st.floats(0.001, 0.4))
def test_the_interval_holds_the_estimate(accepted: int, seed: int, spread: float) -> None:
    replicates = spread_around(accepted / 400, spread, seed)
    interval = rate_interval(accepted, 400, plain(replicates), identities=40)
    assert 0 <= interval.low <= accepted / 400 <= interval.high <= 1
    assert interval.low < interval.high


@given(st.integers(0, 400), st.integers(0, 2**32), st.floats(0.001, 0.4))
def test_accepts_and_rejects_are_treated_alike(accepted: int, seed: int, spread: float) -> None:
    replicates = spread_around(accepted / 400, spread, seed)
    interval = rate_interval(accepted, 400, plain(replicates), identities=40)
    mirror = rate_interval(400 - accepted, 400, plain(1 - replicates), identities=40)
    assert (interval.low, interval.high) == pytest.approx((1 - mirror.high, 1 - mirror.low), abs=1e-9)


@pytest.mark.parametrize("mated", [60, 6_000, 6_000_000])
def test_no_accepts_are_bounded_by_identities_whatever_the_number_of_pairs(mated: int) -> None:
    assert rate_interval(0, mated, plain(np.zeros(2000)), identities=60) == Interval(0.0, zero_bound(60), 0.95)
    everything = rate_interval(mated, mated, plain(np.ones(2000)), identities=60)
    assert everything == Interval(1 - zero_bound(60), 1.0, 0.95)


def test_no_accepts_at_a_noisy_threshold_are_bounded_by_the_replicates() -> None:
    replicates = np.linspace(0, 0.4, 1001)
    assert rate_interval(0, 100, plain(replicates), identities=60).high == pytest.approx(0.39)


def test_replicates_that_all_lost_the_only_accept_are_centred_on_half_of_one() -> None:
    one = rate_interval(1, 100, plain(np.zeros(500)), identities=50)
    honest = wilson(0.25, 50)  # half an accept in 100 pairs, at the identities' number of trials
    assert (one.low, one.high) == pytest.approx((honest.low, honest.high))
    all_but_one = rate_interval(99, 100, plain(np.ones(500)), identities=50)
    assert (all_but_one.low, all_but_one.high) == pytest.approx((1 - honest.high, 1 - honest.low))


@pytest.mark.parametrize("accepted", [0, 30, 100])
def test_a_higher_level_widens_the_interval_and_is_told(accepted: int) -> None:
    replicates = plain(np.full(500, accepted / 100))
    usual, careful = (rate_interval(accepted, 100, replicates, identities=50, level=level) for level in (0.95, 0.99))
    assert (usual.level, careful.level) == (0.95, 0.99)
    by_hand = {0: (0.0, zero_bound(50, 0.99)), 30: ends(wilson(15, 50, 0.99)), 100: (1 - zero_bound(50, 0.99), 1.0)}
    assert ends(careful) == pytest.approx(by_hand[accepted])
    assert careful.high - careful.low > usual.high - usual.low


def test_dependent_pairs_widen_the_interval_beyond_independent_ones() -> None:
    replicates = np.random.default_rng(0).binomial(40, 0.3, size=20_000) / 40  # 4,000 pairs worth 40
    interval, naive = rate_interval(1200, 4000, plain(replicates), identities=40), wilson(1200, 4000)
    honest = wilson(12, 40)
    assert interval.high - interval.low == pytest.approx(honest.high - honest.low, rel=0.03)
    assert interval.high - interval.low > 8 * (naive.high - naive.low)


def test_a_difference_of_the_same_replicates_is_nothing() -> None:
    replicates = plain(np.random.default_rng(0).random(500))
    assert difference_interval(0.0, replicates.less(replicates)) == Interval(0.0, 0.0, 0.95)


def test_a_difference_is_spread_as_its_replicates_are() -> None:
    before = np.random.default_rng(0).random(1000)
    change = np.random.default_rng(1).normal(0.1, 0.02, size=1000)
    interval = difference_interval(0.1, plain(before + change).less(plain(before)))
    assert (interval.low, interval.high) == pytest.approx((0.1 - 1.96 * 0.02, 0.1 + 1.96 * 0.02), rel=0.1)


def test_mirrored_replicates_tell_first_order_from_second() -> None:
    # r = 3 + 2 ε₁ − ε₂ + 0.5 ε₁ε₂ for signs ε: the first order has variance 5, the second 0.25
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    both = np.vstack([signs, -signs])
    replicates = Replicates(3 + both @ [2, -1] + 0.5 * both.prod(axis=1), mirrored=True)
    assert replicates.variance() == pytest.approx(5)
    assert replicates.second_order() == pytest.approx(0.25)
    assert plain(replicates.values).variance() == pytest.approx(5.25)


def test_a_difference_of_mirrored_replicates_is_mirrored() -> None:
    before, after = Replicates(np.array([5.0, 1, 3, 3]), True), Replicates(np.array([2.0, 2, 1, 1]), True)
    change = before.less(after)  # 3, −1 | 2, 2: the mirrors differ by 1 and −3, their means are 2.5 and 0.5
    assert (change.variance(), change.second_order()) == ((0.25 + 2.25) / 2, 1.0)


def test_the_variance_of_an_impostor_count_is_first_order_only() -> None:
    # Σ c w_i w_j over disjoint pairs: each pair is its own noise, which plain replicates count three times
    rng = np.random.default_rng(0)
    half = rng.choice((0.0, 2.0), size=(20_000, 40))
    weights = np.vstack([half, 2 - half])
    counts = (weights[:, ::2] * weights[:, 1::2]).sum(axis=1)
    assert Replicates(counts, mirrored=True).variance() == pytest.approx(2 * 20, rel=0.05)
    assert plain(counts).variance() == pytest.approx(3 * 20, rel=0.05)


def test_a_difference_takes_off_a_third_of_the_second_order_and_never_half_of_the_first() -> None:
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    both = np.vstack([signs, -signs])
    mild = Replicates(both @ [2.0, -1.0] + 0.6 * both.prod(axis=1), mirrored=True)
    assert difference_interval(0.0, mild).high == pytest.approx(1.959964 * np.sqrt(5 - 0.36 / 3))
    wild = Replicates(both @ [2.0, -1.0] + 60 * both.prod(axis=1), mirrored=True)
    assert difference_interval(0.0, wild).high == pytest.approx(1.959964 * np.sqrt(2.5))


def test_a_difference_in_which_nobody_changed_is_bounded_by_the_people() -> None:
    nothing = paired_interval(np.zeros(60), plain(np.zeros(500)), 60)
    assert (nothing.low, nothing.high) == pytest.approx((-zero_bound(60), zero_bound(60)))


def test_a_difference_of_two_rates_is_at_most_one() -> None:
    changes = np.array([-0.5, -0.45])
    wide = Replicates(np.array([0.0, -1.9, -1.9, 0.0]), mirrored=True)
    assert paired_interval(changes, wide, 2).low == -1
    assert paired_interval(-changes, wide, 2).high == 1


@pytest.mark.parametrize("changed", [1, 2, 5])
def test_a_difference_with_few_people_behind_it_reaches_as_far_as_wilsons_interval(changed: int) -> None:
    """A few of 1,000 people lose their only pair: the far end is Wilson's, the near one is not beyond it."""
    changes = np.where(np.arange(1000) < changed, -1e-3, 0.0)
    half = np.random.default_rng(0).choice((0.0, 2.0), size=(1000, 1000))
    replicates = Replicates(np.vstack([half, 2 - half]) @ changes, mirrored=True)
    found, honest = paired_interval(changes, replicates, 1000), wilson(changed, 1000)
    assert found.low == pytest.approx(-honest.high, rel=0.03)
    assert found.high > -honest.low
    mirror = paired_interval(-changes, Replicates(-replicates.values, mirrored=True), 1000)
    assert (mirror.low, mirror.high) == pytest.approx((-found.high, -found.low))


def test_a_difference_with_many_people_behind_it_is_the_normal_one() -> None:
    changes = np.random.default_rng(1).normal(0.1, 0.3, 2000) / 2000
    half = np.random.default_rng(0).choice((0.0, 2.0), size=(500, 2000))
    replicates = Replicates(np.vstack([half, 2 - half]) @ changes, mirrored=True)
    found, normal = paired_interval(changes, replicates, 2000), difference_interval(changes.sum(), replicates)
    assert ends(found) == pytest.approx(ends(normal), rel=0.02)


def ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def plain(values: NDArray[np.float64]) -> Replicates:
    return Replicates(values, mirrored=False)


def spread_around(rate: float, spread: float, seed: int) -> NDArray[np.float64]:
    return np.clip(rate + spread * np.random.default_rng(seed).normal(size=200), 0, 1)
