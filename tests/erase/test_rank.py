"""If these fail, a rank removes other directions than the strongest, or two subspaces are not compared as defined."""

import numpy as np
import pytest
from scipy.linalg import eigh

from tests.erase.people import people
from unface import moments as moments_of
from unface.erase import ISP, Projection, RandomSubspace, chance_cosine, controls, principal_cosines
from unface.erase.certify import _directions
from unface.erase.controls import LabelFreePCA
from unface.erase.eraser import chosen_rank
from unface.moments import ClassMoments, MomentStream, class_moments

# Squares 9, 4 and 1 of 14.
SPECTRUM = np.array([3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("energy", "rank"), [(1e-9, 1), (9 / 14, 1), (9.01 / 14, 2), (13 / 14, 2), (13.01 / 14, 3), (1.0, 3)]
)
def test_energy_is_a_share_of_the_squares_and_decides_over_the_rank(energy: float, rank: int) -> None:
    assert chosen_rank("isp", SPECTRUM, 5, 4, 2, energy) == rank


def test_a_rank_is_taken_as_given_and_neither_is_all_there_is() -> None:
    assert chosen_rank("isp", SPECTRUM, 5, 4, 2, None) == 2
    assert chosen_rank("isp", SPECTRUM, 5, 4, 3, None) == 3
    # NumPy integers come from users.
    assert chosen_rank("isp", SPECTRUM, 5, 4, np.int64(1), None) == 1  # type: ignore[arg-type]  # NumPy's integers are none to mypy
    assert chosen_rank("isp", SPECTRUM, 5, 4, None, None) == 3


def test_where_class_means_do_not_differ_every_direction_is_none() -> None:
    assert chosen_rank("isp", np.zeros(0), 5, 4, None, 0.9) == 0
    assert ISP(None).fit(np.ones((4, 3)), [0, 0, 1, 1]).projection_.rank == 0


def random(rank: int, dim: int, seed: int) -> RandomSubspace:
    return RandomSubspace(rank, seed).fit(np.eye(dim))


def axis(place: int) -> Projection:
    ends = np.zeros((2, 3))
    ends[:, place] = 1, -1
    return ISP(1).fit(ends, ["a", "b"]).projection_


def test_a_projection_and_itself_have_cosines_of_one_and_orthogonal_ones_of_zero() -> None:
    made = people(12)
    isp = ISP(5).fit(made.vectors, made.identities).projection_
    assert principal_cosines(isp, isp).values == pytest.approx(np.ones(5))
    wide = ISP(11).fit(made.vectors, made.identities).projection_
    assert principal_cosines(isp, wide).values == pytest.approx(np.ones(5))
    first, third = (axis(place) for place in (0, 2))
    assert principal_cosines(first, third).values == pytest.approx([0], abs=1e-12)


@pytest.mark.parametrize(("rank", "dim"), [(60, 400), (150, 400)])
def test_the_largest_cosine_of_two_random_subspaces_is_at_its_chance_level(rank: int, dim: int) -> None:
    found = principal_cosines(random(rank, dim, 1).projection_, random(rank, dim, 2).projection_)
    p = rank / dim
    assert found.chance**2 == pytest.approx(4 * p * (1 - p))
    assert found.values[0] == pytest.approx(found.chance, abs=0.03)
    assert len(found.values) == rank


def test_unequal_ranks_have_a_chance_level_too() -> None:
    found = principal_cosines(random(30, 400, 1).projection_, random(150, 400, 2).projection_)
    assert found.values[0] == pytest.approx(found.chance, abs=0.03)


def test_the_paper_s_sizes() -> None:
    assert chance_cosine(192, 192, 512) == pytest.approx(0.968, abs=1e-3)
    assert chance_cosine(192, 192, 384) == 1


def test_chance_levels_worked_by_hand() -> None:
    """One direction in four and two: √(1/4 · 1/2) + √(1/2 · 3/4); from half of the dimensions each they must meet."""
    assert chance_cosine(1, 2, 4) == chance_cosine(2, 1, 4) == pytest.approx(0.353553 + 0.612372, abs=1e-6)
    assert chance_cosine(2, 2, 4) == 1
    assert chance_cosine(3, 2, 4) == 1
    assert principal_cosines(random(1, 4, 0).projection_, random(2, 4, 1).projection_).chance == chance_cosine(1, 2, 4)


RNG = np.random.default_rng(5)
PEOPLE = np.repeat(np.arange(6), 5)
# 30 images of 6 people in 80 dimensions.
IMAGES = (RNG.normal(size=(6, 80))[PEOPLE] + RNG.normal(size=(30, 80))).astype(np.float32)


def test_the_most_telling_direction_in_the_span_of_few_images_is_that_of_the_whole_space() -> None:
    whole = class_moments(IMAGES, PEOPLE)
    within = whole.within_covariance()
    shrunk = 0.9 * within + 0.1 * np.trace(within) / 80 * np.eye(80)
    expected = eigh(np.cov(whole.means.T), shrunk)[1][:, -1]
    (found,) = _directions(IMAGES, PEOPLE, (0.1,)).T
    assert abs(found @ expected) == pytest.approx(np.linalg.norm(found) * np.linalg.norm(expected), rel=1e-9)


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
