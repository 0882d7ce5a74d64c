"""If these fail, D_sys is not the measure that ISO/IEC 24745 names, or its stated bias is not the one it has."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from unface.metrics.unlinkability import binned, dsys, null_bias, score_bins
from unface.seeds import stream


def estimated(mated: NDArray[np.float64], impostor: NDArray[np.float64]) -> float:
    edges = score_bins(mated.astype(np.float32))
    counts = [np.bincount(binned(edges, s.astype(np.float32)), minlength=len(edges) + 1) for s in (mated, impostor)]
    return float(dsys(counts[0].astype(float), counts[1].astype(float)))


def law(apart: float, spread: float) -> float:
    """Of N(apart, spread²) against N(0, 1), by numerical integration."""
    mated, impostor = stats.norm(apart, spread), stats.norm(0, 1)

    def linkable(s: float) -> float:
        p, q = mated.pdf(s), impostor.pdf(s)
        return float(p * max(0.0, p - q) / (p + q)) if p + q > 0 else 0.0

    value, _ = integrate.quad(linkable, apart - 12 * spread, apart + 12 * spread, limit=800)
    return float(value)


@pytest.mark.parametrize(("apart", "spread"), [(0.5, 1.0), (1.0, 1.0), (2.0, 0.7), (0.0, 2.0)])
def test_two_gaussians_are_as_linkable_as_the_integral_says(apart: float, spread: float) -> None:
    rng = stream(1, "dsys")
    mated, impostor = rng.normal(apart, spread, 40_000), rng.normal(0, 1, 400_000)
    assert estimated(mated, impostor) == pytest.approx(law(apart, spread), abs=0.012)
    assert abs(estimated(mated, impostor) - law(1.15 * apart, 1.1 * spread)) > 0.012


def test_scores_that_are_apart_are_fully_linkable() -> None:
    rng = stream(2, "dsys")
    assert estimated(rng.normal(30, 1, 2_000), rng.normal(0, 1, 50_000)) == pytest.approx(1)


@pytest.mark.parametrize("count", [500, 5_000])
def test_equal_distributions_leave_the_stated_bias_and_no_more(count: int) -> None:
    found, bins = [], 0
    for draw in range(40):
        rng = stream(draw, "dsys null", count)
        mated = rng.normal(size=count)
        bins = len(score_bins(mated.astype(np.float32)))
        # edges of other scores: those of the same ones hold equally many of them by construction
        edges = score_bins(rng.normal(size=count).astype(np.float32))
        shares = [
            np.bincount(binned(edges, s.astype(np.float32)), minlength=bins + 1)
            for s in (mated, rng.normal(size=20 * count))
        ]
        found.append(float(dsys(shares[0].astype(float), shares[1].astype(float))))
    assert np.mean(found) == pytest.approx(null_bias(count, bins), rel=0.15)


def test_weights_give_a_row_of_values() -> None:
    counts = np.array([[1.0, 2, 3], [3, 2, 1]])
    values = dsys(counts, np.array([[1.0, 2, 3], [1, 2, 3]]))
    assert values[0] == 0
    assert values[1] == pytest.approx(0.5 * (0.5 - 1 / 6) / (0.5 + 1 / 6))
