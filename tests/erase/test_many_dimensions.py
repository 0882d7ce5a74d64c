"""If these fail, sets of fewer images than dimensions are audited in another space than their own, or in days."""

import numpy as np
import pytest
from scipy.linalg import eigh

from unface import moments as moments_of
from unface.erase import controls
from unface.erase.certify import _SHRINKAGE, _telling_direction
from unface.erase.controls import LabelFreePCA, RandomSubspace
from unface.moments import ClassMoments, MomentStream, class_moments

RNG = np.random.default_rng(5)
PEOPLE = np.repeat(np.arange(6), 5)
# 30 images of 6 people in 80 dimensions.
IMAGES = (RNG.normal(size=(6, 80))[PEOPLE] + RNG.normal(size=(30, 80))).astype(np.float32)


def test_the_most_telling_direction_in_the_span_of_few_images_is_that_of_the_whole_space() -> None:
    whole = class_moments(IMAGES, PEOPLE)
    within = whole.within_covariance()
    shrunk = (1 - _SHRINKAGE) * within + _SHRINKAGE * np.trace(within) / 80 * np.eye(80)
    expected = eigh(np.cov(whole.means.T), shrunk)[1][:, -1]
    found = _telling_direction(IMAGES, PEOPLE)
    assert np.allclose(found * np.sign(found @ expected), expected, atol=1e-9 * np.abs(expected).max())


def test_principal_components_of_few_images_are_those_of_their_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = LabelFreePCA(10).fit(IMAGES).projection_
    monkeypatch.setattr(moments_of, "_MANY", 64)
    monkeypatch.setattr(ClassMoments, "total_covariance", None)  # nothing of d × d is decomposed
    found = LabelFreePCA(10).fit(IMAGES).projection_
    same = found.directions @ found.directions.T - expected.directions @ expected.directions.T
    assert np.abs(same).max() < 1e-12
    assert np.allclose(found.spectrum[:29], expected.spectrum[:29], rtol=1e-9)
    assert len(found.spectrum) == 29


def test_few_samples_that_become_many_have_the_scatter_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments_of, "_MANY", 64)
    expected = IMAGES.astype(np.float64).T @ IMAGES.astype(np.float64)
    few, many = MomentStream(80, scatter=True), MomentStream(80, scatter=True)
    own = IMAGES.copy()
    few.add(own, PEOPLE)
    own[:] = 0  # the caller's array may be used again
    rows = few.few_rows()
    assert rows is not None
    assert np.array_equal(rows, IMAGES)
    for _ in range(4):
        many.add(IMAGES, PEOPLE)
    assert many.few_rows() is None
    both = few.merged(many)
    assert both.few_rows() is None
    both.add(IMAGES, PEOPLE)
    assert both.few_rows() is None
    for stream, times in ((few, 1), (many, 4), (both, 6)):
        found = stream.moments()
        assert np.allclose(found.scatter, times * expected, rtol=1e-12)
        assert found.counts.tolist() == [5 * times] * 6


def test_a_random_subspace_of_many_dimensions_is_the_same_and_still_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RandomSubspace(40).fit(IMAGES).projection_.directions
    monkeypatch.setattr(controls, "_MANY", 64)
    for rank in (3, 40):
        found = RandomSubspace(rank).fit(IMAGES).projection_.directions
        assert np.allclose(found, whole[:, :rank], atol=1e-13)
