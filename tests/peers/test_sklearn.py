"""If this fails, our rates and areas differ from those of scikit-learn on the same scores."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import auc, roc_auc_score, roc_curve

from unface.metrics import partial_auc, roc, tar_at_far

TIED = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=60)
UNTIED = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60)
SCORES = st.one_of(TIED, UNTIED)
RATES = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0])
Curve = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def peer_curve(mated: list[float], impostor: list[float]) -> Curve:
    labels = np.repeat([1, 0], [len(mated), len(impostor)])
    far, tar, thresholds = roc_curve(labels, np.array([*mated, *impostor]), drop_intermediate=False)
    return far, tar, thresholds


@given(SCORES, SCORES)
def test_every_operating_point_is_the_same(mated: list[float], impostor: list[float]) -> None:
    far, tar, thresholds = peer_curve(mated, impostor)
    ours = roc(mated, impostor)
    np.testing.assert_array_equal(ours.thresholds, thresholds)
    np.testing.assert_array_equal(ours.far, far)
    np.testing.assert_array_equal(ours.tar, tar)


@given(SCORES, SCORES, RATES)
def test_tar_at_far_is_the_last_point_of_the_curve_within_the_rate(
    mated: list[float], impostor: list[float], rate: float
) -> None:
    far, tar, thresholds = peer_curve(mated, impostor)
    allowed = math.floor(Fraction(str(rate)) * len(impostor))
    last = np.flatnonzero(np.round(far * len(impostor)) <= allowed)[-1]
    ours = tar_at_far(mated, impostor, rate)
    assert (ours.value, ours.achieved_far) == (tar[last], far[last])
    assert ours.threshold <= thresholds[last]
    assert last + 1 == len(thresholds) or ours.threshold > thresholds[last + 1]


@given(SCORES, SCORES, RATES)
def test_partial_area_is_that_under_the_interpolated_curve(
    mated: list[float], impostor: list[float], rate: float
) -> None:
    far, tar, _ = peer_curve(mated, impostor)
    stop = int(np.searchsorted(far, rate, side="right"))
    end = np.interp(rate, far[stop - 1 : stop + 1], tar[stop - 1 : stop + 1])
    area = auc(np.append(far[:stop], rate), np.append(tar[:stop], end))
    assert partial_auc(mated, impostor, rate) == pytest.approx(area / rate, abs=1e-12)


@given(SCORES, SCORES, RATES)
def test_partial_area_is_roc_auc_score_before_its_standardisation(
    mated: list[float], impostor: list[float], rate: float
) -> None:
    labels = np.repeat([1, 0], [len(mated), len(impostor)])
    theirs = roc_auc_score(labels, np.array([*mated, *impostor]), max_fpr=rate)
    ours = partial_auc(mated, impostor, rate)
    if rate < 1:  # McClish: rescaled so that chance is ½
        ours = (1 + (ours * rate - rate**2 / 2) / (rate - rate**2 / 2)) / 2
    assert ours == pytest.approx(theirs, abs=1e-12)
