"""If these fail, a rival or a control is not what its name says, and beating it proves nothing."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge, RidgeClassifier

from tests.erase.people import Matrix, class_means, matrix_of, people
from tests.refusals.table import refused
from unface.data import EmbeddingSet, identity_basis
from unface.erase import INLP, ISP, RLACE, SAL, FairPCA, LabelFreePCA, RandomSubspace
from unface.erase.rlace import _Classifier, fantope
from unface.seeds import stream


@pytest.fixture(scope="module")
def confined() -> EmbeddingSet:
    """Identities in five of twenty dimensions."""
    return people(30, 20, 20, rank=5, between=2.0, seed=4)


def accuracy(vectors: NDArray[np.floating], identities: NDArray[np.int64]) -> float:
    """Of a linear classifier on the vectors it was fitted on."""
    return float(RidgeClassifier(alpha=1.0).fit(vectors, identities).score(vectors, identities))


def test_inlp_in_one_round_drops_the_leading_directions_of_a_ridge_classifier() -> None:
    made = people(10, 12, 16, unequal=True)
    found = INLP(4, per_round=4, ridge=1e-3).fit(made.vectors, made.identities).projection_
    exact = made.vectors - made.vectors.mean(axis=0, dtype=np.float64)
    alpha = 1e-3 * np.trace(exact.T @ exact) / 16
    one_hot = np.eye(10)[made.identities]
    weights = np.linalg.solve(exact.T @ exact + alpha * np.eye(16), exact.T @ one_hot)
    left, values, _ = np.linalg.svd(weights, full_matrices=False)
    assert matrix_of(found) == pytest.approx(np.eye(16) - left[:, :4] @ left[:, :4].T, abs=1e-7)
    assert found.spectrum == pytest.approx(values[:4], rel=1e-6)


def test_inlp_fits_each_classifier_on_what_the_ones_before_have_left() -> None:
    """Rounds of three, three and two directions, with scikit-learn's ridge regression onto the one-hot matrix."""
    made = people(5, 12, 16, unequal=True)
    found = INLP(8, per_round=3, ridge=0.01).fit(made.vectors, made.identities).projection_
    exact = made.vectors - made.vectors.mean(axis=0, dtype=np.float64)
    ridge = Ridge(0.01 * np.trace(exact.T @ exact) / 16, fit_intercept=False)
    removed, values = np.zeros((16, 0)), np.zeros(0)
    for step in (3, 3, 2):
        kept = np.linalg.qr(removed, mode="complete")[0][:, removed.shape[1] :]
        weights = ridge.fit(exact @ kept, np.eye(5)[made.identities]).coef_.T
        left, found_values, _ = np.linalg.svd(weights, full_matrices=False)
        removed, values = np.hstack([removed, kept @ left[:, :step]]), np.append(values, found_values[:step])
    assert matrix_of(found) == pytest.approx(np.eye(16) - removed @ removed.T, abs=1e-6)
    assert found.spectrum == pytest.approx(values, rel=1e-5)


def test_inlp_of_many_a_round_takes_no_more_than_a_classifier_has() -> None:
    """Four identities are three directions a round, whatever was asked for; so are people who differ in two."""
    made = people(4, 12, 16)
    many, three = (INLP(7, per_round=n).fit(made.vectors, made.identities).projection_ for n in (16, 3))
    assert many.sha256 == three.sha256
    one = INLP(3, per_round=1).fit(made.vectors, made.identities).projection_
    assert np.abs(matrix_of(one) @ many.directions[:, :3]).max() > 1e-3
    flat = people(8, 12, 16).vectors * np.r_[np.ones(2), np.zeros(14)]
    assert INLP(2).fit(flat, people(8, 12, 16).identities).projection_.rank == 2


def test_inlp_goes_on_where_one_classifier_ends() -> None:
    """Three identities give a classifier of two directions; what it leaves is found in the next rounds."""
    made = people(3, 200, 16, between=1.0)
    left = {rank: INLP(rank).fit(made.vectors, made.identities).transform(made.vectors) for rank in (2, 8)}
    found = [accuracy(vectors, made.identities) for vectors in (made.vectors, left[2], left[8])]
    assert found[0] > 0.9
    assert found[0] > found[1] > found[2] - 0.02
    assert found[2] < 0.5


def test_rlace_hides_identities_from_a_linear_classifier_and_a_random_subspace_does_not(confined: EmbeddingSet) -> None:
    found = RLACE(5, steps=100).fit(confined.vectors, confined.identities).projection_
    random = RandomSubspace(5).fit(confined.vectors).projection_
    left = [accuracy(one.apply_linear(confined.vectors), confined.identities) for one in (found, random)]
    cosines = np.linalg.svd(found.directions.T @ identity_basis(20, 5, 4), compute_uv=False)
    assert left[0] < 0.5 * left[1]
    assert cosines.min() > 0.9


def test_the_nearest_matrix_of_the_fantope() -> None:
    rng = np.random.default_rng(0)
    draw = rng.normal(size=(6, 6))
    given = draw + draw.T
    nearest = fantope(given, 2)
    values = np.linalg.eigvalsh(nearest)
    assert values.sum() == pytest.approx(2)
    assert values.min() > -1e-9
    assert values.max() < 1 + 1e-9
    # A projection of a convex set: no other member lies closer.
    for _ in range(50):
        basis = np.linalg.qr(rng.normal(size=(6, 2)))[0]
        assert np.sum((basis @ basis.T - given) * (nearest - given)) >= np.sum((nearest - given) ** 2) - 1e-9
    assert fantope(nearest, 2) == pytest.approx(nearest, abs=1e-9)


def test_fair_pca_keeps_the_most_variance_that_class_means_do_not_differ_in() -> None:
    made = people(6, 30, 12)
    stretched = made.vectors * np.geomspace(0.2, 5, 12).astype(np.float32)
    found = FairPCA(8).fit(stretched, made.identities).projection_
    matrix = matrix_of(found)
    means = class_means(stretched, made.identities)
    assert found.rank == 8
    assert np.abs((means - means.mean(axis=0)) @ matrix).max() < 1e-10
    # Of all projections of that rank inside the null space, none keeps more.
    covariance = np.cov(stretched.T)
    null = np.linalg.svd(means - means.mean(axis=0))[2][5:].T
    inside = np.linalg.eigvalsh(null.T @ covariance @ null)[::-1]
    assert np.trace(matrix @ covariance @ matrix) == pytest.approx(inside[:4].sum(), rel=1e-6)
    assert inside[:4].sum() < 0.999 * inside.sum()
    assert found.spectrum == pytest.approx(SAL(5).fit(stretched, made.identities).projection_.spectrum)


def test_fair_pca_without_class_means_removes_the_least_variance() -> None:
    """``unfair`` may be nothing, and may not be more than class means differ in."""
    made = people(6, 30, 12)
    stretched = made.vectors * np.geomspace(0.2, 5, 12).astype(np.float32)
    found = FairPCA(3, unfair=0).fit(stretched, made.identities).projection_
    least = np.linalg.eigh(np.cov(stretched.T))[1][:, :3]
    assert matrix_of(found) == pytest.approx(np.eye(12) - least @ least.T, abs=1e-7)
    for unfair in (-1, 6):
        with refused("fit", "fair_pca", "most 5"):
            FairPCA(8, unfair=unfair).fit(stretched, made.identities)


def test_fair_pca_with_nothing_left_to_choose_is_sal() -> None:
    made = people(30, unequal=True)
    fair = FairPCA(6, unfair=6).fit(made.vectors, made.identities).projection_
    assert matrix_of(fair) == pytest.approx(matrix_of(SAL(6).fit(made.vectors, made.identities).projection_), abs=1e-10)


def test_label_free_pca_removes_the_largest_variance_whoever_it_belongs_to() -> None:
    made = people(10, 10, 12)
    stretched = made.vectors * np.geomspace(0.2, 5, 12).astype(np.float32)
    found = LabelFreePCA(3).fit(stretched, made.identities).projection_
    vectors = np.linalg.eigh(np.cov(stretched.T))[1][:, -3:]
    assert matrix_of(found) == pytest.approx(np.eye(12) - vectors @ vectors.T, abs=1e-8)
    shuffled = np.random.default_rng(0).permutation(made.identities)
    assert LabelFreePCA(3).fit(stretched, shuffled).projection_.sha256 == found.sha256
    assert (
        ISP(3).fit(stretched, shuffled).projection_.sha256 != ISP(3).fit(stretched, made.identities).projection_.sha256
    )


def test_a_random_subspace_knows_nothing_of_the_vectors_and_depends_on_its_seed() -> None:
    made = people(10)
    found = RandomSubspace(4, seed=1).fit(made.vectors).projection_
    assert RandomSubspace(4, seed=1).fit(-made.vectors[:5]).projection_.sha256 == found.sha256
    assert RandomSubspace(4, seed=2).fit(made.vectors).projection_.sha256 != found.sha256
    assert found.spectrum.tolist() == [1, 1, 1, 1]


def test_a_random_subspace_can_be_drawn_again_with_every_release() -> None:
    """Whoever changes these numbers changes the control of every audit that was ever made."""
    found = RandomSubspace(1, seed=7).fit(np.eye(3)).projection_.directions
    assert np.abs(found[:, 0]) == pytest.approx([0.389304, 0.448063, 0.804787], abs=1e-6)


torch = pytest.importorskip("torch", reason="the peer works its gradients out with torch")


def played(vectors: NDArray[np.float32], codes: NDArray[np.int64], rank: int, steps: int, seed: int) -> Matrix:
    """The game as it is written down: cross-entropy, gradients by autograd, Adam for the classifier."""
    exact = torch.from_numpy(vectors.astype(np.float64))
    exact = exact - exact.mean(dim=0)
    exact = exact / exact.square().mean().sqrt()
    known, dim = torch.from_numpy(codes.copy()), vectors.shape[1]
    weights, bias = (torch.zeros(size, int(codes.max()) + 1, dtype=torch.float64).squeeze(0) for size in (dim, 1))
    adam = torch.optim.Adam([weights.requires_grad_(), bias.requires_grad_()], lr=0.02, eps=1e-12)
    rng = stream(seed, "rlace")
    hidden = torch.eye(dim, dtype=torch.float64) * rank / dim
    late = []

    def loss(erased: Any) -> Any:
        rows = torch.from_numpy(rng.integers(len(exact), size=min(512, len(exact))))
        seen = exact[rows] - exact[rows] @ erased
        return torch.nn.functional.cross_entropy(seen @ weights + bias, known[rows])

    for step in range(steps):
        for _ in range(5):
            adam.zero_grad()
            loss(hidden).backward()
            adam.step()
        moving = hidden.clone().requires_grad_()
        slope = torch.autograd.grad(loss(moving), moving)[0]
        slope = slope + slope.T
        stride = rank**0.5 / (1 + 0.1 * step) / slope.norm()
        hidden = torch.from_numpy(fantope((hidden + stride * slope).numpy(), rank))
        late.append(hidden)
    return np.asarray(torch.stack(late[steps // 2 :]).mean(dim=0).numpy())


@pytest.mark.parametrize(("identities", "images", "rank", "steps"), [(6, 8, 3, 1), (6, 8, 3, 5), (5, 120, 2, 4)])
def test_it_is_the_game_played_with_autograd(identities: int, images: int, rank: int, steps: int) -> None:
    """Batches of all vectors and of 512 of them, an odd and an even number of steps, far from the origin."""
    made = people(identities, images, 9, between=0.5, seed=identities)
    far = made.vectors + np.float32(1000)
    found = RLACE(rank, steps=steps, seed=3).fit(far, made.identities).projection_
    expected = played(far, made.identities, rank, steps, seed=3)
    values, vectors = np.linalg.eigh(expected)
    leading = vectors[:, ::-1][:, :rank]
    assert found.spectrum == pytest.approx(values[::-1], abs=1e-7)
    assert matrix_of(found) == pytest.approx(np.eye(9) - leading @ leading.T, abs=1e-6)


def test_eigenvalues_of_the_average_lie_between_0_and_1_and_add_up_to_the_rank() -> None:
    made = people(6, 8, 9)
    found = RLACE(4, steps=7).fit(made.vectors, made.identities).projection_.spectrum
    assert found.sum() == pytest.approx(4)
    assert 0 <= found.min() <= found.max() <= 1


def test_one_step_is_a_game_and_rank_zero_removes_nothing() -> None:
    made = people(6, 8, 9)
    assert RLACE(3, steps=1).fit(made.vectors, made.identities).projection_.rank == 3
    assert RLACE(0, steps=2).fit(made.vectors, made.identities).projection_.rank == 0


@pytest.mark.filterwarnings("error")
def test_a_classifier_that_is_sure_of_itself_does_not_overflow() -> None:
    """Logits of 1,000 and 0: sure of the first, so wrong by all of it about a vector of the second."""
    sure = _Classifier(1, 2)
    sure.weights[0, 0] = 1000
    assert sure.errors(np.ones((2, 1)), np.array([1, 0])).tolist() == [[0.5, -0.5], [0, 0]]


def test_the_fantope_of_known_eigenvalues() -> None:
    """Shifted by one number and cut to [0, 1], so that they add up: here 1, 0.7 and 0.3 of 2.5, 0.9 and 0.5."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    given = (turn * [2.5, 0.9, 0.5, -3]) @ turn.T
    assert fantope(given, 2) == pytest.approx((turn * [1, 0.7, 0.3, 0]) @ turn.T, abs=1e-12)
    assert fantope(given, 4) == pytest.approx(np.eye(4), abs=1e-12)
    assert fantope(given, 0) == pytest.approx(np.zeros((4, 4)), abs=1e-12)
