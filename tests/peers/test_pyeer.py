"""If this fails, our error rates differ from those of pyeer beyond the one choice in which it differs.

pyeer accepts a score at least the threshold, as we do, but has no point where nothing is accepted; and of the two
points around the crossing it takes the smaller mean as its EER (FVC2000), where we take the smaller gap.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.metrics import eer, roc

eer_stats = pytest.importorskip("pyeer.eer_stats", reason="pyeer is not installed")

SCORES = st.one_of(
    st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=50),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50),
)


@given(SCORES, SCORES)
def test_false_match_and_non_match_rates_are_the_same(mated: list[float], impostor: list[float]) -> None:
    thresholds, fmr, fnmr = eer_stats.calculate_roc(mated, impostor)
    ours = roc(mated, impostor)
    np.testing.assert_array_equal(ours.thresholds[:0:-1], thresholds)
    np.testing.assert_allclose(ours.far[:0:-1], fmr, atol=1e-15)
    np.testing.assert_allclose(ours.frr[:0:-1], fnmr, atol=1e-15)


@given(SCORES, SCORES)
def test_distances_are_accepted_where_their_negatives_are(mated: list[float], impostor: list[float]) -> None:
    distances = [-score for score in mated], [-score for score in impostor]
    thresholds, fmr, fnmr = eer_stats.calculate_roc(*distances, ds_scores=True)
    ours = roc(mated, impostor)
    np.testing.assert_array_equal(-ours.thresholds[:0:-1], thresholds)
    np.testing.assert_allclose(ours.far[:0:-1], fmr, atol=1e-15)
    np.testing.assert_allclose(ours.frr[:0:-1], fnmr, atol=1e-15)


@given(SCORES, SCORES)
def test_the_equal_error_rate_is_one_of_the_two_that_pyeer_chooses_from(
    mated: list[float], impostor: list[float]
) -> None:
    before, after = around_the_crossing(*whole_curve(mated, impostor))
    theirs, ours = pyeer_eer(mated, impostor), eer(mated, impostor)
    assert min(abs(ours - before), abs(ours - after)) < 1e-12
    assert theirs == pytest.approx(min(before, after), abs=1e-12)
    assert ours >= theirs - 1e-12


@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 200))
def test_without_ties_the_equal_error_rates_differ_by_half_a_step_at_most(seed: int, mated: int, impostor: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permutation(mated + impostor).astype(float)
    high, low = list(scores[:mated] + mated), list(scores[mated:] + 0.5)
    assert abs(eer(high, low) - pyeer_eer(high, low)) <= 0.5 / min(mated, impostor) + 1e-12


def test_where_both_choices_coincide_so_do_the_rates() -> None:
    mated, impostor = [1.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.5]
    assert eer(mated, impostor) == pyeer_eer(mated, impostor) == 0.25


def whole_curve(mated: list[float], impostor: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """pyeer's curve, with the point where nothing is accepted put at its end."""
    _, fmr, fnmr = eer_stats.calculate_roc(mated, impostor)
    return np.append(fmr, 0.0), np.append(fnmr, 1.0)


def pyeer_eer(mated: list[float], impostor: list[float]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(eer_stats.get_eer_values(*whole_curve(mated, impostor))[3])


def around_the_crossing(fmr: NDArray[np.float64], fnmr: NDArray[np.float64]) -> tuple[float, float]:
    """Mean error at the last point where false matches prevail and at the first where they do not."""
    means, first = (fmr + fnmr) / 2, int(np.flatnonzero(fmr - fnmr <= 1e-12)[0])
    exact = abs(fmr[first] - fnmr[first]) <= 1e-12
    return float(means[first if exact or first == 0 else first - 1]), float(means[first])
