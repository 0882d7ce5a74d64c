"""Is a synthetic face nearest to a training person more often than to a holdout person? An exact permutation test.

Under the null a person's label, training or holdout, says nothing about how near synthetic faces come. So the share in
training is compared with what all ways to choose as many of the people as training would give.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Replicates, Scheme, identity_weights, rate_interval
from unface.release.draws import over_draws
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


def measure_membership(
    nearest: NDArray[np.int64],
    training: int,
    holdout: int,
    *,
    alike: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Membership:
    """``nearest`` is the person nearest to each face, (faces,) or (draws, faces): training people, then holdout people.

    ``alike`` says of each person with whom they may be exchanged; everybody with everybody where it is left out.
    """
    draws, people = np.atleast_2d(nearest), training + holdout
    counts = np.stack([np.bincount(draw, minlength=people) for draw in draws])
    total = counts.sum(axis=0)
    inside, faces = int(total[:training].sum()), draws.size
    ours, others = (  # as many people of each side as there are: these numbers were chosen, and not drawn
        identity_weights(Scheme.MULTINOMIAL, len(side), _REPLICATES, seed, f"release membership {name}") @ side
        for name, side in (("training", total[:training]), ("holdout", total[training:]))
    )
    weighed = ours + others
    values = np.divide(ours, weighed, out=np.full(len(weighed), inside / faces), where=weighed > 0)
    seen = max(int(np.count_nonzero(total)), 1)
    interval = rate_interval(inside / len(draws), faces / len(draws), Replicates(values, mirrored=False), seen)
    share = Share.counted(inside, faces, interval, people)
    tests = [permutation_test(draw, training, int(draw[:training].sum()), alike=alike, seed=seed) for draw in counts]
    null = float(total @ training_rates(training, people, alike)) / faces
    return Membership(share, null, of_draws(tests))


def of_draws(tests: list[Permuted]) -> Permuted:
    """The test of several draws."""
    exact = all(test.exact for test in tests)
    return Permuted(over_draws([test.p for test in tests]), exact, None if exact else PERMUTATIONS)


def training_rates(training: int, people: int, alike: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """(people,) the chance of each to be a training person, where labels mean nothing."""
    if alike is None:
        return np.full(people, training / people)
    groups = np.unique(alike, return_inverse=True)[1]
    inside = np.bincount(groups[:training], minlength=int(groups.max()) + 1)
    return np.asarray((inside / np.bincount(groups))[groups])


def permutation_test(
    counts: NDArray[np.int64],
    training: int,
    observed: int,
    *,
    alike: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Permuted:
    """P(Σ counts over people chosen at random ≥ ``observed``); counts are by person, the training people first.

    As many are chosen as there are training people, from each group of people who are ``alike``. Exact where the
    distribution can be computed; otherwise (b + 1) / (m + 1) over m random labellings.
    """
    alike = np.zeros(len(counts), np.int64) if alike is None else alike
    inside = np.arange(len(counts)) < training
    groups = [alike == group for group in np.unique(alike)]
    cells = 0
    for group in groups:
        chosen = counts[group & (counts > 0)]
        cells += len(chosen) * (min(len(chosen), int(inside[group].sum())) + 1) * (int(chosen.sum()) + 1)
    if cells <= _MOST_CELLS:
        tail = np.ones(1)
        for group in groups:
            tail = np.convolve(tail, _distribution(counts[group], int(inside[group].sum())))
        return Permuted(min(float(tail[observed:].sum()), 1.0), True, None)
    rng = stream(seed, "release permutation")
    touched, reached = np.flatnonzero(counts), 0
    for start in range(0, PERMUTATIONS, 500):
        labels = random_labels(rng, touched, inside, alike, min(500, PERMUTATIONS - start))
        reached += int(np.count_nonzero(labels @ counts[touched] >= observed))
    return Permuted((reached + 1) / (PERMUTATIONS + 1), False, PERMUTATIONS)


def random_labels(
    rng: np.random.Generator,
    people: NDArray[np.int64],
    inside: NDArray[np.bool_],
    alike: NDArray[np.int64],
    times: int,
) -> NDArray[np.bool_]:
    """(times, people) who of these people is in training, when labels are dealt anew among people who are alike.

    Only these people are dealt to: how many labels they get is hypergeometric, whoever gets the others.
    """
    labels = np.zeros((times, len(people)), bool)
    for group in np.unique(alike[people]).tolist():
        here, whole = np.flatnonzero(alike[people] == group), alike == group
        ours = int(inside[whole].sum())
        number = rng.hypergeometric(ours, int(whole.sum()) - ours, len(here), times)
        keys = rng.random((times, len(here)))
        highest = np.concatenate([np.full((times, 1), -1.0), np.sort(keys, axis=1)], axis=1)
        labels[:, here] = keys <= np.take_along_axis(highest, number[:, None], axis=1)
    return labels


def _distribution(counts: NDArray[np.int64], training: int) -> NDArray[np.float64]:
    """(1 + Σ counts,) the chance of each sum over a random subset of fixed size.

    Labels drawn independently with probability training / people are, given their total, uniform over all subsets of
    that size. So the joint distribution of (number chosen, sum) is built up person by person, and conditioned.
    """
    from scipy.stats import binom, hypergeom

    people = len(counts)
    weights = np.sort(counts[counts > 0])
    total = int(weights.sum())
    if not len(weights) or training in (0, people):
        return np.asarray(np.arange(total + 1) == (total if training else 0), np.float64)
    if weights[-1] == 1:  # every face has a person of its own: hypergeometric
        return np.asarray(hypergeom.pmf(np.arange(total + 1), people, training, len(weights)))
    rate = training / people
    most = min(len(weights), training)
    joint = np.zeros((most + 1, total + 1))
    joint[0, 0] = 1.0
    reach = 0
    for number, weight in enumerate(weights.tolist()):
        top = min(number, most - 1)
        moved = joint[: top + 1, : reach + 1] * rate
        joint *= 1 - rate
        joint[1 : top + 2, weight : weight + reach + 1] += moved
        reach += weight
    others = binom.pmf(training - np.arange(most + 1), people - len(weights), rate)
    return np.asarray(others @ joint / binom.pmf(training, people, rate))
