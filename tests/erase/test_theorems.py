"""If these fail, an eraser does not remove what its definition says, and numbers after erasure are of another map."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.erase.people import class_means, matrix_of, mean_spread, people
from unface.data import EmbeddingSet
from unface.erase import ISP, LEACE, SAL, Eraser, LabelFreePCA, Projection, RandomSubspace, UtilityLEACE

FULL = [ISP(11), ISP(11, weighted=True), ISP(11, whitened=True), SAL(11), LEACE(), LEACE(11)]


@pytest.mark.parametrize("eraser", FULL, ids=repr)
@pytest.mark.parametrize("unequal", [False, True])
def test_at_full_rank_the_fitted_class_means_coincide(eraser: Eraser, unequal: bool) -> None:
    made = people(12, unequal=unequal)
    erased = eraser.fit(made.vectors, made.identities).projection_.apply_linear(made.vectors)
    assert mean_spread(erased, made.identities) < 1e-6
    assert mean_spread(made.vectors, made.identities) > 0.1


def test_one_direction_less_than_full_rank_leaves_class_means_apart() -> None:
    made = people(12)
    erased = ISP(10).fit(made.vectors, made.identities).projection_.apply_linear(made.vectors)
    assert mean_spread(erased, made.identities) > 1e-3


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(3, 40), st.integers(2, 20))
def test_isp_removes_the_leading_left_singular_vectors_of_the_centred_means(seed: int, m: int, d: int) -> None:
    made = people(m, 3, d, seed=seed)
    rank = max(1, min(m - 1, d) // 2)
    found = ISP(rank).fit(made.vectors, made.identities).projection_
    means = class_means(made.vectors, made.identities)
    left, values, _ = np.linalg.svd((means - means.mean(axis=0)).T)
    assert found.spectrum[:rank] == pytest.approx(values[:rank], rel=1e-6)
    # The subspace itself is only as sharp as the gap after it.
    if rank == len(values) or values[rank] < 0.99 * values[rank - 1]:
        expected = np.eye(d) - left[:, :rank] @ left[:, :rank].T
        assert np.abs(matrix_of(found) - expected).max() < 1e-6


@pytest.mark.parametrize("kind", [ISP, SAL, RandomSubspace, LabelFreePCA])
@pytest.mark.parametrize("identities", [12, 40])
def test_nested_ranks_give_nested_subspaces(kind: type[Eraser], identities: int) -> None:
    made = people(identities)
    ranks = (2, 5, 9)
    found = [kind(rank=r).fit(made.vectors, made.identities).projection_ for r in ranks]
    for small, large in pairwise(found):
        assert np.abs(matrix_of(large) @ small.directions).max() < 1e-12
        assert np.abs(matrix_of(small) @ large.directions).max() > 0.1


def test_sal_is_isp_for_balanced_classes_and_another_for_unbalanced() -> None:
    for unequal in (False, True):
        made = people(30, unequal=unequal)
        isp, sal = (kind(5).fit(made.vectors, made.identities).projection_ for kind in (ISP, SAL))
        apart = np.abs(matrix_of(isp) - matrix_of(sal)).max()
        assert apart > 1e-3 if unequal else apart < 1e-10


def test_sal_removes_the_leading_left_singular_vectors_of_the_cross_covariance() -> None:
    """Against the one-hot matrix that is never built; classes of one size could not tell its weights from others."""
    made = people(30, unequal=True)
    found = SAL(5).fit(made.vectors, made.identities).projection_
    left, values, _ = np.linalg.svd(cross_covariance(made))
    assert matrix_of(found) == pytest.approx(np.eye(24) - left[:, :5] @ left[:, :5].T, abs=1e-6)
    assert found.spectrum == pytest.approx(values, rel=1e-5)


def test_rank_limited_leace_removes_the_leading_directions_of_the_whitened_cross_covariance() -> None:
    made = stretched(people(30, unequal=True))
    found = LEACE(5).fit(made.vectors, made.identities).projection_
    values, vectors = np.linalg.eigh(np.cov(made.vectors.T))
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    left, spectrum, _ = np.linalg.svd(inverse @ cross_covariance(made))
    assert matrix_of(found) == pytest.approx(np.eye(24) - root @ left[:, :5] @ left[:, :5].T @ inverse, abs=1e-5)
    assert found.spectrum == pytest.approx(spectrum, rel=1e-5)
    assert found.mean == pytest.approx(made.vectors.mean(axis=0, dtype=np.float64), rel=1e-6)


def cross_covariance(made: EmbeddingSet) -> NDArray[np.float64]:
    exact = made.vectors - made.vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(exact.T @ np.eye(len(made.names))[made.identities] / len(made))


def test_weighted_isp_removes_the_leading_directions_of_the_between_class_scatter() -> None:
    made = people(30, unequal=True)
    found = ISP(5, weighted=True).fit(made.vectors, made.identities).projection_
    means, sizes = class_means(made.vectors, made.identities), np.bincount(made.identities)
    apart = means - np.average(means, axis=0, weights=sizes)
    vectors = np.linalg.eigh((apart * sizes[:, None]).T @ apart)[1][:, ::-1][:, :5]
    assert np.abs(found.directions.T @ vectors @ vectors.T @ found.directions - np.eye(5)).max() < 1e-6
    unweighted = ISP(5).fit(made.vectors, made.identities).projection_
    assert np.abs(matrix_of(found) - matrix_of(unweighted)).max() > 1e-3


@pytest.mark.parametrize("eraser", [ISP(5, whitened=True), LEACE(5), LEACE()], ids=repr)
def test_oblique_projections_are_idempotent_and_not_symmetric(eraser: Eraser) -> None:
    made = stretched(people(12))
    found = eraser.fit(made.vectors, made.identities).projection_
    matrix = matrix_of(found)
    assert np.abs(matrix @ matrix - matrix).max() < 1e-10
    assert np.abs(matrix - matrix.T).max() > 1e-2
    once = found.apply_linear(made.vectors)
    assert found.apply_linear(once) == pytest.approx(once, abs=1e-5 * float(np.abs(once).max()))


def test_whitened_isp_is_the_projection_of_the_whitened_vectors() -> None:
    made = stretched(people(12))
    found = ISP(5, whitened=True).fit(made.vectors, made.identities).projection_
    means = class_means(made.vectors, made.identities)
    residue = made.vectors - means[made.identities]
    values, vectors = np.linalg.eigh(residue.T @ residue / (len(residue) - 12))
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    left = np.linalg.svd(inverse @ (means - means.mean(axis=0)).T)[0][:, :5]
    expected = root @ (np.eye(24) - left @ left.T) @ inverse
    assert matrix_of(found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [1e-12, 1, 1e12])
def test_directions_of_very_different_strength_are_still_orthonormal(size: float) -> None:
    """Class means that differ 10,000 times more in one direction than in another; rounding grows with the square."""
    strength, rng = size * np.geomspace(1e4, 1, 6), np.random.default_rng(2)
    across, along = (np.linalg.qr(draw - draw.mean(axis=0))[0] for draw in (rng.normal(size=(n, 6)) for n in (12, 15)))
    means = (across * strength) @ along.T
    found = ISP(6).fit(means, np.arange(12)).projection_
    assert found.directions.T @ found.directions == pytest.approx(np.eye(6), abs=1e-12)
    assert found.spectrum == pytest.approx(strength, rel=1e-6)
    assert np.abs(means @ matrix_of(found)).max() < 1e-8 * size


def test_directions_in_which_class_means_differ_by_rounding_alone_are_not_counted() -> None:
    """Beside the strongest: a millionth of its length is the edge, whatever the size of the vectors."""
    for size in (1e-9, 1, 1e9):
        for weak, rank in ((1e-5, 2), (1e-7, 1)):
            ends = size * np.array([[1, 0, 0], [-1, 0, 0], [0, weak, 0], [0, -weak, 0]])
            assert ISP(None).fit(ends, [0, 1, 2, 3]).projection_.rank == rank


@pytest.mark.parametrize(
    "eraser", [ISP(3), SAL(3), LEACE(3), UtilityLEACE(3, utility=np.eye(20))], ids=lambda eraser: eraser.kind
)
def test_energy_takes_the_fewest_directions_that_hold_that_share_whatever_the_rank(eraser: Eraser) -> None:
    made = people(30, dim=20)

    def fitted(**options: float | None) -> Projection:
        return type(eraser)(**{**eraser.get_params(), **options}).fit(made.vectors, made.identities).projection_

    squares = fitted(rank=None).spectrum ** 2
    found = fitted(energy=0.7).rank
    assert squares[:found].sum() >= 0.7 * squares.sum() > squares[: found - 1].sum()
    assert fitted(energy=1.0).rank == fitted(rank=None).rank == 20
    assert fitted().rank == 3


def test_rank_zero_changes_nothing_but_the_length() -> None:
    made = people(6)
    erased = ISP(0).fit(made.vectors, made.identities).transform(made.vectors)
    assert erased == pytest.approx(made.unit().vectors, abs=1e-7)


@pytest.mark.parametrize("eraser", [ISP(5), SAL(5), LEACE(5), LEACE()], ids=repr)
def test_scale_of_the_vectors_and_names_of_the_identities_do_not_matter(eraser: Eraser) -> None:
    """Tolerances are relative: vectors of any size are erased alike, whoever the people are."""
    made = people(12)
    matrix = matrix_of(eraser.fit(made.vectors, made.identities).projection_)
    names = np.array(made.names)[made.identities]
    for scale in (1e-12, 1e12):
        found = eraser.fit(made.vectors * np.float32(scale), names).projection_
        assert matrix_of(found) == pytest.approx(matrix, abs=1e-5)


def stretched(made: EmbeddingSet) -> EmbeddingSet:
    """The same people with unequal variances, so that whitening matters."""
    scales: NDArray[np.float64] = np.geomspace(0.3, 3, made.vectors.shape[1])
    return EmbeddingSet.from_arrays(made.vectors * scales, made.identities)
