"""If these fail, the sets whose truth we claim to know follow another law, and known answers are wrong."""

import numpy as np
import pytest
from scipy import stats

from unface.data import identity_basis, make_identities


def test_a_set_has_the_sizes_asked_for_and_names_in_order() -> None:
    made = make_identities(3, 4, 5)
    assert made.vectors.shape == (12, 5)
    assert made.names == ("p0001", "p0002", "p0003")
    assert made.identities.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert made.ids[:2].tolist() == ["p0001-0", "p0001-1"]
    assert not made.space.normalised
    assert made.source == "synthetic"


def test_the_seed_decides_everything() -> None:
    assert make_identities(5, 3, 4, rank=2).sha256() == make_identities(5, 3, 4, rank=2).sha256()
    assert make_identities(5, 3, 4, rank=2).sha256() != make_identities(5, 3, 4, rank=2, seed=1).sha256()


def test_the_basis_is_orthonormal_and_belongs_to_its_seed() -> None:
    basis = identity_basis(16, 5, 3)
    assert np.allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    assert np.array_equal(basis, identity_basis(16, 5, 3))
    assert not np.allclose(basis, identity_basis(16, 5, 4))


def test_means_lie_in_the_known_subspace_and_nowhere_else() -> None:
    made = make_identities(40, 2, 12, rank=4, between=3.0, within=0.0, seed=7)
    basis = identity_basis(12, 4, 7)
    inside = made.vectors @ basis
    outside = made.vectors - inside @ basis.T
    assert np.abs(outside).max() < 1e-5 * np.abs(inside).max()
    assert np.linalg.matrix_rank(made.vectors, tol=1e-3) == 4


def test_variances_between_and_within_are_those_asked_for() -> None:
    """10,000 identities × 4 images × 6 dimensions: the relative error of a variance is about 0.6 % and 0.3 %."""
    made = make_identities(10_000, 4, 6, between=2.0, within=0.5, seed=1)
    images = made.vectors.astype(np.float64).reshape(10_000, 4, 6)
    within = images.var(axis=1, ddof=1).mean()
    between = images.mean(axis=1).var(axis=0, ddof=1).mean() - within / 4
    assert within == pytest.approx(0.25, rel=0.02)
    assert between == pytest.approx(4.0, rel=0.03)


def test_images_are_normal_without_tails_and_student_with_them() -> None:
    """For eps with t tails, |eps|² / dim follows F(dim, tails); a normal's is chi² / dim."""
    dim, rows = 5, 20_000
    plain = make_identities(rows // 2, 2, dim, between=0.0, within=2.0, seed=3).vectors.astype(np.float64) / 2
    heavy = (
        make_identities(rows // 2, 2, dim, between=0.0, within=2.0, seed=3, tails=4.0).vectors.astype(np.float64) / 2
    )
    normal, student = stats.chi2(dim, scale=1 / dim).cdf, stats.f(dim, 4).cdf
    sizes = {"plain": (plain**2).mean(axis=1), "heavy": (heavy**2).mean(axis=1)}
    assert stats.kstest(sizes["plain"], normal).pvalue > 1e-3
    assert stats.kstest(sizes["heavy"], student).pvalue > 1e-3
    assert stats.kstest(sizes["heavy"], normal).pvalue < 1e-9


def test_unequal_sizes_have_the_mean_asked_for_and_at_least_two() -> None:
    """1 + geometric: standard deviation about 8.5 at mean 10, so 0.09 for the mean of 10,000."""
    sizes = np.bincount(make_identities(10_000, 10, 1, seed=5, unequal=True).identities)
    assert sizes.min() == 2
    assert sizes.mean() == pytest.approx(10, abs=0.45)
    assert sizes.std() == pytest.approx(np.sqrt(9 * 8), rel=0.1)
