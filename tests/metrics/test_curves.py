"""If this fails, the ROC misses operating points, or the equal error rate or partial area is not what it is called."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals.table import refused
from unface.metrics import eer, equal_error, partial_auc, roc, tar_at_far

SCORES = st.lists(st.integers(-4, 4), min_size=1, max_size=30)


def test_every_operating_point_of_a_small_case() -> None:
    points = roc(mated=[3, 2, 2, 0], impostor=[2, 1, 1, 0, 0])
    assert points.thresholds.tolist() == [np.inf, 3, 2, 1, 0]
    assert points.far.tolist() == [0, 0, 0.2, 0.6, 1]
    assert points.tar.tolist() == [0, 0.25, 0.75, 0.75, 1]
    assert points.frr.tolist() == [1, 0.75, 0.25, 0.25, 0]


def test_rates_are_counts_divided_once() -> None:
    far = roc([2000], np.arange(1000)).far
    assert far.tolist() == [0, *(count / 1000 for count in range(1001))]


def test_a_side_without_scores_is_named() -> None:
    with refused("scores", None, "mated"):
        roc([], [1.0])
    with refused("scores", None, "impostor"):
        roc([1.0], [])


@pytest.mark.parametrize(
    ("mated", "impostor", "rate"),
    [
        ([2, 3], [0, 1], 0.0),  # apart
        ([0, 1], [2, 3], 1.0),  # the wrong way round: everything is mistaken at once
        ([1, 2, 3, 4], [0, 1, 2, 3], 0.25 + 0.125),  # at 2: FAR ½, FRR ¼; at 3: FAR ¼, FRR ½; both are as near
        ([3, 2, 2, 0], [2, 1, 1, 0, 0], 0.225),  # at 2: FAR 0.2, FRR 0.25
        ([1], [1], 0.5),  # one tie: accept both or none
        ([0, 0], [1, 0, 0, 1], 0.75),  # at 1: FAR ½, FRR 1
    ],
)
def test_equal_error_rates_worked_by_hand(mated: list[int], impostor: list[int], rate: float) -> None:
    assert eer(mated, impostor) == pytest.approx(rate, abs=1e-15)


def test_of_two_equally_near_points_the_smaller_error_counts() -> None:
    assert equal_error(np.array([0.4, 0.1]), np.array([0.2, 0.3])) == pytest.approx(0.2)


@given(SCORES, SCORES)
def test_the_equal_error_rate_is_the_same_seen_from_the_other_side(mated: list[int], impostor: list[int]) -> None:
    mirrored = eer([-score for score in impostor], [-score for score in mated])
    assert eer(mated, impostor) == pytest.approx(mirrored, abs=1e-12)


@pytest.mark.parametrize(
    ("mated", "impostor", "far", "area"),
    [
        ([2, 3], [0, 1], 0.5, 1.0),
        ([1], [2, 0], 0.5, 0.0),  # the curve stands straight up at FAR ½: nothing of it lies to the left
        ([1], [2, 0], 1.0, 0.5),
        ([1], [1], 0.5, 0.25),  # one diagonal: a triangle of ½ · ½ · ½, divided by ½
        ([3, 1], [2, 0], 0.5, 0.5),
        ([3, 1, 1], [2, 1, 0, 0], 0.5, 0.5),  # ⅓ up to FAR ¼, then from ⅓ to 1
        ([3, 1, 1], [2, 1, 0, 0], 0.375, 7 / 18),  # ⅓ up to FAR ¼, then from ⅓ to ⅔
    ],
)
def test_partial_areas_worked_by_hand(mated: list[int], impostor: list[int], far: float, area: float) -> None:
    assert partial_auc(mated, impostor, far) == pytest.approx(area, abs=1e-15)


@pytest.mark.parametrize("far", [-0.5, 0.0, 1.5, np.nan])
def test_an_area_over_no_rates_or_more_than_all_is_refused(far: float) -> None:
    with refused("scores", None, f"not {far:g}"):
        partial_auc([1.0], [0.0], far)


@given(SCORES, SCORES)
def test_the_whole_area_is_the_chance_that_a_mated_score_is_higher(mated: list[int], impostor: list[int]) -> None:
    differences = np.subtract.outer(mated, impostor)
    assert partial_auc(mated, impostor, 1.0) == pytest.approx(np.mean((np.sign(differences) + 1) / 2), abs=1e-12)


@given(SCORES, SCORES, st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_tar_at_far_is_a_point_of_the_curve(mated: list[int], impostor: list[int], far: float) -> None:
    found, points = tar_at_far(mated, impostor, far), roc(mated, impostor)
    allowed = points.far <= found.achieved_far
    assert points.tar[allowed][-1] == found.value
