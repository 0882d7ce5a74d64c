"""If these fail, a share of utility retained carries an interval that does not mean what it says."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.special import ndtri

from unface.metrics import wilson
from unface.utility import Outcome, kept


def outcome(per_query: ArrayLike, groups: Sequence[int] | None = None, measure: str = "knn") -> Outcome:
    values = np.asarray(per_query, np.float64)
    return Outcome(measure, "objects", values, np.arange(len(values)) if groups is None else np.array(groups))


def hits(right: int, of: int) -> Outcome:
    return outcome(np.arange(of) < right)


def test_values_of_independent_queries_have_wilsons_interval() -> None:
    found = kept(hits(80, 100), hits(60, 100))
    for share, right in ((found.raw, 80), (found.erased, 60)):
        expected = wilson(right, 100)
        assert share.value == right / 100
        assert (share.low, share.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_queries_that_come_in_fives_are_worth_a_fifth() -> None:
    """The corrections for 20 groups and for 100 queries leave a little less than 20 trials of the 100."""
    groups = np.repeat(np.arange(20), 5).tolist()
    right = outcome(np.repeat(np.arange(20) < 12, 5), groups)
    found = kept(right, right)
    trials = 20 * (19 / 20) * (100 / 99)
    expected = wilson(0.6 * trials, trials)
    assert (found.raw.low, found.raw.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_the_retained_share_and_its_interval_by_hand() -> None:
    """Ten queries: eight right before, six after, of these five the same: kept 0.75.

    after − 0.75 before is 1/4 five times, 1 once, −3/4 three times, 0 once: squares sum to 5/16 + 1 + 27/16 = 3.
    """
    before = outcome([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    after = outcome([1, 1, 1, 1, 1, 0, 0, 0, 1, 0])
    found = kept(before, after).retained
    half = float(ndtri(0.975)) * math.sqrt(3) / 10 / 0.8
    assert found.value == pytest.approx(0.75)
    assert (found.low, found.high) == pytest.approx((0.75 - half, 0.75 + half))
    wider = kept(before, after, level=0.99)
    assert (wider.retained.level, wider.retained.low < found.low) == (0.99, True)


def test_what_both_spaces_share_cancels() -> None:
    """The same losses on the same queries: unpaired, the interval would be some four times as wide."""
    before = hits(500, 1000)
    paired = kept(before, hits(490, 1000)).retained
    apart = kept(before, outcome(np.arange(1000) >= 510)).retained
    assert paired.value == apart.value
    assert (apart.high - apart.low) > 4 * (paired.high - paired.low)


def test_more_may_be_retained_than_there_was() -> None:
    found = kept(hits(50, 100), hits(75, 100)).retained
    assert found.value == 1.5
    assert found.low > 1


def test_where_no_query_changed_the_next_still_may() -> None:
    """None of 100 changed: at most 3 in 100 would, beside the half that were right."""
    found = kept(hits(50, 100), hits(50, 100)).retained
    room = (1 - 0.05 ** (1 / 100)) / 0.5
    assert found.value == 1
    assert (found.low, found.high) == pytest.approx((1 - room, 1 + room))


def test_where_nothing_is_left_the_upper_end_is_above_zero() -> None:
    found = kept(hits(50, 100), hits(0, 100))
    assert (found.retained.value, found.retained.low) == (0, 0)
    assert found.retained.high == pytest.approx((1 - 0.05 ** (1 / 100)) / 0.5)
    assert found.erased.low == 0 < found.erased.high


def test_shares_that_are_all_the_same_up_to_rounding_do_not_count_as_certain() -> None:
    found = kept(outcome(np.ones(30)), outcome(np.full(30, 0.3)))
    assert found.erased.high - found.erased.low > 0.2
    assert found.retained.high - found.retained.low > 0.1


def test_shares_that_hardly_vary_are_known_better_than_hits_and_misses() -> None:
    shares = outcome(np.tile([0.4, 0.6], 50))
    found = kept(outcome(np.ones(100)), shares)
    assert found.erased.high - found.erased.low < 0.05
    assert kept(outcome(np.ones(100)), hits(50, 100)).erased.high > 0.59


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("left", "level"), [(0.9, 0.95), (0.5, 0.95), (0.8, 0.9)])
def test_intervals_cover_the_truth_as_often_as_they_say(size: int, left: float, level: float) -> None:
    """Redraws of 100 groups; in a group queries are right together. Truth: 0.8 before, 0.8 × left + 0.2 × 0.1 after."""
    rng = np.random.default_rng([size, int(100 * left), int(100 * level)])
    truth, redraws = (0.8 * left + 0.02) / 0.8, 600
    covered = np.zeros(3)
    for _ in range(redraws):
        easy, lucky = rng.random(100) < 0.8, rng.random(100)
        # Within a group three in four queries follow it, the rest go their own way.
        follow = rng.random((100, size)) < 0.75
        right = np.where(follow, easy[:, None], rng.random((100, size)) < 0.8)
        luck = np.where(follow, lucky[:, None], rng.random((100, size)))
        still = np.where(right, luck < left, luck < 0.1)
        groups = np.repeat(np.arange(100), size).tolist()
        found = kept(outcome(right.ravel(), groups), outcome(still.ravel(), groups), level)
        shares = ((found.raw, 0.8), (found.erased, 0.8 * truth), (found.retained, truth))
        covered += [share.low <= true <= share.high for share, true in shares]
    assert covered / redraws == pytest.approx(level, abs=0.04)
