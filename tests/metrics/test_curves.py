"""If this fails, the ROC misses operating points, or the equal error rate or partial area is not what it is called."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from tests.refusals.table import refused
from unface.metrics import eer, equal_error, partial_auc, roc, tar_at_far
from unface.metrics.unlinkability import binned, dsys, null_bias, score_bins
from unface.seeds import stream

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


def estimated(mated: NDArray[np.float64], impostor: NDArray[np.float64]) -> float:
    edges = score_bins(mated.astype(np.float32))
    counts = [np.bincount(binned(edges, s.astype(np.float32)), minlength=len(edges) + 1) for s in (mated, impostor)]
    return float(dsys(counts[0].astype(float), counts[1].astype(float)))


def law(apart: float, spread: float) -> float:
    """Of N(apart, spread²) against N(0, 1), by numerical integration."""
    mated, impostor = stats.norm(apart, spread), stats.norm(0, 1)

    def linkable(s: float) -> float:
        p, q = mated.pdf(s), impostor.pdf(s)
        return float(p * max(0.0, p - q) / (p + q)) if p + q > 0 else 0.0

    value, _ = integrate.quad(linkable, apart - 12 * spread, apart + 12 * spread, limit=800)
    return float(value)


@pytest.mark.parametrize(("apart", "spread"), [(0.5, 1.0), (1.0, 1.0), (2.0, 0.7), (0.0, 2.0)])
def test_two_gaussians_are_as_linkable_as_the_integral_says(apart: float, spread: float) -> None:
    rng = stream(1, "dsys")
    mated, impostor = rng.normal(apart, spread, 40_000), rng.normal(0, 1, 400_000)
    assert estimated(mated, impostor) == pytest.approx(law(apart, spread), abs=0.012)
    assert abs(estimated(mated, impostor) - law(1.15 * apart, 1.1 * spread)) > 0.012


def test_scores_that_are_apart_are_fully_linkable() -> None:
    rng = stream(2, "dsys")
    assert estimated(rng.normal(30, 1, 2_000), rng.normal(0, 1, 50_000)) == pytest.approx(1)


@pytest.mark.parametrize("count", [500, 5_000])
def test_equal_distributions_leave_the_stated_bias_and_no_more(count: int) -> None:
    found, bins = [], 0
    for draw in range(40):
        rng = stream(draw, "dsys null", count)
        mated = rng.normal(size=count)
        bins = len(score_bins(mated.astype(np.float32)))
        # edges of other scores: those of the same ones hold equally many of them by construction
        edges = score_bins(rng.normal(size=count).astype(np.float32))
        shares = [
            np.bincount(binned(edges, s.astype(np.float32)), minlength=bins + 1)
            for s in (mated, rng.normal(size=20 * count))
        ]
        found.append(float(dsys(shares[0].astype(float), shares[1].astype(float))))
    assert np.mean(found) == pytest.approx(null_bias(count, bins), rel=0.15)


def test_weights_give_a_row_of_values() -> None:
    counts = np.array([[1.0, 2, 3], [3, 2, 1]])
    values = dsys(counts, np.array([[1.0, 2, 3], [1, 2, 3]]))
    assert values[0] == 0
    assert values[1] == pytest.approx(0.5 * (0.5 - 1 / 6) / (0.5 + 1 / 6))
