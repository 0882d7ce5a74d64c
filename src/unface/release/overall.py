"""The one test behind "Do not publish": are training people special in any way that was looked at?

A list at a false-discovery rate of 5 % names somebody in one clean set in twenty, and several tests at 1 % each reject
more than 1 % of them. Here every question counts something for each person: faces that are nearest to them, faces that
copy them, how near the nearest face is. The strongest answer is compared with the strongest answer when
the labels training and holdout are dealt anew, to all questions alike. So the level holds however the questions depend
on each other, and however synthetic faces cluster: faces stay with the person they are near to.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri

from unface.release.membership import PERMUTATIONS, Permuted, random_labels, training_rates
from unface.seeds import stream

FEWEST_PERMUTATIONS, _MOST_KEYS = 1_999, 200_000_000
_POWERS = (1, 2, 4)


def nearness(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """(4, people) how far each person is above the middle.

    In robust standard deviations, to the power of 1, 2 and 4: the first asks about everybody, the last about the few
    who stand out, however many they are. The fourth is the square of what the person's rank would be worth among
    Gaussian scores, for scores with tails so heavy that few people outweigh all others.
    """
    from scipy.stats import rankdata

    above = scores.astype(np.float64) - np.median(scores)
    spread = float(np.median(np.abs(above)))
    if spread <= 0:  # more than half of the people are equal
        spread = float(np.abs(above).max()) or 1.0
    above = np.maximum(above / spread, 0)
    ranks = ndtri((rankdata(scores) - 0.5) / len(scores))
    return np.stack([*(above**power for power in _POWERS), np.maximum(ranks, 0) ** 2])


def overall_test(
    counts: NDArray[np.float64],
    training: int,
    alike: NDArray[np.int64],
    *,
    seed: int = 0,
    draw: int = 0,
    times: int = PERMUTATIONS,
) -> Permuted:
    """``counts`` are (questions, people), the training people first; labels are dealt ``times`` times at most."""
    people = counts.shape[1]
    inside, rates = np.arange(people) < training, training_rates(training, people, alike)
    counts = counts[(counts * (rates * (1 - rates) > 0)).any(axis=1)]
    touched = np.flatnonzero((counts > 0).any(axis=0))
    if not len(touched):
        return Permuted(1.0, False, times)
    times = int(np.clip(_MOST_KEYS // len(touched), FEWEST_PERMUTATIONS, times))
    rng = stream(seed, "release overall", draw)
    shares, trials = (counts @ rates) / counts.sum(axis=1), _trials(counts, rates, alike)
    strongest = float(_tails(counts @ inside / counts.sum(axis=1), shares, trials).min())
    # The share from which on a question answers as strongly as the strongest one did, by bisection.
    low, high = np.zeros(len(counts)), np.where(_tails(np.ones(len(counts)), shares, trials) > strongest, np.inf, 1.0)
    for _ in range(50):
        middle = (low + np.minimum(high, 1)) / 2
        above = _tails(middle, shares, trials) > strongest
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    reached = 0
    for start in range(0, times, 500):
        labels = random_labels(rng, touched, inside, alike, min(500, times - start))
        dealt = labels @ counts[:, touched].T / counts.sum(axis=1)
        reached += int(np.count_nonzero((dealt >= high - 1e-9).any(axis=1)))
    return Permuted((reached + 1) / (times + 1), False, times)


def _trials(counts: NDArray[np.float64], rates: NDArray[np.float64], alike: NDArray[np.int64]) -> NDArray[np.float64]:
    """(questions,) independent trials whose share of successes varies as the share in training does by chance."""
    variance = np.zeros(len(counts))
    for group in np.unique(alike).tolist():
        here = alike == group
        rate = float(rates[here][0])
        if here.sum() > 1:
            # A sum over some of a group, drawn without replacement.
            variance += rate * (1 - rate) * here.sum() * counts[:, here].var(axis=1, ddof=1)
    total = counts.sum(axis=1)
    shares = (counts @ rates) / total
    return np.asarray(shares * (1 - shares) * total**2 / np.maximum(variance, 1e-12 * total**2))


def _tails(found: NDArray[np.float64], shares: NDArray[np.float64], trials: NDArray[np.float64]) -> NDArray[np.float64]:
    """(questions,) binomial tails: a yardstick by which questions are compared, and no p-value yet."""
    successes = np.maximum(found * trials, 1e-9)
    return np.asarray(betainc(successes, np.maximum(trials - successes, 0) + 1, shares))
