"""If these fail, the keeper keeps other directions than its equation says, or people can be told by what it keeps.

Covariances are planted: which directions must be kept, and what is left to see in them, is known by construction.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh, subspace_angles

from tests.erase.people import people
from unface import verify
from unface.data import identity_basis, make_identities
from unface.erase import (
    Keeper,
    RandomSubspace,
    certificate,
    copy_covariance,
    task_covariance,
)
from unface.erase.file import from_bytes, to_bytes
from unface.moments import MomentStream

DIM = 24
Matrix = NDArray[np.float64]


def planted(
    between: NDArray[np.float64], within: NDArray[np.float64], seed: int = 0, identities: int = 400
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """People with these standard deviations along the axes."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((identities, len(between))) * between
    codes = np.repeat(np.arange(identities), 6)
    vectors = means[codes] + rng.standard_normal((len(codes), len(within))) * within
    return vectors.astype(np.float32), codes


def kept_axes(eraser: Keeper, vectors: NDArray[np.float32], codes: NDArray[np.int64]) -> Matrix:
    found = eraser.fit(vectors, codes).projection_
    assert found.kept is not None
    return np.asarray(found.kept)


def test_it_keeps_the_planted_directions() -> None:
    """Pictures differ in axes 0 to 11, copies in 0 to 5, people in 6 to 8: what is left to keep are 9 to 11."""
    within, between, copies = np.full(DIM, 0.05), np.zeros(DIM), np.full(DIM, 0.02)
    within[:12], copies[:6], between[6:9] = 1.0, 1.0, 2.0
    vectors, codes = planted(between, within)
    made = kept_axes(Keeper(3, mu=1.0, nuisance=np.diag(copies**2)), vectors, codes)
    assert np.rad2deg(subspace_angles(made, np.eye(DIM)[:, 9:12])).max() < 5
    # Without people in the equation, theirs are kept as well as any.
    careless = kept_axes(Keeper(6, mu=0.0, nuisance=np.diag(copies**2)), vectors, codes)
    assert np.rad2deg(subspace_angles(careless, np.eye(DIM)[:, 6:12])).max() < 5


def test_it_solves_its_equation_from_streamed_moments() -> None:
    made = people(30, 5, DIM, unequal=True)
    rng = np.random.default_rng(1)
    copies = made.vectors + rng.standard_normal(made.vectors.shape) * np.geomspace(0.1, 1, DIM)
    noise = copy_covariance(made.vectors, copies)
    apart = (copies - made.vectors) / np.sqrt(2)
    assert noise == pytest.approx(apart.T @ apart / len(apart))
    whole = Keeper(5, mu=0.7, nuisance=noise).fit(made.vectors, made.identities).projection_

    codes, exact = made.identities, made.vectors.astype(np.float64)
    sizes = np.bincount(codes)
    means = np.array([exact[codes == code].mean(axis=0) for code in range(len(sizes))])
    within = (exact - means[codes]).T @ (exact - means[codes]) / (len(exact) - len(sizes))
    values, vectors = np.linalg.eigh(np.cov(means.T) - within * np.mean(1 / sizes))
    between = (vectors * np.maximum(values, 0)) @ vectors.T
    assert (values < 0).any(), "nothing was clipped"
    shrunk = 0.9 * noise + 0.1 * np.trace(noise) / DIM * np.eye(DIM)
    values, vectors = eigh(within, shrunk + 0.7 * np.trace(shrunk) / np.trace(between) * between)
    assert whole.spectrum == pytest.approx(values[::-1], rel=1e-6)
    assert whole.kept is not None
    assert np.rad2deg(subspace_angles(whole.kept, vectors[:, ::-1][:, :5])).max() < 1e-3
    # Their weights too: vᵀ(A + …)v is the same for each, so cosines are those of the equation's own scale.
    expected = vectors[:, ::-1][:, :5]
    assert whole.kept.T @ whole.kept == pytest.approx(
        expected.T @ expected / np.linalg.norm(expected, 2) ** 2, abs=1e-6
    )

    seen = MomentStream(DIM, scatter=True)
    for rows in np.array_split(np.random.default_rng(2).permutation(len(exact)), 7):
        seen.add(made.vectors[rows], codes[rows])
    streamed = Keeper(5, mu=0.7, nuisance=noise).fit_moments(seen).projection_
    assert (
        np.abs(
            streamed.apply(made.vectors) @ streamed.apply(made.vectors).T
            - whole.apply(made.vectors) @ whole.apply(made.vectors).T
        ).max()
        < 1e-5
    )


def test_with_people_counting_without_end_it_keeps_where_they_do_not_differ() -> None:
    basis = identity_basis(DIM, 6, seed=3)
    made = make_identities(2000, 6, DIM, rank=6, between=2.0, seed=3)
    seen = {}
    for mu in (1e6, 0.0):
        kept = kept_axes(Keeper(DIM - 6, mu=mu, nuisance=np.eye(DIM)), made.vectors, made.identities)
        seen[mu] = float(np.linalg.norm(basis.T @ np.linalg.qr(kept)[0], 2))
    # The sine of the largest angle by which what is kept leaves the null space of B.
    assert seen[1e6] < 0.05
    assert seen[0.0] > 0.5, "without people in the equation their subspace is kept as well as any"


def test_identity_in_a_subspace_is_at_chance_after_it() -> None:
    everyone = make_identities(400, 8, 32, rank=6, between=4.0, seed=3)
    fit, others = (everyone.take(half) for half in (everyone.identities < 200, everyone.identities >= 200))
    keeper = Keeper(20, mu=1e4, nuisance=np.eye(32)).fit(fit.vectors, fit.identities)
    random = RandomSubspace(12, seed=1).fit(fit.vectors)
    far = 1e-2
    raw, erased, control = (
        verify(vectors, others.identities, far=far).at[far].value
        for vectors in (others.vectors, keeper.transform(others.vectors), random.transform(others.vectors))
    )
    assert raw > 0.5
    assert control > 0.3
    assert erased == pytest.approx(far, abs=0.005)
    certified = certificate(keeper.projection_, others.vectors, others.identities)
    assert certified.energy_left.high < 0.02
    assert certified.fisher_left.value < 0.05 < certified.fisher_before.value


def test_the_same_cosines_come_in_as_many_dimensions_as_went_in() -> None:
    made = people(30, 5, DIM)
    short = Keeper(7, nuisance=np.eye(DIM)).fit(made.vectors, made.identities).projection_
    long = short.in_same_dimension()
    assert (short.released_dim, long.released_dim, short.rank) == (7, DIM, DIM - 7)
    assert long.in_same_dimension() is long
    assert long.sha256 != short.sha256
    a, b = short.apply(made.vectors), long.apply(made.vectors)
    assert (a.shape[1], b.shape[1]) == (7, DIM)
    assert np.abs(a @ a.T - b @ b.T).max() < 1e-6
    assert np.abs(b @ long.directions).max() < 1e-6, "something lies along what was removed"
    assert np.linalg.norm(short.kept, 2) == pytest.approx(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("same_dimension", [False, True])
def test_it_is_read_back_from_its_file(same_dimension: bool) -> None:
    made = people(30, 5, DIM)
    saved = Keeper(7, nuisance=np.eye(DIM)).fit(made.vectors, made.identities).projection_
    saved = saved.in_same_dimension() if same_dimension else saved
    read = from_bytes(to_bytes(saved), "file")
    assert (read.sha256, read.released_dim, read.rank) == (saved.sha256, saved.released_dim, saved.rank)
    assert np.array_equal(read.apply(made.vectors), saved.apply(made.vectors))
    # Kept directions say which ones are removed, so these are not stored.
    assert len(to_bytes(saved)) < 8 * DIM * (7 + 2) + 1500


def test_a_task_takes_the_place_of_copies() -> None:
    """Classes of the task differ in axes 0 to 2, and vary inside a class everywhere else."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(20), 30)
    spread = np.where(np.arange(DIM) < 3, 0.05, 1.0)
    task = (rng.standard_normal((20, DIM)) * (2 - spread))[classes] + rng.standard_normal((600, DIM)) * spread
    nuisance = task_covariance(task, classes)
    assert np.diag(nuisance) == pytest.approx(spread**2, rel=0.3)
    vectors, codes = planted(np.full(DIM, 0.5), np.ones(DIM))
    kept = kept_axes(Keeper(3, mu=0, nuisance=nuisance), vectors, codes)
    assert np.rad2deg(subspace_angles(kept, np.eye(DIM)[:, :3])).max() < 10
