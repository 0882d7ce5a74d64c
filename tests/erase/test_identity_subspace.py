"""If these fail, projecting out the very subspace that identities live in leaves an attacker something to see.

Identities are confined to a known subspace by construction, so the right answer is chance, and a random subspace of
the same rank, which removes nothing in particular, is the control.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from unface import verify
from unface.data import EmbeddingSet, Space, identity_basis, make_identities
from unface.erase import ISP, LEACE, Projection, RandomSubspace
from unface.probe import PROBES, Probe, Support
from unface.threads import one_blas_thread

DIM, RANK, SEED = 64, 6, 3
FAR = 1e-2


@pytest.fixture(scope="module")
def everyone() -> EmbeddingSet:
    return make_identities(240, 8, DIM, rank=RANK, between=4.0, seed=SEED)


@pytest.fixture(scope="module")
def known() -> Projection:
    space = Space(encoder=None, weights_sha256=None, dim=DIM, normalised=False)
    return Projection("known", identity_basis(DIM, RANK, SEED), np.ones(RANK), space)


def halves(everyone: EmbeddingSet) -> tuple[EmbeddingSet, EmbeddingSet]:
    """People for the fit, and others to attack."""
    return everyone.take(everyone.identities < 120), everyone.take(everyone.identities >= 120)


def tar(vectors: NDArray[np.float32], identities: NDArray[np.int64]) -> float:
    return verify(vectors, identities, far=FAR).at[FAR].value


def nearest_mean(vectors: NDArray[np.float32], identities: NDArray[np.int64]) -> float:
    """Share of second halves of images that are nearest to the mean of their own identity's first half."""
    first = np.arange(len(vectors)) % 8 < 4
    means = np.array([vectors[first & (identities == code)].mean(axis=0) for code in np.unique(identities)])
    apart = ((vectors[~first, None] - means) ** 2).sum(axis=2)
    return float(np.mean(apart.argmin(axis=1) == identities[~first]))


def test_without_its_subspace_identity_is_at_chance_and_without_a_random_one_it_is_not(
    everyone: EmbeddingSet, known: Projection
) -> None:
    _, others = halves(everyone)
    random = RandomSubspace(RANK, seed=1).fit(others.vectors).projection_
    erased, control = (one.apply(others.vectors) for one in (known, random))
    assert tar(others.vectors, others.identities) > 0.5
    assert tar(control, others.identities) > 0.5
    assert tar(erased, others.identities) == pytest.approx(FAR, abs=0.005)
    chance = 1 / 120
    assert nearest_mean(control, others.identities) > 30 * chance
    assert nearest_mean(erased, others.identities) < 3 * chance


def test_isp_fitted_on_other_people_finds_that_subspace(everyone: EmbeddingSet) -> None:
    fitted, others = halves(everyone)
    found = ISP(RANK).fit(fitted.vectors, fitted.identities).projection_
    cosines = np.linalg.svd(found.directions.T @ identity_basis(DIM, RANK, SEED), compute_uv=False)
    assert cosines.min() > 0.95
    assert tar(found.apply(others.vectors), others.identities) < 2 * FAR


@pytest.mark.parametrize("name", ["ridge", "lda", "plda"])
def test_an_adaptive_attacker_trained_on_erased_vectors_is_at_chance_too(
    everyone: EmbeddingSet, known: Projection, name: str
) -> None:
    probe = PROBES[name]
    mine, others = halves(everyone)
    theirs = others.identities
    with one_blas_thread():
        before = attacked(probe, mine.unit().vectors, mine.identities, others.unit().vectors, theirs)
        after = attacked(probe, known.apply(mine.vectors), mine.identities, known.apply(others.vectors), theirs)
    assert before > 0.4
    assert after < 2 * FAR


def attacked(
    probe: Probe,
    support: NDArray[np.float32],
    identities: NDArray[np.int64],
    queries: NDArray[np.float32],
    codes: NDArray[np.int64],
) -> float:
    scorer = probe.fit(Support(support, identities, 8, 0))
    space = scorer.space(probe.settings[0], queries)
    scores = space.settle(space.left.astype(np.float64) @ space.right.astype(np.float64).T)
    i, j = np.triu_indices(len(scores), 1)
    mated = codes[i] == codes[j]
    threshold = np.quantile(scores[i, j][~mated], 1 - FAR)
    return float(np.mean(scores[i, j][mated] >= threshold))


def test_what_is_released_holds_no_trace_of_what_was_removed() -> None:
    """With more identities than dimensions LEACE leaves a constant. Factors kept in float32 leave about 1e-8 of each
    vector beside it, in which people are as easy to tell apart as ever."""
    made = make_identities(120, 8, 32, between=2.0, seed=SEED)
    found = LEACE(normalise=False).fit(made.vectors, made.identities).projection_
    assert found.readers is not None
    directions, readers = found.directions.astype(np.float32), found.readers.astype(np.float32)
    careless = np.eye(32) - readers.astype(np.float64) @ directions.T.astype(np.float64)
    assert np.abs(careless).max() < 1e-6
    left = (made.vectors @ careless / np.abs(careless).max()).astype(np.float32)
    assert tar(left, made.identities) > 10 * FAR
    released = found.apply(made.vectors)
    assert (released == released[0]).all()
