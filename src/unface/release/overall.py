"""The one test behind "Do not publish": are training people special in any way that was looked at?

A list at a false-discovery rate of 5 % names somebody in one clean set in twenty, and several tests at 1 % each reject
more than 1 % of them. Here every question counts something for each person: faces that are nearest to them, faces that
copy them, how near the nearest face is. Answers of one kind are added up, as one copied person shows in several of
them, and the strongest kind is compared with the strongest one when the labels training and holdout are dealt anew, to
all questions alike. So the level holds however the questions depend on each other, and however synthetic faces cluster:
faces stay with the person they are near to.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri

from unface.release.membership import PERMUTATIONS, Permuted, random_labels, training_rates
from unface.seeds import stream

FEWEST_PERMUTATIONS, _MOST_KEYS = 1_999, 200_000_000
_POWERS = (1, 2, 4)
_SHARES = np.linspace(0, 1, 2_001)


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
    kinds: Sequence[NDArray[np.float64]],
    training: int,
    alike: NDArray[np.int64],
    *,
    seed: int = 0,
    draw: int = 0,
    times: int = PERMUTATIONS,
) -> Permuted:
    """``kinds`` are (questions, people), the training people first; labels are dealt ``times`` times at most."""
    inside, rates = np.arange(len(alike)) < training, training_rates(training, len(alike), alike)
    open_labels = rates * (1 - rates) > 0
    kinds = [counts[(counts[:, open_labels] > 0).any(axis=1)] for counts in kinds]
    kinds = [counts for counts in kinds if len(counts)]
    if not kinds:
        return Permuted(1.0, False, times)
    touched = np.flatnonzero((np.concatenate(kinds) > 0).any(axis=0))
    times = int(np.clip(_MOST_KEYS // len(touched), FEWEST_PERMUTATIONS, times))
    tables = [_tails(counts, rates, alike) for counts in kinds]
    rng = stream(seed, "release overall", draw)
    found = [_evidence(inside[touched][None], kinds, tables, touched)]
    for start in range(0, times, 500):
        labels = random_labels(rng, touched, inside, alike, min(500, times - start))
        found.append(_evidence(labels, kinds, tables, touched))
    evidence = np.concatenate(found)
    ranks = [len(one) - np.searchsorted(np.sort(one), one, side="left") for one in evidence.T]  # 1 is the strongest
    strongest = np.min(ranks, axis=0)
    return Permuted(float((strongest <= strongest[0]).mean()), False, times)


def _evidence(
    labels: NDArray[np.bool_],
    kinds: Sequence[NDArray[np.float64]],
    tables: Sequence[NDArray[np.float64]],
    touched: NDArray[np.int64],
) -> NDArray[np.float64]:
    """(labellings, kinds) Σ −log of the binomial tails; rounded, so that equal labels are equally strong."""
    made = np.zeros((len(labels), len(kinds)))
    for column, (counts, table) in enumerate(zip(kinds, tables, strict=True)):
        shares = labels @ counts[:, touched].T / counts.sum(axis=1)
        for question, values in enumerate(table):
            made[:, column] += np.interp(shares[:, question], _SHARES, values)
    return np.round(made, 9)


def _tails(counts: NDArray[np.float64], rates: NDArray[np.float64], alike: NDArray[np.int64]) -> NDArray[np.float64]:
    """(questions, shares) −log of the binomial tail at each share in training: a yardstick, and no p-value yet."""
    shares, trials = (counts @ rates / counts.sum(axis=1))[:, None], _trials(counts, rates, alike)[:, None]
    successes = np.maximum(_SHARES * trials, 1e-9)
    tails = betainc(successes, np.maximum(trials - successes, 0) + 1, shares)
    return np.asarray(-np.log(np.maximum(tails, 1e-300)))


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
