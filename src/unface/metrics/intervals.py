"""Intervals for a rate: Wilson's, at the number of independent trials that the identities are really worth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from unface.result.numbers import Interval, wilson_ends, zero_bound

_SHARE = 1 / 3


def wilson(successes: float, trials: float, level: float = 0.95) -> Interval:
    """Wilson's score interval for ``successes`` of ``trials`` independent trials (either may be fractional)."""
    low, high = wilson_ends(successes / trials, trials, float(ndtri(0.5 + level / 2)))
    return Interval(max(low, 0.0), min(high, 1.0), level)


@dataclass(frozen=True, eq=False)
class Replicates:
    """What other draws of identities would have given; ``mirrored`` if the second half mirrors the first."""

    values: NDArray[np.float64]
    mirrored: bool

    def variance(self) -> float:
        """The variance to first order in the weights: the half-differences of mirrored replicates.

        An impostor pair belongs to two identities, so a product of two weights also carries a term of second order,
        which has no counterpart in the estimate's own noise. It is the same in both mirrors and cancels here.
        """
        if not self.mirrored:
            return float(self.values.var())
        first, second = self._halves()
        return float((((first - second) / 2) ** 2).mean())

    def second_order(self) -> float:
        """The variance of what both mirrors share."""
        if not self.mirrored:
            return 0.0
        first, second = self._halves()
        return float(((first + second) / 2).var())

    def less(self, other: "Replicates") -> "Replicates":
        """Replicates of a difference; both sides were drawn with the same weights."""
        return Replicates(self.values - other.values, self.mirrored)

    def _halves(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        half = len(self.values) // 2
        return self.values[:half], self.values[half:]


def effective_trials(rate: float, variance: float, identities: int, pairs: int) -> float:
    """How many independent trials would vary as much; at most the pairs, and the identities where nothing varies."""
    of_one = rate * (1 - rate)
    # Replicates that all are 0.3 still spread by rounding, as if they were worth 1e32 trials.
    if of_one <= 0 or variance <= 1e-20 * of_one:
        return float(identities)
    return min(of_one / variance, float(pairs))


def rate_interval(
    accepted: float, mated: float, replicates: Replicates, identities: int, level: float = 0.95
) -> Interval:
    """Wilson's interval at the effective number of trials; from the identities where none or all were accepted."""
    if accepted <= 0:
        return Interval(0.0, max(zero_bound(identities, level), _quantile(replicates.values, level)), level)
    if accepted >= mated:
        return Interval(min(1 - zero_bound(identities, level), 1 - _quantile(1 - replicates.values, level)), 1.0, level)
    rate = accepted / mated
    # The replicates' mean and not the rate itself: near 0 or 1 it has seen what the few accepts or rejects hide.
    centre = float(np.clip(replicates.values.mean(), 1 / (2 * mated), 1 - 1 / (2 * mated)))
    trials = effective_trials(centre, replicates.variance(), identities, math.ceil(mated))
    interval = wilson(centre * trials, trials, level)
    return Interval(min(interval.low, rate), max(interval.high, rate), level)


def difference_interval(estimate: float, replicates: Replicates, level: float = 0.95) -> Interval:
    """Interval of a difference between two rates measured on the same identities.

    What two measurements share cancels in their difference, and the noise of single impostor pairs is left, which the
    first order counts twice. Taking off a third of the second order is what covers in simulation (docs/statistics.md).
    """
    first = replicates.variance()
    variance = max(first - _SHARE * replicates.second_order(), first / 2)
    half = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
    return Interval(estimate - half, estimate + half, level)


def paired_interval(changes: NDArray[np.float64], replicates: Replicates, people: int, level: float = 0.95) -> Interval:
    """Interval of a difference between two rates of the same people, given what each of them adds to it.

    With few of them behind it the normal interval is too short, since its variance is itself a count of a few. As in
    Wilson's interval, z²/2 people who change as those did are added to it, and its middle moves by as many times 1 − 2p
    away from zero, p being the share of people who changed; from a half of them on it stays. Where nobody changed, the
    next one may, as often as ``zero_bound`` says.
    """
    estimate, total = float(changes.sum()), float(np.abs(changes).sum())
    normal = difference_interval(estimate, replicates, level)
    half = (normal.high - normal.low) / 2
    if not total:
        half = max(half, zero_bound(people, level))
        return Interval(estimate - half, estimate + half, level)
    squares = float((changes**2).sum())
    added = float(ndtri(0.5 + level / 2)) ** 2 / 2 * squares / total
    away = added * max(1 - 2 * total**2 / (squares * people), 0.0)
    half = math.hypot(half, added)
    low, high = estimate - half - away * (estimate < 0), estimate + half + away * (estimate > 0)
    return Interval(max(low, -1.0), min(high, 1.0), level)


def _quantile(replicates: NDArray[np.float64], level: float) -> float:
    return float(np.quantile(replicates, 0.5 + level / 2))
