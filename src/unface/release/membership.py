"""Is a synthetic face nearest to a training person more often than to a holdout person? An exact permutation test.

Under the null a person's label, training or holdout, says nothing about how near synthetic faces come. So the share in
training is compared with what all ways to choose that many of the people as training would give.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Replicates, Scheme, identity_weights, rate_interval
from unface.result.numbers import Share
from unface.seeds import stream

PERMUTATIONS = 9_999
_MOST_CELLS = 400_000_000
_REPLICATES = 1_000


@dataclass(frozen=True)
class Permuted:
    """A one-sided p-value, and how its null distribution was had."""

    p: float
    exact: bool
    permutations: int | None
    """None where the distribution is exact."""


@dataclass(frozen=True)
class Membership:
    """Share of synthetic faces whose nearest real person is in training, beside what labels without meaning give."""

    share: Share
    null: float
    permuted: Permuted


def measure_membership(nearest: NDArray[np.int64], training: int, holdout: int, *, seed: int = 0) -> Membership:
    """``nearest`` is the person nearest to each synthetic face: 0 … training − 1, then the holdout people."""
    people = training + holdout
    counts = np.bincount(nearest, minlength=people)
    inside = int(counts[:training].sum())
    weights = identity_weights(Scheme.MULTINOMIAL, people, _REPLICATES, seed, "release membership")
    total = weights @ counts
    values = np.divide(
        weights[:, :training] @ counts[:training],
        total,
        out=np.full(len(total), inside / len(nearest)),
        where=total > 0,
    )
    seen = max(int(np.count_nonzero(counts)), 1)
    interval = rate_interval(inside, len(nearest), Replicates(values, mirrored=False), seen)
    share = Share.counted(inside, len(nearest), interval, people)
    return Membership(share, training / people, permutation_test(counts, training, inside, seed=seed))


def permutation_test(counts: NDArray[np.int64], training: int, observed: int, *, seed: int = 0) -> Permuted:
    """P(Σ counts over ``training`` people chosen at random ≥ ``observed``); counts are by person, (people,).

    Exact where the distribution can be computed; otherwise (b + 1) / (m + 1) over m random labellings.
    """
    chosen = counts[counts > 0]
    cells = len(chosen) * (min(len(chosen), training) + 1) * (int(chosen.sum()) + 1)
    if cells <= _MOST_CELLS:
        return Permuted(_exact_tail(counts, training, observed), True, None)
    rng = stream(seed, "release permutation")
    reached = 0
    for start in range(0, PERMUTATIONS, 500):
        order = rng.random((min(500, PERMUTATIONS - start), len(counts)))
        labels = np.argpartition(order, training - 1, axis=1)[:, :training]
        reached += int(np.count_nonzero(counts[labels].sum(axis=1) >= observed))
    return Permuted((reached + 1) / (PERMUTATIONS + 1), False, PERMUTATIONS)


def _exact_tail(counts: NDArray[np.int64], training: int, observed: int) -> float:
    """The upper tail of a sum over a random subset of fixed size.

    Labels drawn independently with probability training / people are, given their total, uniform over all subsets of
    that size. So the joint distribution of (number chosen, sum) is built up person by person, and conditioned.
    """
    from scipy.stats import binom, hypergeom

    people = len(counts)
    weights = np.sort(counts[counts > 0])
    if not len(weights) or training >= people:
        return 1.0
    if weights[-1] == 1:  # every face has a person of its own: hypergeometric
        return float(hypergeom.sf(observed - 1, people, training, len(weights)))
    rate = training / people
    most = min(len(weights), training)
    joint = np.zeros((most + 1, int(weights.sum()) + 1))
    joint[0, 0] = 1.0
    reach = 0
    for number, weight in enumerate(weights.tolist()):
        top = min(number, most - 1)
        moved = joint[: top + 1, : reach + 1] * rate
        joint *= 1 - rate
        joint[1 : top + 2, weight : weight + reach + 1] += moved
        reach += weight
    others = binom.pmf(training - np.arange(most + 1), people - len(weights), rate)
    tail = float((joint[:, observed:].sum(axis=1) * others).sum() / binom.pmf(training, people, rate))
    return min(max(tail, 0.0), 1.0)
