"""Copies: synthetic faces nearer to a training picture than real strangers are to each other, at a stated FAR.

Beside them stands what the same threshold finds in the holdout, where nothing can have been copied from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """What the holdout leads to expect in training: its number, scaled to as many pictures as training has."""
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


def count_copies(
    threshold: Threshold,
    training: tuple[Nearest, NDArray[np.int64], int],
    holdout: tuple[Nearest, NDArray[np.int64], int],
    *,
    seed: int = 0,
) -> Copies:
    """Each side is (nearest picture of each synthetic face, person of each picture, number of people)."""
    synthetic = len(training[0])
    hits = []
    for nearest, people, count in (training, holdout):
        reached = np.flatnonzero(nearest.scores >= threshold.cosine)
        hits.append(np.bincount(people[nearest.rows[reached]], minlength=count))
    (ours, others), scale = hits, len(training[1]) / len(holdout[1])
    expected = float(others.sum() * scale)
    weights = [
        identity_weights(Scheme.MULTINOMIAL, len(counts), _REPLICATES, seed, f"release copies {side}")
        for side, counts in zip(("training", "holdout"), hits, strict=True)
    ]
    values = (weights[0] @ ours - scale * (weights[1] @ others)) / synthetic
    value = float((ours.sum() - expected) / synthetic)
    interval = difference_interval(value, Replicates(values, mirrored=False))
    # Nothing found is not nothing there: as for any share, the bound is what would often have been missed.
    high = max(interval.high, zero_bound(synthetic)) if not ours.sum() else interval.high
    better = training[0].scores >= holdout[0].scores
    best = np.where(better, training[0].scores, holdout[0].scores)
    person = np.where(better, training[1][training[0].rows], training[2] + holdout[1][holdout[0].rows])
    near = person[best >= threshold.cosine]
    counts = np.bincount(near, minlength=training[2] + holdout[2])
    permuted = permutation_test(counts, training[2], int(counts[: training[2]].sum()), seed=seed)
    return Copies(
        threshold,
        synthetic,
        int(ours.sum()),
        int(others.sum()),
        expected,
        Estimate(value, interval.low, max(high, value), interval.level),
        permuted,
    )
