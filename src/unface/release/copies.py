"""Copies: synthetic faces nearer to a training picture than real strangers are to each other, at a stated FAR.

Beside them stands what the same threshold finds in the holdout, where nothing can have been copied from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from unface.errors import UnfaceError
from unface.metrics import (
    Replicates,
    Resolution,
    Scheme,
    allowed_accepts,
    difference_interval,
    identity_weights,
    just_above,
    resolution,
    zero_bound,
)
from unface.pairs import (
    Nearest,
    Pairing,
    Screen,
    cosine_space,
    highest_impostors,
    open_screen,
    pair_up,
    ranked_impostor,
)
from unface.release.membership import Permuted, permutation_test
from unface.result.numbers import Estimate
from unface.seeds import stream

_REPLICATES = 1_000
_LISTED_AT_MOST = 4_000_000
_MOST_STRANGERS = 12_000
"""Pictures that thresholds are taken from: 7 · 10⁷ pairs of strangers, enough for FAR 1e-6."""


@dataclass(frozen=True)
class Threshold:
    """The cosine that a pair must reach, from pairs of real strangers."""

    far: float
    cosine: float
    strangers: int
    """Pairs of pictures of two people."""
    false_accepts: int
    resolution: Resolution


@dataclass(frozen=True)
class Copies:
    """At one threshold: how many synthetic faces reach a training picture, and how many a holdout picture."""

    threshold: Threshold
    synthetic: int
    training: int
    holdout: int
    expected: float
    """What the holdout leads to expect in training: the number among as many of its people as have training's number
    of pictures. A face that reaches several people is one copy, so this is not the holdout's number, scaled."""
    excess: Estimate
    """(training − expected) / synthetic faces; people are resampled for the interval."""
    permuted: Permuted
    """Of the faces that reach any real picture: are they nearest to training people more often than labels allow?"""


def stranger_thresholds(
    vectors: NDArray[np.float32],
    people: NDArray[np.int64],
    fars: Sequence[float],
    *,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
) -> list[Threshold]:
    """Thresholds at each false-accept rate over pairs of pictures of different people; coarse or resolved ones alone.

    Of a large set people are drawn at random until there are 12,000 pictures.
    """
    rows = drawn_people(people, _MOST_STRANGERS, seed)
    pairing = pair_up(cosine_space(vectors[rows]), np.unique(people[rows], return_inverse=True)[1])
    if not pairing.impostors:
        raise UnfaceError("thresholds need pictures of at least two real people; one was given")
    screen = open_screen(pairing.space, device)
    found = []
    for far in fars:
        how = resolution(far, pairing.impostors)
        if how is Resolution.REFUSED:
            continue
        cosine, accepts = _at_far(pairing, far, screen, threads)
        found.append(Threshold(far, cosine, pairing.impostors, accepts, how))
    return found


def _at_far(pairing: Pairing, far: float, screen: Screen, threads: int | None) -> tuple[float, int]:
    allowed = allowed_accepts(far, pairing.impostors)
    if allowed < _LISTED_AT_MOST:
        tail = highest_impostors(pairing, allowed + 1, screen, threads=threads)
        refused = tail.scores[allowed]
        return just_above(refused), int(np.searchsorted(-tail.scores, -refused))
    value, higher = ranked_impostor(pairing, allowed, screen, threads=threads)
    return just_above(np.float32(value)), higher


def drawn_people(people: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    """Rows of people drawn at random, whole people, until there are ``most`` pictures; all where there are fewer."""
    if len(people) <= most:
        return np.arange(len(people))
    codes, sizes = np.unique(people, return_counts=True)
    order = stream(seed, "release strangers").permutation(len(codes))
    enough = max(int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")), 2)
    return np.flatnonzero(np.isin(people, codes[order[:enough]]))


@dataclass(frozen=True, eq=False)
class Reached:
    """What the synthetic faces reach on one side, at one threshold."""

    nearest: Nearest
    """Of each synthetic face."""
    people: NDArray[np.int64]
    """Of each picture."""
    count: int
    """People in all."""
    numbers: NDArray[np.float64] | None = None
    """(faces,) people that each face reaches; NaN where nobody counted. Needed for the side with more people."""

    def hits(self, cosine: float) -> NDArray[np.int64]:
        """Faces that reach a picture."""
        return np.flatnonzero(self.nearest.scores >= cosine)

    def by_person(self, faces: NDArray[np.int64], each: NDArray[np.float64] | float = 1.0) -> NDArray[np.float64]:
        """(people,) sums over the faces that are nearest to each person."""
        weights = np.broadcast_to(each, faces.shape)
        found = np.bincount(self.people[self.nearest.rows[faces]], weights, minlength=self.count)
        return np.asarray(found, np.float64)

    def among(self, faces: NDArray[np.int64], drawn: float) -> NDArray[np.float64]:
        """(faces,) the chance that a face reaches anybody of ``drawn`` people, drawn at random from this side."""
        if self.numbers is None:
            raise ValueError("people were not counted")
        chances = reach_chance(np.maximum(self.numbers[faces], 1), self.count, drawn)
        known = np.isfinite(chances)
        return np.where(known, chances, chances[known].mean() if known.any() else min(drawn / self.count, 1))


def reach_chance(reached: NDArray[np.float64], people: int, drawn: float) -> NDArray[np.float64]:
    """1 − C(people − reached, drawn) / C(people, drawn): somebody reached is among those drawn without replacement."""
    spared = people - reached - drawn + 1  # below 1 more are drawn than are not reached
    missed = gammaln(people - reached + 1) + gammaln(people - drawn + 1)
    missed = missed - gammaln(np.maximum(spared, 1)) - gammaln(people + 1)
    return np.asarray(np.where(spared < 1, 1.0, -np.expm1(np.minimum(missed, 0))) + 0 * reached, np.float64)


def count_copies(threshold: Threshold, training: Reached, holdout: Reached, *, seed: int = 0) -> Copies:
    """Both sides are compared at as many people as the smaller one has; pictures decide which one that is."""
    synthetic, cosine = len(training.nearest), threshold.cosine
    ours, others = training.hits(cosine), holdout.hits(cosine)
    scale = len(training.people) / len(holdout.people)
    if scale * holdout.count <= holdout.count:
        by_ours, by_others = (
            training.by_person(ours),
            holdout.by_person(others, holdout.among(others, scale * holdout.count)),
        )
    else:
        # Training brought to the holdout's number of pictures, and the difference back to its own.
        fewer = training.among(ours, training.count / scale)
        by_ours, by_others = scale * training.by_person(ours, fewer), scale * holdout.by_person(others)
    weights = [
        identity_weights(Scheme.MULTINOMIAL, len(counts), _REPLICATES, seed, f"release copies {side}")
        for side, counts in (("training", by_ours), ("holdout", by_others))
    ]
    values = (weights[0] @ by_ours - weights[1] @ by_others) / synthetic
    expected = max(float(len(ours) - by_ours.sum() + by_others.sum()), 0.0)
    value = (len(ours) - expected) / synthetic
    interval = difference_interval(value, Replicates(values, mirrored=False))
    # Nothing found is not nothing there: as for any share, the bound is what would often have been missed.
    high = max(interval.high, zero_bound(synthetic)) if not len(ours) else interval.high
    better = training.nearest.scores >= holdout.nearest.scores
    best = np.where(better, training.nearest.scores, holdout.nearest.scores)
    person = np.where(
        better, training.people[training.nearest.rows], training.count + holdout.people[holdout.nearest.rows]
    )
    near = person[best >= cosine]
    counts = np.bincount(near, minlength=training.count + holdout.count)
    permuted = permutation_test(counts, training.count, int(counts[: training.count].sum()), seed=seed)
    return Copies(
        threshold,
        synthetic,
        len(ours),
        len(others),
        expected,
        Estimate(value, interval.low, max(high, value), interval.level),
        permuted,
    )
