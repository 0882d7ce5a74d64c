"""If this fails, a threshold accepts more impostors than its false-accept rate allows, or rejects more than it must."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unface.metrics import (
    Resolution,
    TarAtFar,
    allowed_accepts,
    identities_needed,
    just_above,
    resolution,
    tar_at_far,
    threshold_allowing,
)

GRID = st.lists(st.integers(-3, 3), min_size=1, max_size=40)
RATES = st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.9, 1.0])


@pytest.mark.parametrize(
    ("far", "impostors", "allowed"),
    [
        (1e-4, 10_000, 1),
        (1e-4, 9_999, 0),
        (1e-4, 30_000, 3),
        (0.07, 100, 7),  # 0.07 × 100 is 7.000000000000001 in floats
        (0.29, 100, 29),  # and 0.29 × 100 is 28.999999999999996
        (0.57, 100, 57),
        (1e-6, 10**13, 10**7),
        (0.3, 10, 3),
        (0.0, 10**9, 0),
        (1.0, 7, 7),
        (1, 7, 7),
    ],
)
def test_allowed_accepts_read_the_rate_as_it_was_written(far: float, impostors: int, allowed: int) -> None:
    assert allowed_accepts(far, impostors) == allowed


def test_ties_at_the_refused_score_are_all_rejected() -> None:
    # Ten impostors, two allowed: the third highest is 5 and so is the second, so accepting 5 would accept four.
    found = tar_at_far(mated=[9, 6, 5, 5, 1], impostor=[8, 5, 5, 5, 4, 3, 2, 2, 1, 0], far=0.2)
    assert found == TarAtFar(0.2, np.nextafter(5.0, 6.0), accepted=2, mated=5, false_accepts=1, impostors=10)
    assert (found.value, found.achieved_far) == (0.4, 0.1)


def test_without_ties_every_allowed_accept_is_used() -> None:
    found = tar_at_far(mated=[9, 6.5, 6, 5], impostor=[8, 7, 6, 5, 4, 3, 2, 1, 0.5, 0], far=0.2)
    assert (found.accepted, found.false_accepts, found.threshold) == (2, 2, np.nextafter(6.0, 7.0))


def test_ties_that_fit_into_what_is_allowed_are_all_accepted() -> None:
    found = tar_at_far(mated=[5, 4, 3], impostor=[5, 5, 5, 4, 1, 1, 1, 1, 1, 1], far=0.3)
    assert (found.accepted, found.false_accepts, found.threshold) == (1, 3, np.nextafter(4.0, 5.0))


def test_no_allowed_accept_puts_the_threshold_just_above_the_highest_impostor() -> None:
    found = tar_at_far(mated=[0.9, 0.8, 0.7], impostor=[0.8, 0.1, 0.2], far=0.3)
    assert (found.accepted, found.false_accepts) == (1, 0)
    assert found.threshold == np.nextafter(0.8, 1)
    assert tar_at_far([0.9, 0.8, 0.7], [0.8, 0.1, 0.2], 0.0).threshold == found.threshold


def test_a_rate_of_one_accepts_everything() -> None:
    found = tar_at_far([-5.0], [3.0, 3.0], 1.0)
    assert (found.threshold, found.value, found.achieved_far) == (-math.inf, 1.0, 1.0)


def test_all_impostors_equal_are_all_rejected_below_a_rate_of_one() -> None:
    found = tar_at_far([2, 2, 3], [2] * 100, 0.99)
    assert (found.accepted, found.false_accepts) == (1, 0)


@given(GRID, GRID, RATES)
def test_the_threshold_is_the_smallest_that_allows_no_more(mated: list[int], impostor: list[int], far: float) -> None:
    found = tar_at_far(mated, impostor, far)
    allowed = math.floor(Fraction(str(far)) * len(impostor))
    assert found.false_accepts == sum(score >= found.threshold for score in impostor) <= allowed
    assert found.accepted == sum(score >= found.threshold for score in mated)
    if found.threshold > -math.inf:
        one_lower = np.nextafter(found.threshold, -math.inf)
        assert sum(score >= one_lower for score in impostor) > allowed


@given(GRID, GRID, RATES, RATES)
def test_a_higher_rate_never_accepts_less(mated: list[int], impostor: list[int], one: float, other: float) -> None:
    low, high = (tar_at_far(mated, impostor, far) for far in sorted([one, other]))
    assert low.threshold >= high.threshold
    assert low.accepted <= high.accepted


@pytest.mark.parametrize("mated", [np.float32, np.float64])
@pytest.mark.parametrize("impostor", [np.float32, np.float64])
def test_a_tie_is_a_tie_in_any_mixture_of_precisions(mated: type, impostor: type) -> None:
    tie = tar_at_far(np.array([0.5], mated), np.array([0.5], impostor), 0.0)
    assert tie.accepted == 0
    higher = tar_at_far(np.array([0.5 + 2.0**-23], mated), np.array([0.5], impostor), 0.0)
    assert higher.accepted == 1


def test_a_mated_score_finer_than_the_impostors_precision_is_still_higher() -> None:
    assert tar_at_far(np.array([0.5 + 2.0**-40]), np.array([0.5], np.float32), 0.0).accepted == 1


def test_an_impostor_finer_than_the_mated_scores_precision_is_still_lower() -> None:
    assert tar_at_far(np.array([0.5], np.float32), np.array([0.5 - 2.0**-40]), 0.0).accepted == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_step_above_the_refused_score_is_the_threshold_and_accepts(dtype: type) -> None:
    refused = dtype(0.3)
    step = np.nextafter(refused, dtype(1))
    found = tar_at_far(np.array([step, refused]), np.array([step, refused, 0, 0], dtype), 0.25)
    assert (found.threshold, found.accepted, found.false_accepts) == (float(step), 1, 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_smallest_rejecting_threshold_is_one_step_in_the_scores_own_precision(dtype: type) -> None:
    score = np.array([0.3], dtype)[0]
    assert dtype(just_above(score)) == np.nextafter(score, dtype(1))


def test_threshold_allowing_counts_from_the_top() -> None:
    scores = np.array([3.0, 1.0, 2.0])
    assert [threshold_allowing(scores, allowed) for allowed in range(4)] == [
        np.nextafter(3.0, 4),
        np.nextafter(2.0, 4),
        np.nextafter(1.0, 4),
        -math.inf,
    ]


@pytest.mark.parametrize(
    ("far", "impostors", "verdict"),
    [
        (1e-4, 300_000, Resolution.RESOLVED),
        (1e-4, 299_999, Resolution.COARSE),
        (1e-4, 30_000, Resolution.COARSE),
        (1e-4, 29_999, Resolution.REFUSED),
        (1e-6, 30_000_000, Resolution.RESOLVED),
        (1e-6, 3_000_000, Resolution.COARSE),
        (0.3, 100, Resolution.RESOLVED),
        (0.03, 100, Resolution.COARSE),
        (0.1, 30, Resolution.COARSE),  # 0.1 × 30 is 3.0000000000000004 in floats, 0.3 × 10 is 3 exactly
        (0.3, 10, Resolution.COARSE),
        (1e-4, 0, Resolution.REFUSED),
    ],
)
def test_three_and_thirty_expected_accepts_are_the_borders(far: float, impostors: int, verdict: Resolution) -> None:
    assert resolution(far, impostors) is verdict


@given(st.integers(1, 9), st.integers(1, 6), st.sampled_from([3, 30]))
def test_borders_hold_for_every_decimal_rate(digit: int, power: int, accepts: int) -> None:
    far = float(f"{digit}e-{power}")
    impostors = -(-accepts * 10**power // digit)  # the smallest whole number with far × impostors ≥ accepts
    reached = {3: Resolution.COARSE, 30: Resolution.RESOLVED}[accepts]
    assert resolution(far, impostors) is reached
    assert resolution(far, impostors - 1) is not reached


@pytest.mark.parametrize(
    ("far", "images", "needed"),
    [
        (1e-2, 1, 25),  # 25 · 24 / 2 = 300 pairs
        (1e-4, 4, 62),  # 62 · 61 / 2 · 16 = 30,256 pairs; 61 identities give 29,280
        (1e-4, 1, 246),  # 246 · 245 / 2 = 30,135 pairs; 245 give 29,890
    ],
)
def test_identities_needed_worked_by_hand(far: float, images: int, needed: int) -> None:
    assert identities_needed(far, images**2) == needed


@given(st.floats(1e-8, 0.5), st.integers(1, 20), st.sampled_from([3, 30]))
def test_one_identity_fewer_is_not_enough(far: float, images: int, accepts: int) -> None:
    needed = identities_needed(far, images**2, accepts)
    reached = {3: (Resolution.COARSE, Resolution.RESOLVED), 30: (Resolution.RESOLVED,)}[accepts]
    assert resolution(far, pairs(needed, images)) in reached
    assert resolution(far, pairs(needed - 1, images)) not in reached


@given(st.integers(4, 3000), st.integers(1, 20), st.sampled_from([3, 30]))
def test_identities_that_are_just_enough_are_not_rounded_up(identities: int, images: int, accepts: int) -> None:
    assert identities_needed(accepts / pairs(identities, images), images**2, accepts) == identities


def pairs(identities: int, images: int) -> int:
    return identities * (identities - 1) // 2 * images**2
