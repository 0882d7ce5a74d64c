"""Could the holdout have been training? A classifier that tells the two apart says that it could not.

Another camera, crop or source moves every vector of one side. Then distances to synthetic faces differ for a reason
that has nothing to do with training, and every p-value of the release is void.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.linear import PairSums
from unface.metrics.rates import ready_scores
from unface.seeds import stream

_MOST_PEOPLE, _FOLDS, _STRENGTH = 2_000, 5, 1.0
_SPREADS = 4.0
"""Standard deviations of the null above which a difference is no accident, also after cross-validation's own noise."""
_LEAST_GAP = 0.03


@dataclass(frozen=True)
class Exchangeability:
    """Cross-validated AUC of a linear classifier between one picture each of training and of holdout people."""

    auc: float
    limit: float
    """Above it the two sides differ by more than chance."""
    people: int

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
    spread = math.sqrt((2 * count + 1) / (12 * count * count))
    return Exchangeability(float(np.mean(auc)), 0.5 + max(_SPREADS * spread, _LEAST_GAP), count)
