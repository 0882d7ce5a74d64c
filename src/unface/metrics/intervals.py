"""Intervals for a rate: Wilson's, at the number of independent trials that the identities are really worth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high`` with a nominal coverage of ``level``."""

    low: float
    high: float
    level: float


def wilson(successes: float, trials: float, level: float = 0.95) -> Interval:
    """Wilson's score interval for ``successes`` of ``trials`` independent trials (either may be fractional)."""
    z = float(ndtri(0.5 + level / 2))
    rate, pull = successes / trials, z * z / trials
    centre = (rate + pull / 2) / (1 + pull)
    half = z * math.sqrt(max(rate * (1 - rate), 0) / trials + z * z / (4 * trials * trials)) / (1 + pull)
    return Interval(max(centre - half, 0.0), min(centre + half, 1.0), level)


def zero_bound(identities: int, level: float = 0.95) -> float:
    """The largest rate that still gives no accept in ``identities`` trials with probability 1 − level: about 3/n."""
    return float(1 - (1 - level) ** (1 / identities))


def effective_trials(rate: float, replicates: NDArray[np.float64], identities: int, pairs: int) -> float:
    """How many independent trials would spread as much as the replicates do; between identities' worth and pairs."""
    variance = float(replicates.var())
    if variance == 0 or not 0 < rate < 1:
        return float(identities)
    return min(rate * (1 - rate) / variance, float(pairs))


def rate_interval(
    accepted: float, mated: float, replicates: NDArray[np.float64], identities: int, level: float = 0.95
) -> Interval:
    """Interval of a rate from its bootstrap replicates, or from the identities where none or all were accepted."""
    if accepted <= 0:
        return Interval(0.0, max(zero_bound(identities, level), _quantile(replicates, level)), level)
    if accepted >= mated:
        return Interval(min(1 - zero_bound(identities, level), 1 - _quantile(1 - replicates, level)), 1.0, level)
    rate = accepted / mated
    centre = float(np.clip(replicates.mean(), 1 / (2 * mated), 1 - 1 / (2 * mated)))
    trials = effective_trials(centre, replicates, identities, math.ceil(mated))
    interval = wilson(centre * trials, trials, level)
    return Interval(min(interval.low, rate), max(interval.high, rate), level)


def difference_interval(before: NDArray[np.float64], after: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Interval of after − before from replicates drawn with the same weights on both sides."""
    low, high = np.quantile(after - before, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def _quantile(replicates: NDArray[np.float64], level: float) -> float:
    return float(np.quantile(replicates, 0.5 + level / 2))
