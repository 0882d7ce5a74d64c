"""If these fail, the probe that should be optimal for Gaussian people is not their likelihood ratio."""

import numpy as np
import pytest
from scipy import linalg, stats

from tests.probe.small import gaussian_support, score_matrix, support_of
from unface.data import make_identities
from unface.moments import class_moments
from unface.probe import PROBES
from unface.probe.plda import llr_space
from unface.seeds import stream

plda = PROBES["plda"]


def log_ratio(a: object, b: object, within: object, between: object) -> float:
    """log p(a, b | one person) − log p(a, b | two), on the full 2d × 2d covariances."""
    w, s = np.asarray(within), np.asarray(between)
    pair = np.concatenate([np.asarray(a), np.asarray(b)])
    one = np.block([[w + s, s], [s, w + s]])
    two = linalg.block_diag(w + s, w + s)
    origin = np.zeros(len(pair))
    same, different = (stats.multivariate_normal(origin, covariance) for covariance in (one, two))
    return float(same.logpdf(pair) - different.logpdf(pair))


@pytest.mark.parametrize("between", [[0.5, 2.0, 0.1], [4.0, 0.0, 1.0], [30.0, 0.01, 0.3]], ids=str)
def test_scores_are_log_likelihood_ratios_up_to_one_constant(between: list[float]) -> None:
    psi = np.array(between)
    vectors = (stream(1, "llr").normal(size=(9, 3)) * np.sqrt(1 + psi)).astype(np.float32)
    found = score_matrix(llr_space(vectors, psi))
    expected = np.array([[log_ratio(a, b, np.eye(3), np.diag(psi)) for b in vectors] for a in vectors])
    gap = found - expected
    assert np.ptp(gap) < 1e-5 * np.abs(expected).max()
    # the constant is that of the two determinants: ½ Σ log((1 + ψ)² / (1 + 2ψ)) less
    assert gap.mean() == pytest.approx(-0.5 * np.log((1 + psi) ** 2 / (1 + 2 * psi)).sum(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("shrinkage", [setting["shrinkage"] for setting in plda.settings])
def test_the_fitted_probe_scores_by_the_moments_of_its_support(shrinkage: float) -> None:
    """Σ_w shrunk, Σ_b = cov(class means) − Σ_w / k with negative parts cut off, here in raw coordinates."""
    k, dim = 4, 3
    support = gaussian_support(12, k, dim, between=0.6)
    moments = class_moments(support.vectors, support.identities)
    within = moments.within_covariance()
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / dim * np.eye(dim)
    values, axes = linalg.eigh(np.cov(moments.means.T), within)
    back = np.linalg.inv(axes)
    between = back.T @ np.diag(np.maximum(values - 1 / k, 0)) @ back
    centred = stream(2, "queries").normal(size=(8, dim))
    expected = np.array([[log_ratio(a, b, within, between) for b in centred] for a in centred])
    queries = (centred + moments.means.mean(axis=0)).astype(np.float32)
    gap = score_matrix(plda.fit(support).space({"shrinkage": shrinkage}, queries)) - expected
    assert np.ptp(gap) < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("k", [2, 5])
def test_a_large_support_finds_the_true_ratio_of_between_to_within(k: int) -> None:
    """4,000 identities: the ratio's relative error is about √(2 / 4000) · (1 + 1 / kψ), 3 to 4 %, in each direction."""
    between, within = 1.2, 0.8
    made = make_identities(4000, k, 3, between=between, within=within, seed=4)
    support = support_of(made.vectors, 4000, k)
    psi = support.fisher.basis(0.0).spread - 1 / k
    assert psi == pytest.approx([(between / within) ** 2] * 3, rel=0.1)
    assert psi.mean() == pytest.approx((between / within) ** 2, rel=0.06)


def test_identities_that_do_not_differ_score_nothing_but_stay_finite() -> None:
    """k copies of pure noise: the means spread by Σ_w / k alone, so ψ is 0 or little more, and no score is extreme."""
    support = gaussian_support(400, 4, 3, between=0.0)
    scores = score_matrix(plda.fit(support).space({"shrinkage": 0.05}, support.vectors[:50]))
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() < 1
