"""Copies: synthetic faces nearer to a training picture than real strangers are to each other, at a stated FAR.

Beside them stands what the same threshold finds in the holdout, where nothing can have been copied from.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri

from unface.errors import UnfaceError
from unface.metrics import (
    Resolution,
    allowed_accepts,
    just_above,
    resolution,
    wilson,
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
from unface.release.cluster import CLUSTER_FAR, linked
from unface.release.faces import Faces
from unface.release.membership import Permuted, of_draws, permutation_test
from unface.result.numbers import Estimate, Interval, Share
from unface.seeds import stream

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


def stranger_cosine(
    vectors: NDArray[np.float32], people: NDArray[np.int64], *, seed: int = 0, threads: int | None = None
) -> float:
    """The cosine from which two synthetic faces are one person: one pair of real strangers in a million is nearer."""
    rows = drawn_people(people, _MOST_STRANGERS, seed)
    pairing = pair_up(cosine_space(vectors[rows]), np.unique(people[rows], return_inverse=True)[1])
    return _at_far(pairing, CLUSTER_FAR, open_screen(pairing.space, "cpu"), threads)[0]


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
class SyntheticPeople:
    """Who is who among the synthetic faces: faces of one person are copies together, and are one witness."""

    rows: NDArray[np.int64]
    """Faces that were looked at: all, or as many as can be compared with each other."""
    codes: NDArray[np.int64]
    """(rows,) the person of each."""
    faces: int

    @classmethod
    def each(cls, faces: int) -> "SyntheticPeople":
        """Every face stands for itself."""
        return cls(np.arange(faces), np.arange(faces), faces)

    @property
    def count(self) -> int:
        """People among the faces that were looked at."""
        return len(np.unique(self.codes))

    def variance(self, values: NDArray[np.float64]) -> float:
        """Of the mean of ``values`` (faces,), when people are drawn anew and not faces."""
        seen = values[self.rows].astype(np.float64)
        apart = seen - seen.mean()
        single = float(apart @ apart)
        if single <= 0:
            return 0.0
        people = np.bincount(self.codes, apart)
        grouped = float(people @ people) / single * self.count / max(self.count - 1, 1) * (len(seen) - 1) / len(seen)
        return single / len(seen) / self.faces * self._whole(grouped)

    def worth(self, hits: NDArray[np.bool_]) -> float:
        """How many independent faces would vary as much as this share does; where none or all are hit, the people."""
        share = float(hits.mean())
        variance = self.variance(hits.astype(np.float64))
        if variance > 0:
            return min(share * (1 - share) / variance, float(self.faces))
        sizes = np.bincount(self.codes).astype(np.float64)
        return self.faces / self._whole(float(sizes @ sizes) / len(self.rows))

    def unseen(self) -> float:
        """The largest share of people that is often not drawn at all, whatever single faces of others were found."""
        return zero_bound(max(int(self.worth(np.zeros(self.faces, bool))), 1))

    def _whole(self, grouped: float) -> float:
        """By how much groups widen the variance over all faces: a sample sees fewer faces of each person."""
        return max(1 + (grouped - 1) * self.faces / len(self.rows), 1.0)


def synthetic_people(
    faces: Faces, cosine: float, *, seed: int = 0, device: str = "cpu", threads: int | None = None
) -> SyntheticPeople:
    """As the rows name them; otherwise faces that are nearer than strangers are count as one person.

    Of a large set faces are drawn at random until there are 12,000.
    """
    if faces.labelled:
        return SyntheticPeople(np.arange(len(faces)), np.unique(faces.people, return_inverse=True)[1], len(faces))
    rows = np.sort(stream(seed, "release synthetic people").permutation(len(faces))[:_MOST_STRANGERS])
    return SyntheticPeople(rows, linked(faces.take(rows), cosine, device, threads), len(faces))


@dataclass(frozen=True, eq=False)
class Reached:
    """What the synthetic faces reach on one side, of as many pictures of each person as the other side has."""

    nearest: Nearest
    """Of each synthetic face, among the drawn pictures."""
    people: NDArray[np.int64]
    """Of each picture."""
    alike: NDArray[np.int64]
    """(people,) drawn pictures of each person: people are compared with people of as many."""
    numbers: NDArray[np.float64] | None = None
    """(faces, groups of people who are alike, rising) people that each face reaches; NaN where nobody counted."""

    def hits(self, cosine: float) -> NDArray[np.int64]:
        """Faces that reach a drawn picture."""
        return np.flatnonzero(self.nearest.scores >= cosine)

    def among(self, faces: NDArray[np.int64], drawn: Mapping[int, int]) -> NDArray[np.float64]:
        """(faces,) the chance that a face reaches anybody of so many people of each group, drawn at random."""
        groups, sizes = np.unique(self.alike, return_counts=True)
        some = [drawn.get(group, 0) for group in groups.tolist()]
        if not len(faces) or all(number == size for number, size in zip(some, sizes.tolist(), strict=True)):
            return np.ones(len(faces))
        if self.numbers is None:
            raise ValueError("people were not counted")
        missed = np.ones(len(faces))
        for column, (number, size) in enumerate(zip(some, sizes.tolist(), strict=True)):
            missed *= 1 - reach_chance(self.numbers[faces, column], size, number)
        chances = 1 - missed
        known = np.isfinite(chances)
        return np.where(known, chances, chances[known].mean() if known.any() else sum(some) / len(self.alike))


def reach_chance(reached: NDArray[np.float64], people: int, drawn: float) -> NDArray[np.float64]:
    """1 − C(people − reached, drawn) / C(people, drawn): somebody reached is among those drawn without replacement."""
    spared = people - reached - drawn + 1  # below 1 more are drawn than are not reached
    missed = gammaln(people - reached + 1) + gammaln(people - drawn + 1)
    missed = missed - gammaln(np.maximum(spared, 1)) - gammaln(people + 1)
    return np.asarray(np.where(spared < 1, 1.0, -np.expm1(np.minimum(missed, 0))) + 0 * reached, np.float64)


def as_many_people(training: NDArray[np.int64], holdout: NDArray[np.int64]) -> dict[int, int]:
    """By drawn pictures: how many people of each side are compared, those of the smaller side."""
    ours, others = (dict(zip(*np.unique(side, return_counts=True), strict=True)) for side in (training, holdout))
    return {int(group): int(min(number, others[group])) for group, number in ours.items() if group in others}


def count_copies(
    threshold: Threshold,
    near: tuple[Nearest, Nearest],
    draws: Sequence[tuple[Reached, Reached]],
    same: SyntheticPeople | None = None,
    *,
    seed: int = 0,
) -> Copies:
    """``near`` are the nearest of all training and of all holdout pictures.

    In each draw both sides are compared at as many people with as many pictures. What is left of the copies then is
    brought back to all of them by their ratio.
    """
    synthetic, cosine = len(near[0]), threshold.cosine
    same = SyntheticPeople.each(synthetic) if same is None else same
    copied = near[0].scores >= cosine
    of_faces, by_person, tests = np.zeros((2, synthetic)), [], []
    for sides in draws:
        drawn = as_many_people(sides[0].alike, sides[1].alike)
        for number, side in enumerate(sides):
            faces = side.hits(cosine)
            chances = side.among(faces, drawn)
            of_faces[number, faces] += chances / len(draws)
            owners = side.people[side.nearest.rows[faces]]
            by_person.append(np.bincount(owners, chances, minlength=len(side.alike)) / len(draws))
        tests.append(_nearest_copied(sides, cosine, seed))
    fewer, others = of_faces.sum(axis=1)
    scale = float(copied.sum() / fewer) if fewer > 0 else 1.0
    expected = float(scale * others)
    value = (int(copied.sum()) - expected) / synthetic
    # Real people and synthetic people are two ways to see the same faces fall in groups: the wider one decides.
    by_side = (np.sum(by_person[side::2], axis=0) for side in (0, 1))
    real = sum(float(counts @ counts) - float(counts.sum()) ** 2 / len(counts) for counts in by_side)
    variance = max(scale**2 * real / synthetic**2, same.variance(scale * (of_faces[0] - of_faces[1])))
    half = float(ndtri(0.975)) * math.sqrt(variance)
    high = value + max(half, same.unseen())
    if not copied.any():  # nothing found is not nothing there
        high = max(high, same.unseen())
    return Copies(
        threshold,
        synthetic,
        int(copied.sum()),
        int(np.count_nonzero(near[1].scores >= cosine)),
        expected,
        Estimate(value, value - half, max(high, value), 0.95),
        of_draws(tests),
    )


def copied_people(sides: tuple[Reached, Reached], cosine: float) -> NDArray[np.int64]:
    """(training and then holdout people,) faces that reach a picture, by the person whom they are nearest to."""
    ours, others = sides
    better = ours.nearest.scores >= others.nearest.scores
    person = np.where(better, ours.people[ours.nearest.rows], len(ours.alike) + others.people[others.nearest.rows])
    near = np.where(better, ours.nearest.scores, others.nearest.scores) >= cosine
    return np.bincount(person[near], minlength=len(ours.alike) + len(others.alike))


def _nearest_copied(sides: tuple[Reached, Reached], cosine: float, seed: int) -> Permuted:
    counts, training = copied_people(sides, cosine), len(sides[0].alike)
    alike = np.concatenate([side.alike for side in sides])
    return permutation_test(counts, training, int(counts[:training].sum()), alike=alike, seed=seed)


def share_of_copies(found: Copies, copied: NDArray[np.bool_], same: SyntheticPeople) -> Share:
    """Of the synthetic faces; synthetic people are resampled, as all faces of one are copies or none."""
    interval, trials = Interval(0.0, same.unseen(), 0.95), same.worth(copied)
    if found.training:
        interval = wilson(found.training / found.synthetic * trials, trials)
        interval = replace(interval, high=max(interval.high, same.unseen()))
    return Share.counted(found.training, found.synthetic, interval, same.count)
