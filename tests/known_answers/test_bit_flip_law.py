"""If this fails, ties at the threshold are not all rejected: where scores are few and tied, rates come out wrong.

Identities are random corners of a cube with d sides, images flip each coordinate with probability p. The number of
coordinates that differ is Binomial(d, ½) for impostors and Binomial(d, 2p(1 − p)) for mated pairs: every score is tied
with thousands of others, and TAR(f) = P(mated ≤ h) with h the largest number for which P(impostor ≤ h) ≤ f.
"""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from unface import verify
from unface.seeds import stream

DIMENSION, FLIP, IDENTITIES, IMAGES, DRAWS = 40, 0.12, 400, 3, 16
# well between the shares that d = 40 allows, so that no draw's own share crosses them
FARS = (2e-3, 5e-3, 1.5e-2)


@pytest.mark.parametrize("score", ["l2", "cosine"])
def test_tar_and_threshold_are_those_of_the_law(score: str) -> None:
    for position, far in enumerate(FARS):
        differing = largest_allowed(far)
        expected = stats.binom(DIMENSION, 2 * FLIP * (1 - FLIP)).cdf(differing)
        values = np.array([draw[position][0] for draw in estimated(score)])
        error = values.std(ddof=1) / np.sqrt(DRAWS)
        assert abs(values.mean() - expected) < stats.t(DRAWS - 1).ppf(1 - 0.001 / 12) * error
        # one tie more or less is far outside that error
        for wrong in (differing - 1, differing + 1):
            tied = stats.binom(DIMENSION, 2 * FLIP * (1 - FLIP)).cdf(wrong)
            assert abs(values.mean() - tied) > 10 * error


@pytest.mark.parametrize("score", ["l2", "cosine"])
def test_achieved_rates_stay_below_the_target_by_the_whole_tie(score: str) -> None:
    for position, far in enumerate(FARS):
        share = stats.binom(DIMENSION, 0.5).cdf(largest_allowed(far))
        achieved = [draw[position][1] for draw in estimated(score)]
        assert max(achieved) <= far
        assert np.mean(achieved) == pytest.approx(share, rel=0.1)


def test_both_scores_order_the_pairs_of_a_cube_alike() -> None:
    assert estimated("l2") == estimated("cosine")


def largest_allowed(far: float) -> int:
    return int(np.flatnonzero(stats.binom(DIMENSION, 0.5).cdf(np.arange(DIMENSION)) <= far)[-1])


@cache
def estimated(score: str) -> list[list[tuple[float, float]]]:
    """(TAR, achieved FAR) at each rate, of independent draws."""
    found = [verify(*people(draw), far=FARS, score=score).at for draw in range(DRAWS)]
    return [[(at[far].value, at[far].achieved_far) for far in FARS] for at in found]


def people(draw: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = stream(draw, "bit-flip law")
    corners = rng.choice([-1.0, 1.0], size=(IDENTITIES, 1, DIMENSION))
    flips = np.where(rng.random((IDENTITIES, IMAGES, DIMENSION)) < FLIP, -1.0, 1.0)
    return (corners * flips).reshape(-1, DIMENSION), np.repeat(np.arange(IDENTITIES), IMAGES)
