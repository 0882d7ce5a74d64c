"""If these fail, the linear attackers are not the ones they are called: another regression, other discriminants."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge as SklearnRidge

from tests.probe.small import cosines, gaussian_support, score_matrix
from unface.moments import class_moments
from unface.probe import PROBES, Support
from unface.seeds import stream

ridge, lda = PROBES["ridge"], PROBES["lda"]
FEW, MANY = (5, 3, 12), (20, 3, 6)
"""(identities, k, dimensions) with fewer and with more identities than dimensions."""
BOTH = pytest.mark.parametrize("sizes", [FEW, MANY], ids=["m < d", "m > d"])
Sizes = tuple[int, int, int]


def strangers(dim: int) -> NDArray[np.float32]:
    return stream(9, "strangers", dim).normal(size=(15, dim)).astype(np.float32)


def one_hot(support: Support) -> NDArray[np.float64]:
    return np.asarray(np.eye(int(support.identities.max()) + 1)[support.identities])


@BOTH
@pytest.mark.parametrize("alpha", [setting["alpha"] for setting in ridge.settings])
def test_ridge_scores_are_cosines_of_the_normal_equations(sizes: Sizes, alpha: float) -> None:
    support = gaussian_support(*sizes)
    z = support.vectors.astype(np.float64)
    weights = np.linalg.solve(z.T @ z + alpha * np.eye(z.shape[1]), z.T @ one_hot(support))
    queries = strangers(sizes[2])
    found = score_matrix(ridge.fit(support).space({"alpha": alpha}, queries))
    assert found == pytest.approx(cosines(queries @ weights), abs=2e-5)


@BOTH
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_ridge_agrees_with_scikit_learn(sizes: Sizes, alpha: float) -> None:
    support = gaussian_support(*sizes)
    peer = SklearnRidge(alpha=alpha, fit_intercept=False).fit(support.vectors.astype(np.float64), one_hot(support))
    queries = strangers(sizes[2])
    found = score_matrix(ridge.fit(support).space({"alpha": alpha}, queries))
    assert found == pytest.approx(cosines(peer.predict(queries.astype(np.float64))), abs=2e-5)


def test_ridge_offers_one_alpha_for_each_decade_of_the_paper() -> None:
    assert [setting["alpha"] for setting in ridge.settings] == [1e-3, 1e-2, 1e-1, 1.0, 10.0]


def shrunk_within(support: Support, shrinkage: float) -> NDArray[np.float64]:
    within = class_moments(support.vectors, support.identities).within_covariance()
    return np.asarray((1 - shrinkage) * within + shrinkage * np.trace(within) / len(within) * np.eye(len(within)))


def generalised_directions(support: Support, shrinkage: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues and eigenvectors of B v = λ S_w v, falling, without those that have no spread."""
    means = class_moments(support.vectors, support.identities).means
    between = np.cov(means.T)
    values, vectors = linalg.eigh(between, shrunk_within(support, shrinkage))
    kept = values > 1e-9 * values[-1]
    return values[kept][::-1], vectors[:, kept][:, ::-1]


@BOTH
@pytest.mark.parametrize("setting", lda.settings, ids=str)
def test_lda_scores_are_cosines_along_the_generalised_eigenvectors(sizes: Sizes, setting: dict[str, float]) -> None:
    support = gaussian_support(*sizes)
    _, directions = generalised_directions(support, setting["shrinkage"])
    assert directions.shape[1] == min(sizes[0] - 1, sizes[2])
    kept = round(setting["keep"] * directions.shape[1])
    queries = strangers(sizes[2])
    centre = class_moments(support.vectors, support.identities).means.mean(axis=0)
    expected = cosines((queries - centre) @ directions[:, :kept])
    found = score_matrix(lda.fit(support).space(setting, queries))
    assert found == pytest.approx(expected, abs=5e-5)


@BOTH
def test_the_spread_along_each_direction_is_its_eigenvalue(sizes: Sizes) -> None:
    support = gaussian_support(*sizes)
    for shrinkage in (0.05, 0.5):
        values, _ = generalised_directions(support, shrinkage)
        assert support.fisher.basis(shrinkage).spread == pytest.approx(values, rel=1e-6)


def test_lda_directions_are_scikit_learns_where_nothing_is_shrunk() -> None:
    """It shrinks each class's covariance on a scale of its own, so the two can only be compared without."""
    support = gaussian_support(5, 10, 12)
    peer = LinearDiscriminantAnalysis(solver="eigen").fit(support.vectors.astype(np.float64), support.identities)
    found = support.fisher.basis(0.0).directions
    assert found.shape == (12, 4)
    for count in range(1, 5):
        angles = linalg.subspace_angles(found[:, :count], peer.scalings_[:, :count])
        assert np.degrees(angles.max()) < 0.1


def test_with_one_image_each_half_the_total_covariance_stands_in() -> None:
    support = gaussian_support(30, 1, 4)
    total = np.cov(support.vectors.astype(np.float64).T) / 2
    shrunk = 0.5 * total + 0.5 * np.trace(total) / 4 * np.eye(4)
    expected = linalg.eigh(2 * total, shrunk, eigvals_only=True)[::-1]
    assert support.fisher.basis(0.5).spread == pytest.approx(expected, rel=1e-6)


def test_lda_and_plda_share_one_decomposition() -> None:
    support = gaussian_support(10, 3, 4)
    assert support.fisher is support.fisher
    assert gaussian_support(10, 3, 4).fisher is not support.fisher
