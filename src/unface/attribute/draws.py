"""Intervals over identities: one set of draws serves every number of a set of pairs, so that differences are paired."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.attribute.result import Estimate, Share
from unface.metrics import Interval, Replicates, Scheme, identity_weights, rate_interval, zero_bound

REPLICATES = 2000
_AT_ONCE = 4_000_000  # weights, 32 MB


@dataclass(frozen=True, eq=False)
class Draws:
    """Percentile bootstrap (the ISP paper, App. D.3) over the identities of n pairs or triplets."""

    codes: NDArray[np.int64]
    """(n,): which column of the weights each pair belongs to."""
    weights: NDArray[np.float64]
    level: float

    @classmethod
    def of(cls, identities: NDArray[np.int64], seed: int, level: float) -> "Draws":
        """Draws for pairs (n,) of these identities, of which there are at least two."""
        names, codes = np.unique(identities, return_inverse=True)
        return cls(codes, identity_weights(Scheme.MULTINOMIAL, len(names), REPLICATES, seed, "attribute"), level)

    @property
    def identities(self) -> int:
        """How many there are."""
        return int(self.weights.shape[1])

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(replicates,) of the mean over pairs."""
        count = self.identities
        sums = np.bincount(self.codes, values, minlength=count)
        return np.asarray((self.weights @ sums) / (self.weights @ np.bincount(self.codes, minlength=count)))

    def mean(self, values: NDArray[np.float64]) -> Estimate:
        """Of one value for each pair."""
        return self._estimate(float(values.mean()), self.means(values))

    def share(self, hits: NDArray[np.bool_]) -> Share:
        """Of pairs that are hits; where none or all are, the interval comes from the number of identities."""
        replicates = Replicates(self.means(hits.astype(np.float64)), mirrored=False)
        count = int(np.count_nonzero(hits))
        interval = rate_interval(count, len(hits), replicates, self.identities, self.level)
        return Share(count, len(hits), self.identities, interval)

    def change(self, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Estimate:
        """How much larger the share of the second is; where no pair changed, the next identity's still may."""
        difference = after.astype(np.float64) - before
        found = self.mean(difference)
        if difference.any():
            return found
        bound = zero_bound(self.identities, self.level)
        return Estimate(found.value, Interval(-bound, bound, self.level), found.of, found.identities)

    def median(self, values: NDArray[np.float64]) -> Estimate:
        """Of one value for each pair; between the two in the middle where their number is even."""
        order = np.argsort(values, kind="stable")
        ordered, columns = values[order], self.codes[order]
        step = max(_AT_ONCE // len(values), 1)
        parts = [
            _medians(ordered, self.weights[start : start + step, columns])
            for start in range(0, len(self.weights), step)
        ]
        middle = _medians(ordered, np.ones((1, len(values))))
        return self._estimate(float(middle[0]), np.concatenate(parts))

    def interval(self, replicates: NDArray[np.float64]) -> Interval:
        """Percentiles."""
        low, high = np.quantile(replicates, [0.5 - self.level / 2, 0.5 + self.level / 2])
        return Interval(float(low), float(high), self.level)

    def _estimate(self, value: float, replicates: NDArray[np.float64]) -> Estimate:
        return Estimate(value, self.interval(replicates), len(self.codes), self.identities)


def _medians(ordered: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted medians of ascending values, for each row of whole-number weights."""
    reached = np.cumsum(weights, axis=1)
    half = reached[:, -1:] / 2
    lower, upper = (reached < half).sum(axis=1), (reached <= half).sum(axis=1)
    return np.asarray((ordered[lower] + ordered[upper]) / 2)
