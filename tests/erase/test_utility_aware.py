"""If these fail, erasers that know what must stay remove it all the same, or leave identity for its sake."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import eigh

from tests.erase.people import Matrix, class_means, matrix_of, mean_spread, people
from unface.erase import ISP, LEACE, SAL, LabelFreePCA, Projection, UtilityLEACE, UtilityPCA

DIM = 24
ISOTROPIC = np.vstack([np.eye(DIM), -np.eye(DIM)])
SCALES = np.geomspace(0.1, 3, DIM)


def things(scales: NDArray[np.float64] = SCALES, rows: int = 400, seed: int = 7) -> NDArray[np.float32]:
    """Vectors of another use, off the origin."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, len(scales))) * scales + rng.standard_normal(len(scales))).astype(np.float32)


def shrunk_covariance(utility: NDArray[np.floating]) -> Matrix:
    covariance = np.cov(utility.T.astype(np.float64))
    return np.asarray(0.99 * covariance + 0.01 * np.trace(covariance) / len(covariance) * np.eye(len(covariance)))


def utility_lost(projection: Projection, utility: NDArray[np.float32]) -> float:
    """Share of the utility variance that the map moves."""
    moved = projection.apply_linear(utility).astype(np.float64) - utility
    return float((moved**2).sum() / ((utility - utility.mean(axis=0, dtype=np.float64)) ** 2).sum())


def test_beside_isotropic_utility_they_are_label_free_pca_and_sal() -> None:
    made = people(30, unequal=True)
    for aware, plain in ((UtilityPCA, LabelFreePCA), (UtilityLEACE, SAL)):
        found = aware(5, utility=ISOTROPIC).fit(made.vectors, made.identities).projection_
        expected = plain(5).fit(made.vectors, made.identities).projection_
        assert matrix_of(found) == pytest.approx(matrix_of(expected), abs=1e-9)


def test_beside_isotropic_utility_and_equal_classes_utility_leace_is_isp() -> None:
    made = people(30)
    found = UtilityLEACE(5, utility=ISOTROPIC).fit(made.vectors, made.identities).projection_
    isp = ISP(5).fit(made.vectors, made.identities).projection_
    assert matrix_of(found) == pytest.approx(matrix_of(isp), abs=1e-9)


def test_with_the_fitted_vectors_as_utility_it_is_leace() -> None:
    """Up to the shrinkage, which keeps a hundredth of the mean variance; with another utility it is not."""
    made = people(12, images=40)
    leace = matrix_of(LEACE(11).fit(made.vectors, made.identities).projection_)
    own, other = (
        matrix_of(UtilityLEACE(11, utility=utility).fit(made.vectors, made.identities).projection_)
        for utility in (made.vectors, things())
    )
    assert np.abs(own - leace).max() < 0.01
    assert np.abs(other - leace).max() > 0.1


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, DIM - 1))
def test_what_is_read_are_the_leading_generalized_eigenvectors(seed: int, rank: int) -> None:
    made, utility = people(40, seed=seed), things(seed=seed)
    found = UtilityPCA(rank, utility=utility).fit(made.vectors).projection_
    covariance = shrunk_covariance(utility)
    values, vectors = eigh(np.cov(made.vectors.T.astype(np.float64)), covariance)
    assert found.spectrum**2 == pytest.approx(values[::-1], rel=1e-4)
    kept = vectors[:, : DIM - rank]
    # What is kept of the utility vectors is their regression onto the kept coordinates: Σ C (CᵀΣC)⁻¹ Cᵀ.
    expected = covariance @ kept @ np.linalg.solve(kept.T @ covariance @ kept, kept.T)
    if values[DIM - rank] > 1.01 * values[DIM - rank - 1]:
        assert matrix_of(found) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("rank", [11, None])
@pytest.mark.parametrize("unequal", [False, True])
def test_at_full_rank_class_means_coincide_whatever_the_utility(rank: int | None, unequal: bool) -> None:
    made, eraser = people(12, unequal=unequal), UtilityLEACE(rank, utility=things())
    erased = eraser.fit(made.vectors, made.identities).projection_.apply_linear(made.vectors)
    assert mean_spread(erased, made.identities) < 1e-5
    assert mean_spread(made.vectors, made.identities) > 0.1


@pytest.mark.parametrize("kind", [UtilityPCA, UtilityLEACE])
def test_at_its_rank_a_strong_identity_subspace_is_gone(kind: type[UtilityPCA] | type[UtilityLEACE]) -> None:
    """Positive control: people who differ in three dimensions only, for identities that took no part in the fit."""
    made = people(60, rank=3, between=30.0)
    fit, test = made.take(made.identities < 40), made.take(made.identities >= 40)
    found = kind(3, utility=things(np.ones(DIM))).fit(fit.vectors, fit.identities).projection_
    before, left = (
        float(class_means(vectors, test.identities).std(axis=0).max())
        for vectors in (test.vectors, found.apply_linear(test.vectors))
    )
    # What may be left is the noise of means of eight images, 1/√8 of one image's.
    assert left < 0.6
    assert before > 5


@pytest.mark.parametrize("kind", [UtilityPCA, UtilityLEACE])
def test_where_identity_and_utility_overlap_less_utility_goes_for_as_much_identity(
    kind: type[UtilityPCA] | type[UtilityLEACE],
) -> None:
    """Identity lies evenly in the first eight dimensions, most of the utility in four of these."""
    rng = np.random.default_rng(3)
    means = np.zeros((200, DIM))
    means[:, :8] = 3 * rng.standard_normal((200, 8))
    identities = np.repeat(np.arange(200), 4)
    vectors = (means[identities] + 0.3 * rng.standard_normal((800, DIM))).astype(np.float32)
    utility = things(np.r_[np.full(4, 3.0), np.full(4, 0.3), np.ones(16)])
    aware = kind(4, utility=utility).fit(vectors, identities).projection_
    isp = ISP(4).fit(vectors, identities).projection_
    left = [float((means @ matrix_of(p).T).var(axis=0).sum() / means.var(axis=0).sum()) for p in (isp, aware)]
    assert left == pytest.approx([0.5, 0.5], abs=0.1)
    assert utility_lost(aware, utility) < 0.05 * utility_lost(isp, utility)


def test_what_utility_never_uses_goes_first_and_costs_nothing() -> None:
    made = people(60)
    unused = np.array([3, 8, 9, 20])
    scales = np.ones(DIM)
    scales[unused] = 0
    utility = things(scales)
    found = UtilityPCA(4, utility=utility).fit(made.vectors).projection_
    assert utility_lost(found, utility) < 1e-4
    erased = found.apply_linear(made.vectors)
    assert erased[:, unused].std(axis=0).max() < 0.01 * made.vectors[:, unused].std(axis=0).min()
    assert utility_lost(LabelFreePCA(4).fit(made.vectors).projection_, utility) > 0.05


def test_no_other_map_of_what_is_kept_restores_the_utility_vectors_better() -> None:
    made, utility = people(60), things()
    found = UtilityPCA(8, utility=utility).fit(made.vectors).projection_
    kept = np.linalg.qr(found.directions, mode="complete")[0][:, 8:]
    centred = utility - utility.mean(axis=0, dtype=np.float64)
    best = float(((centred @ kept @ np.linalg.lstsq(centred @ kept, centred)[0] - centred) ** 2).sum())
    straight = float(((centred @ kept @ kept.T - centred) ** 2).sum())
    ours = utility_lost(found, utility) * float((centred**2).sum())
    assert best <= ours < 1.02 * best
    assert ours < 0.8 * straight


def test_the_mean_of_the_utility_vectors_stays() -> None:
    made, utility = people(40), things()
    mean = utility.mean(axis=0, dtype=np.float64)
    for eraser in (UtilityPCA(8, utility=utility), UtilityLEACE(8, utility=utility)):
        found = eraser.fit(made.vectors, made.identities).projection_
        assert found.apply_linear(mean) == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scale_of_people_and_of_utility_does_not_matter(scale: float) -> None:
    made, utility = people(40), things()
    for kind in (UtilityPCA, UtilityLEACE):
        matrix = matrix_of(kind(5, utility=utility).fit(made.vectors, made.identities).projection_)
        for vectors, beside in (
            (made.vectors * np.float32(scale), utility),
            (made.vectors, utility * np.float32(scale)),
        ):
            found = kind(5, utility=beside).fit(vectors, made.identities).projection_
            assert matrix_of(found) == pytest.approx(matrix, abs=1e-4)


def test_the_spectrum_is_in_units_of_how_the_utility_vectors_vary() -> None:
    made, utility = people(12, images=40, unequal=True), things()
    found = UtilityLEACE(11, utility=utility).fit(made.vectors, made.identities).projection_
    exact = made.vectors - made.vectors.mean(axis=0, dtype=np.float64)
    cross = exact.T @ np.eye(12)[made.identities] / len(made)
    values = np.linalg.eigvalsh(cross.T @ np.linalg.solve(shrunk_covariance(utility), cross))[::-1]
    assert found.spectrum**2 == pytest.approx(values[:11], rel=1e-4)


def test_two_utility_vectors_of_whole_numbers_will_do() -> None:
    made = people(12)
    two = np.arange(2 * DIM).reshape(2, DIM) ** 2
    found, exact = (UtilityPCA(3, utility=given).fit(made.vectors).projection_ for given in (two, two.astype(float)))
    assert found.sha256 == exact.sha256


def test_utility_pca_looks_at_no_identity_and_utility_leace_does() -> None:
    made, utility = people(40), things()
    mixed = np.random.default_rng(0).permutation(made.identities)
    for kind, same in ((UtilityPCA, True), (UtilityLEACE, False)):
        found, shuffled = (kind(5, utility=utility).fit(made.vectors, y).projection_ for y in (made.identities, mixed))
        assert (found.sha256 == shuffled.sha256) is same
