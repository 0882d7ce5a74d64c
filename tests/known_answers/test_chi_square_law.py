"""If this fails, verification is biased: it does not find the rates that a Gaussian model of identity must have.

Images are z = μ + ε with μ ~ N(0, σ_b² I_d) for each identity and ε ~ N(0, σ_w² I_d). Squared distances of mated pairs
are 2 σ_w² χ²_d, those of impostors 2 (σ_b² + σ_w²) χ²_d, so TAR(f) = F_d((1 + σ_b²/σ_w²) F_d⁻¹(f)).
"""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from unface import verify
from unface.metrics import Resolution, resolution
from unface.seeds import stream

FARS = (1e-2, 1e-3, 1e-4)
DRAWS = 24
# (dimension, σ_b/σ_w, identities, images of each): 8 to 10 million impostor pairs in each draw
SETTINGS = [(8, 1.5, 1500, 3), (32, 0.8, 2000, 2), (96, 0.5, 1000, 4)]
EACH = pytest.mark.parametrize("setting", SETTINGS, ids=["d=8", "d=32", "d=96"])
Setting = tuple[int, float, int, int]


@EACH
def test_tar_is_that_of_the_law_at_every_rate(setting: Setting) -> None:
    dimension, ratio, *_ = setting
    assert np.abs(distance_in_errors(setting, law(dimension, ratio))).max() < allowed_errors()


@EACH
def test_a_ratio_three_per_cent_off_would_be_noticed(setting: Setting) -> None:
    dimension, ratio, *_ = setting
    for wrong in (0.97 * ratio, 1.03 * ratio):
        assert np.abs(distance_in_errors(setting, law(dimension, wrong))).max() > allowed_errors()


@EACH
def test_a_threshold_that_let_a_fifth_more_through_would_be_noticed(setting: Setting) -> None:
    dimension, ratio, *_ = setting
    wrong = law(dimension, ratio, far=1.2 * np.array(FARS))
    assert np.abs(distance_in_errors(setting, wrong)).max() > allowed_errors()


@EACH
def test_every_rate_is_resolved_and_used_up(setting: Setting) -> None:
    _, _, identities, images = setting
    impostors = identities * (identities - 1) // 2 * images**2
    assert resolution(min(FARS), impostors) is Resolution.RESOLVED
    found = verify(*people(setting, 0), far=FARS, score="l2").at
    assert [found[far].impostors for far in FARS] == [impostors] * 3
    # continuous scores have next to no ties, so what is allowed is also accepted
    assert [found[far].achieved_far for far in FARS] == pytest.approx(FARS, rel=5e-3)


def law(dimension: int, ratio: float, far: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    chi_square = stats.chi2(dimension)
    return np.asarray(chi_square.cdf((1 + ratio**2) * chi_square.ppf(np.array(FARS) if far is None else far)))


def distance_in_errors(setting: Setting, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many standard errors the mean over the draws lies from what is expected, for each rate.

    Pairs of one draw share identities, so the error comes from the spread between draws, not from the number of pairs.
    """
    estimates = estimated(setting)
    return np.asarray((estimates.mean(axis=0) - expected) / (estimates.std(axis=0, ddof=1) / np.sqrt(DRAWS)))


def allowed_errors() -> float:
    """Student's quantile for one false alarm in a thousand over all rates and settings."""
    return float(stats.t(DRAWS - 1).ppf(1 - 0.001 / (2 * len(FARS) * len(SETTINGS))))


@cache
def estimated(setting: Setting) -> NDArray[np.float64]:
    """(draws, rates) TAR of independent draws."""
    found = [verify(*people(setting, draw), far=FARS, score="l2").at for draw in range(DRAWS)]
    return np.array([[at[far].value for far in FARS] for at in found])


def people(setting: Setting, draw: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    dimension, ratio, identities, images = setting
    rng = stream(draw, "chi-square law", dimension)
    means = ratio * rng.normal(size=(identities, 1, dimension))
    vectors = means + rng.normal(size=(identities, images, dimension))
    return vectors.reshape(-1, dimension), np.repeat(np.arange(identities), images)
