"""Verification: a threshold at a false-accept rate, and how often pairs of one person reach it, each with its noise.

A threshold is itself measured, on people who are not those it judges. It keeps the impostor pairs that it came from,
and every interval draws these people anew too: taken as known, it makes nominal 95 % intervals cover 75 to 88 %.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unface.metrics import (
    ImpostorTail,
    Interval,
    Replicates,
    Resolution,
    Scheme,
    accepts_by_identity,
    allowed_accepts,
    effective_trials,
    identity_weights,
    just_above,
    paired_interval,
    rate_interval,
    resolution,
    threshold_replicates,
)
from unface.pairs import Pairing, Tail, highest_impostors, open_screen, require_room
from unface.result.numbers import Share

SPARE = 5
"""Draws go below the threshold: a tail is kept this many times as long as its rate needs, and 300 pairs longer."""
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Draws:
    """Other draws of people: one for each run, so that everything measured on the same people is paired."""

    seed: int = 0
    replicates: int = 2000
    level: float = 0.95
    scheme: Scheme = Scheme.DOUBLE_OR_NOTHING

    def weights(self, role: str, people: int) -> NDArray[np.float64]:
        """(replicates, people); the same for the same role and number of people."""
        return _weights(self.scheme, people, self.replicates, self.seed, role)

    @property
    def mirrored(self) -> bool:
        """Whether the second half of the replicates mirrors the first."""
        return self.scheme is Scheme.DOUBLE_OR_NOTHING


@lru_cache(maxsize=8)
def _weights(scheme: Scheme, people: int, replicates: int, seed: int, role: str) -> NDArray[np.float64]:
    weights = identity_weights(scheme, people, replicates, seed, role)
    weights.setflags(write=False)
    return weights


@dataclass(frozen=True, eq=False)
class Threshold:
    """The score that a pair must reach at a false-accept rate, and the impostor pairs that set it."""

    far: float
    """The target."""
    cosine: float
    """At most the target share of the impostor pairs reaches it; ties are rejected."""
    impostors: int
    false_accepts: int
    tail: ImpostorTail = field(repr=False)
    """The highest impostor scores, from below the threshold on, with the people behind them."""
    role: str = "calibrate"
    """Whose people these are: draws weigh the people of a role alike wherever they occur."""
    _drawn: dict[Draws, NDArray[np.float64]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def known(cls, far: float, cosine: float, impostors: int = 1, false_accepts: int = 0) -> "Threshold":
        """One that no draw of people moves, such as a cosine that is prescribed."""
        nobody = np.empty(0, np.int64)
        tail = ImpostorTail(np.empty(0, np.float32), nobody, nobody, np.zeros((1, 0)), cosine)
        return cls(far, cosine, impostors, false_accepts, tail)

    @property
    def achieved_far(self) -> float:
        """At most the target: the share of the impostor pairs that reaches the threshold."""
        return self.false_accepts / self.impostors

    @property
    def people(self) -> float:
        """Effective people behind the accepted impostor pairs."""
        return effective_people(self.tail, self.cosine)

    @property
    def resolution(self) -> Resolution:
        """Resolved from 30 expected false accepts of 20 effective people, coarse from 3 expected ones."""
        return resolution(self.far, self.impostors, self.people)

    def replicates(self, draws: Draws) -> NDArray[np.float64]:
        """(replicates,) the threshold that other draws of its people would have set; worked out once."""
        if not len(self.tail.scores):
            return np.full(draws.replicates, self.cosine)
        if draws not in self._drawn:
            weights = draws.weights(self.role, self.tail.images.shape[1])
            self._drawn[draws] = threshold_replicates(self.tail, self.far, weights)
        return self._drawn[draws]


def thresholds(
    strangers: Pairing,
    fars: Sequence[float],
    *,
    people: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> tuple[Threshold, ...]:
    """For each rate the lowest threshold that at most that share of the impostor pairs reaches.

    ``people`` is how many there are where some of them have no row, so that their weights stay those of everybody.
    """
    most = allowed_accepts(max(fars), strangers.impostors)
    keep = min(SPARE * most + 300, strangers.impostors)
    require_room(keep, strangers.impostors)
    listed = highest_impostors(strangers, keep, open_screen(strangers.space, device), threads=threads)
    images = np.bincount(strangers.identities, minlength=people or 0)
    return tuple(threshold_of(listed, images[None], far) for far in fars)


def threshold_of(listed: Tail, images: NDArray[np.integer], far: float, role: str = "calibrate") -> Threshold:
    """From the highest scores of ``listed.impostors`` pairs; ``images`` as ``ImpostorTail`` takes them."""
    allowed = allowed_accepts(far, listed.impostors)
    refused = listed.scores[allowed] if allowed < len(listed) else np.float32(listed.floor)
    cosine = just_above(refused)
    accepted = int(np.count_nonzero(listed.scores >= np.float32(cosine)))
    tail = ImpostorTail(listed.scores, listed.first, listed.second, images.astype(np.float64), listed.floor)
    return Threshold(far, cosine, listed.impostors, accepted, tail, role)


def effective_people(tail: ImpostorTail, threshold: float) -> float:
    """(Σc)² / Σc², c being each person's accepted impostor pairs: pairs of a few look-alikes are little evidence."""
    accepted = int(np.searchsorted(-tail.scores.astype(np.float64), -threshold, side="right"))
    if not accepted:
        return 0.0
    each = np.bincount(np.concatenate([tail.first[:accepted], tail.second[:accepted]])).astype(np.float64)
    return float(each.sum() ** 2 / (each**2).sum())


@dataclass(frozen=True, eq=False)
class Mated:
    """Scores of comparisons by the person that they are of, 0 … ``count`` − 1; NaN is a comparison that failed."""

    people: NDArray[np.int64]
    scores: NDArray[np.float32]
    count: int
    role: str = "test"

    def accepts(self, cosine: float) -> NDArray[np.int64]:
        """(count,) comparisons of each person that reach a threshold."""
        return np.bincount(self.people[self.scores >= np.float32(cosine)], minlength=self.count)

    def of(self, people: NDArray[np.bool_]) -> "Mated":
        """The comparisons of some people; the others have none."""
        kept = people[self.people]
        return Mated(self.people[kept], self.scores[kept], self.count, self.role)


@dataclass(frozen=True, eq=False)
class Measured:
    """A share of comparisons, what it was counted on, and what other draws of people would have given."""

    hits: int
    trials: int
    people: int
    """People with a comparison."""
    interval: Interval
    effective_n: float
    """Independent comparisons that would vary as much."""
    replicates: Replicates = field(repr=False)
    by_person: NDArray[np.float64] = field(repr=False)
    """What each person adds to the share."""

    @property
    def value(self) -> float:
        """The share itself."""
        return self.hits / self.trials

    @property
    def share(self) -> Share:
        """As result files have it."""
        return Share.counted(self.hits, self.trials, self.interval, self.people)

    def less(self, other: "Measured") -> tuple[float, Interval]:
        """This share less another one of the same people, with the interval of the paired replicates."""
        changes, replicates = self.by_person - other.by_person, self.replicates.less(other.replicates)
        return self.value - other.value, paired_interval(changes, replicates, self.people, self.interval.level)


def rate_at(judged: Iterable[tuple[Mated, Threshold]], draws: Draws) -> Measured:
    """The share of comparisons that reach their threshold; several judges of the same people count as one share.

    At least one comparison is needed.
    The people of a comparison are weighed by the draws of its role, and each threshold moves with those of its own.
    """
    parts = [(mated, threshold, threshold.replicates(draws)) for mated, threshold in judged]
    (count,) = {mated.count for mated, _, _ in parts}
    (role,) = {mated.role for mated, _, _ in parts}
    weights = draws.weights(role, count)
    accepted, compared = np.zeros(len(weights)), np.zeros(len(weights))
    hits, trials, present = np.zeros(count, np.int64), 0, np.zeros(count, np.int64)
    for mated, threshold, cosines in parts:
        scores = np.where(np.isnan(mated.scores), np.float32(-np.inf), mated.scores)
        each = np.bincount(mated.people, minlength=count)
        # Most scores lie above or below every draw's threshold; only the others are compared with each.
        above = scores >= np.float32(cosines.max())
        unsure = ~above & (scores >= np.float32(cosines.min()))
        accepted += weights @ np.bincount(mated.people[above], minlength=count)
        if unsure.any():
            few, codes = np.unique(mated.people[unsure], return_inverse=True)
            by_person = accepts_by_identity(codes, scores[unsure], cosines, len(few))
            accepted += np.einsum("bi,ib->b", weights[:, few], by_person)
        compared += weights @ each
        hits += np.bincount(mated.people[scores >= np.float32(threshold.cosine)], minlength=count)
        trials += len(scores)
        present += each
    people, total = int(np.count_nonzero(present)), int(hits.sum())
    # A draw that leaves out everybody with a comparison says nothing: it stays at the rate itself.
    drawn = np.divide(accepted, compared, out=np.full(len(weights), total / trials), where=compared > 0)
    replicates = Replicates(drawn, draws.mirrored)
    interval = rate_interval(total, trials, replicates, people, draws.level)
    effective = effective_trials(total / trials, replicates.variance(), people, trials)
    return Measured(total, trials, people, interval, effective, replicates, hits / trials)


def worst(tried: Iterable[_Key], elsewhere: Callable[[_Key], float]) -> _Key:
    """What does best on other people than it is reported on, so that choosing costs nothing; the first of equals."""
    return max(tried, key=elsewhere)
