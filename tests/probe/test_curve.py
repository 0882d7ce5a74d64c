"""If these fail, the drawn curve or the equal error rate says something else than the scores do."""

import numpy as np
import pytest

from unface.metrics import eer, roc
from unface.pairs import bin_scores
from unface.probe.trial import Curve, det_curve, thinned
from unface.seeds import stream

BINS, LOW, HIGH = 4096, -6.0, 8.0


def scores() -> tuple[list[np.ndarray[tuple[int], np.dtype[np.float32]]], ...]:
    """Mated and impostor scores of two seeds."""
    rng = stream(0, "curve")
    mated = [rng.normal(1.5, 1, size=3000).astype(np.float32) for _ in range(2)]
    impostor = [rng.normal(0, 1, size=20_000).astype(np.float32) for _ in range(2)]
    return mated, impostor


def whole_curve() -> Curve:
    width = (HIGH - LOW) / BINS
    mated, impostor = ([bin_scores(part, LOW, width, BINS) for part in kind] for kind in scores())
    return det_curve(mated, impostor)


def test_the_curve_passes_through_the_points_of_the_pooled_scores() -> None:
    mated, impostor = (np.concatenate(kind) for kind in scores())
    exact, curve = roc(mated, impostor), whole_curve()
    for far in (1e-3, 1e-2, 0.1, 0.4):
        assert np.interp(far, curve.far, curve.tar) == pytest.approx(np.interp(far, exact.far, exact.tar), abs=3e-3)


def test_the_equal_error_rate_is_that_of_the_scores_also_when_few_points_are_kept() -> None:
    mated, impostor = (np.concatenate(kind) for kind in scores())
    curve = whole_curve()
    assert curve.eer == pytest.approx(eer(mated, impostor), abs=5e-4)
    assert thinned(curve, 40_000).eer == curve.eer


def test_thinned_points_are_points_of_the_curve_in_order_a_dozen_for_each_decade() -> None:
    curve = whole_curve()
    few = thinned(curve, 40_000)
    known = set(zip(curve.far.tolist(), curve.tar.tolist(), strict=True))
    assert set(zip(few.far.tolist(), few.tar.tolist(), strict=True)) <= known
    assert (np.diff(few.far) > 0).all()
    assert 20 < len(few.far) <= 56
    assert few.far[0] > 0
    assert few.far[-1] <= 0.5


def test_thinned_points_reach_from_one_false_accept_to_one_half() -> None:
    """A thousand impostors, one more accepted at each point; between 0.01 and 0.1 a dozen or so are kept."""
    count = np.arange(1001) / 1000
    few = thinned(Curve(count, np.sqrt(count), 0.3), 1000)
    assert (few.far[0], few.far[-1]) == (0.001, 0.5)
    assert np.array_equal(few.tar, np.sqrt(few.far))
    assert 11 <= np.count_nonzero((few.far >= 0.01) & (few.far < 0.1)) <= 14
    # among a few impostors every point is kept, and none with nobody accepted or more than half
    assert thinned(Curve(np.arange(5) / 4, np.arange(5) / 4, 0.5), 4).far.tolist() == [0.25, 0.5]


def test_a_thinned_point_never_takes_its_rate_from_a_higher_one() -> None:
    """Two points alone, at 0.001 and at 0.4: rates asked for in between are answered by the lower one."""
    few = thinned(Curve(np.array([0.0, 0.001, 0.4, 1.0]), np.array([0.0, 0.2, 0.9, 1.0]), 0.3), 1000)
    assert (few.far.tolist(), few.tar.tolist()) == ([0.001, 0.4], [0.2, 0.9])


def test_a_curve_that_begins_with_several_false_accepts_keeps_its_first_point() -> None:
    few = thinned(Curve(np.array([0.02, 0.3, 1.0]), np.array([0.5, 0.9, 1.0]), 0.2), 1000)
    assert (few.far.tolist(), few.tar.tolist()) == ([0.02, 0.3], [0.5, 0.9])


def test_scores_that_are_all_alike_have_an_empty_curve_and_an_equal_error_rate_of_one_half() -> None:
    same = [bin_scores(np.zeros(10, np.float32), 0.0, 1e-6, 16)]
    curve = det_curve(same, same)
    assert curve.eer == 0.5
    assert len(thinned(curve, 10).far) == 0
