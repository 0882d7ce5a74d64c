"""Could the holdout have been training? A classifier that tells the two apart says that it could not.

Another camera, crop or source moves every vector of one side. Then distances to synthetic faces differ for a reason
that has nothing to do with training, and every p-value of the release is void.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from unface.linear import PairSums
from unface.metrics.rates import ready_scores
from unface.seeds import stream

_MOST_PEOPLE, _FOLDS, _STRENGTH = 5_000, 5, 1.0
_SPREADS = 4.0
"""Standard deviations of the null above which a difference is no accident, also after cross-validation's own noise."""
_LEAST_GAP = 0.03
_SHIFT_AUC, _POWER, _NOISE = 0.6, 0.8, 1.5
"""A shift that a perfect classifier sees as this AUC is to be found so often; cross-validation makes its noise larger
than that of an AUC over independent pictures (1.1 to 1.6 times in simulation)."""


@dataclass(frozen=True)
class Exchangeability:
    """Cross-validated AUC of a linear classifier between one picture each of training and of holdout people."""

    auc: float
    limit: float
    """Above it the two sides differ by more than chance."""
    people: int
    needed: int
    """People of each side with which a shift of AUC 0.6 would be found with a chance of 0.8."""

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against it."""
        return self.auc <= self.limit


def exchangeability(
    training: NDArray[np.float32], holdout: NDArray[np.float32], *, seed: int = 0
) -> Exchangeability | None:
    """From one unit vector a person, people drawn at random; None with fewer than ten people a side."""
    rng = stream(seed, "release exchangeable")
    count = min(len(training), len(holdout), _MOST_PEOPLE)
    if count < 2 * _FOLDS:
        return None
    sides = [side[rng.permutation(len(side))[:count]].astype(np.float64) for side in (training, holdout)]
    fold = np.arange(count) % _FOLDS
    auc = []
    for held in range(_FOLDS):
        sums = PairSums(training.shape[1], 1)
        for side, label in zip(sides, (1.0, -1.0), strict=True):
            sums.add(side[fold != held], np.full((int(np.count_nonzero(fold != held)), 1), label))
        model = sums.fit().at(_STRENGTH)
        ours, others = (ready_scores(model(side[fold == held])[:, 0], "classifier") for side in sides)
        others = np.sort(others)
        ranks = np.searchsorted(others, ours, side="left") + np.searchsorted(others, ours, side="right")
        auc.append(float(ranks.mean()) / 2 / len(others))
    return Exchangeability(float(np.mean(auc)), _limit(count), count, people_needed(_directions(sides)))


def people_needed(directions: float) -> int:
    """The fewest people of each side with which a shift of AUC 0.6 is found four times in five.

    All pictures of one side are moved by one vector, among Gaussian people that vary alike in so many directions. A
    difference of means over n people a side points at the shift δ with an AUC of Φ(δ² / √(2δ² + 4 · directions / n)).
    """
    shift = 2 * float(ndtri(_SHIFT_AUC)) ** 2  # δ²

    def found(count: int) -> bool:
        learned = count * (_FOLDS - 1) / _FOLDS
        auc = float(ndtr(shift / math.sqrt(2 * shift + 4 * directions / learned)))
        return auc - _limit(count) >= float(ndtri(_POWER)) * _NOISE * _spread(count)

    low, high = 2 * _FOLDS, 4 * _FOLDS
    while not found(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _spread(count: int) -> float:
    """The standard deviation of an AUC over so many people a side who do not differ (Mann–Whitney)."""
    return math.sqrt((2 * count + 1) / (12 * count * count))


def _limit(count: int) -> float:
    return 0.5 + max(_SPREADS * _spread(count), _LEAST_GAP)


def _directions(sides: list[NDArray[np.float64]]) -> float:
    """In how many directions pictures vary: (Σλ)² / Σλ² over the eigenvalues of their covariance."""
    apart = np.concatenate([side - side.mean(axis=0) for side in sides])
    covariance = apart.T @ apart
    return float(np.trace(covariance) ** 2 / max(float((covariance * covariance).sum()), np.finfo(float).tiny))
