"""If these fail, two projections look alike, or unlike, for reasons of dimension alone."""

import numpy as np
import pytest

from tests.erase.people import people
from unface.erase import ISP, Projection, RandomSubspace, chance_cosine, principal_cosines


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
