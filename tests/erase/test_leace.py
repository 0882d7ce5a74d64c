"""If these fail, LEACE is not the LEACE of its authors, or erases less than it says at many identities."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from tests.erase.people import matrix_of, mean_spread, people
from unface.data import EmbeddingSet
from unface.erase import LEACE


def peer(made: EmbeddingSet, **options: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """concept-erasure's matrix, and what it makes of the vectors, in float64."""
    torch = pytest.importorskip("torch", reason="concept-erasure needs torch")
    concept_erasure = pytest.importorskip("concept_erasure", reason="concept-erasure is not installed")
    vectors = torch.from_numpy(made.vectors.astype(np.float64))
    codes = torch.from_numpy(made.identities.copy())
    fitter = concept_erasure.LeaceFitter(vectors.shape[1], len(made.names), dtype=torch.float64, **options)
    for rows in torch.arange(len(vectors)).split(1000):  # its one-hot matrix of 12,000 identities takes gigabytes
        fitter.update(vectors[rows], torch.nn.functional.one_hot(codes[rows], len(made.names)))
    return fitter.eraser.P.numpy(), fitter.eraser(vectors).numpy()


EXACT = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-9}


@pytest.mark.parametrize(("identities", "dim", "unequal"), [(5, 24, False), (12, 24, True), (20, 30, True)])
def test_matches_concept_erasure(identities: int, dim: int, unequal: bool) -> None:
    made = people(identities, 12, dim, unequal=unequal)
    found = LEACE(normalise=False).fit(made.vectors, made.identities).projection_
    matrix, erased = peer(made, **EXACT)
    assert found.rank == identities - 1
    assert matrix_of(found) == pytest.approx(matrix, abs=1e-5)
    assert found.apply(made.vectors) == pytest.approx(erased, abs=1e-5)


def test_with_more_identities_than_dimensions_everything_goes_and_the_mean_stays() -> None:
    made = people(60, 4, 16)
    found = LEACE(normalise=False).fit(made.vectors, made.identities).projection_
    assert found.rank == 16
    constant = np.broadcast_to(made.vectors.mean(axis=0, dtype=np.float64), made.vectors.shape)
    assert found.apply(made.vectors) == pytest.approx(constant, abs=1e-6)


def test_still_erases_at_twelve_thousand_identities_where_an_absolute_cut_off_erases_nothing() -> None:
    made = people(12_000, 1, 12, between=1.0)
    found = LEACE(normalise=False).fit(made.vectors, made.identities).projection_
    assert found.rank == 12
    matrix, _ = peer(made)
    assert matrix == pytest.approx(np.eye(12), abs=1e-12)


def test_with_vectors_in_a_subspace_only_that_is_touched() -> None:
    """Σ_x has no inverse here: its pseudo-inverse must not turn rounding into directions."""
    made = people(6, 10, 8)
    wide = EmbeddingSet.from_arrays(np.hstack([made.vectors, np.zeros_like(made.vectors)]), made.identities)
    found = LEACE(normalise=False).fit(wide.vectors, wide.identities).projection_
    narrow = LEACE(normalise=False).fit(made.vectors, made.identities).projection_
    assert found.rank == narrow.rank == 5
    assert matrix_of(found)[:8, :8] == pytest.approx(matrix_of(narrow), abs=1e-8)
    assert mean_spread(found.apply(wide.vectors), wide.identities) < 1e-6


def test_no_linear_classifier_does_better_than_a_constant_afterwards() -> None:
    made = people(4, 60, 12, between=1.0)
    erased = LEACE(normalise=False).fit(made.vectors, made.identities).transform(made.vectors)
    before, after = (fitted_accuracy(vectors, made.identities) for vectors in (made.vectors, erased))
    assert before > 0.9
    assert after == pytest.approx(0.25, abs=0.02)


def fitted_accuracy(vectors: NDArray[np.float32], identities: NDArray[np.int64]) -> float:
    """On the very vectors it was fitted on: LEACE's theorem is about those."""
    exact = vectors.astype(np.float64)
    return float(LogisticRegression(C=1e4, max_iter=2000).fit(exact, identities).score(exact, identities))
