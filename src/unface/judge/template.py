"""Judges of templates: vectors that an attack recovered instead of a picture, accepted or rejected at a FAR.

A template lives in the space of the attacker's encoder and can be compared with pictures there. Another recogniser sees
it through a linear map between the two spaces that was learned on pictures of train people: it answers whether what was
recovered is also this person to somebody who never took part in the attack. Losses of the map count as failures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.judge.judge import Threshold, pair_thresholds
from unface.linear import LinearMap, PairSums
from unface.metrics import (
    Replicates,
    Resolution,
    Scheme,
    allowed_accepts,
    identity_weights,
    rate_interval,
    resolution,
    threshold_allowing,
)
from unface.pairs import cosine_space, pair_up
from unface.result.numbers import Rate, Share

FARS = (1e-2, 1e-3, 1e-4)
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3)
"""What a map's α may be; of equally good ones the strongest wins."""
_BLOCK = 512


def template_thresholds(
    calibrate: NDArray[np.floating],
    identities: NDArray[np.integer],
    far: Sequence[float] = FARS,
    *,
    threads: int | None = None,
) -> tuple[Threshold, ...]:
    """A recogniser's own thresholds, from its vectors of calibrate people; a FAR that they cannot resolve is left out.

    They are those for pairs of pictures: a template has to pass for a picture.
    """
    pairing = pair_up(cosine_space(np.ascontiguousarray(calibrate, np.float32)), identities)
    known = [rate for rate in far if resolution(rate, pairing.impostors) is not Resolution.REFUSED]
    return pair_thresholds(pairing, known, threads=threads)


def stranger_thresholds(
    templates: NDArray[np.floating],
    vectors: NDArray[np.floating],
    identities: NDArray[np.integer],
    far: Sequence[float] = FARS,
) -> tuple[Threshold, ...]:
    """Thresholds for templates that are less than pictures: template i (n, dim) is of the person of picture i.

    A template that is drawn to the mean face resembles everybody, and passes for strangers more often than pictures do.
    Here it is compared with all pictures of other people, and at most the given share of them is accepted.
    """
    pictures, sizes = unit_rows(vectors).astype(np.float32), np.bincount(identities)
    strangers = len(identities) ** 2 - int((sizes.astype(np.int64) ** 2).sum())
    known = [rate for rate in far if resolution(rate, strangers) is not Resolution.REFUSED]
    most = max((allowed_accepts(rate, strangers) for rate in known), default=0) + 1
    highest = np.empty(0, np.float32)
    for start in range(0, len(pictures), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores = unit_rows(templates[block]).astype(np.float32) @ pictures.T
        highest = np.append(highest, scores[identities[block, None] != identities])
        if len(highest) > most:
            highest = np.partition(highest, len(highest) - most)[-most:]
    thresholds = []
    for rate in known:
        cosine = threshold_allowing(highest, allowed_accepts(rate, strangers))
        thresholds.append(Threshold(rate, cosine, strangers, int(np.count_nonzero(highest >= np.float32(cosine)))))
    return tuple(thresholds)


@dataclass(frozen=True, eq=False)
class Tally:
    """Accepted comparisons of templates with pictures, and all of them, by the identity that a template is of.

    ``same``: the very picture it was made of; ``other``: other pictures of that person; ``stranger``: pictures of
    everybody else, which is what chance would accept of these very templates. Accepted ones are (thresholds, people).
    """

    same: NDArray[np.int64]
    same_of: NDArray[np.int64]
    other: NDArray[np.int64]
    other_of: NDArray[np.int64]
    stranger: NDArray[np.int64]
    stranger_of: NDArray[np.int64]

    def __add__(self, judged: "Tally") -> "Tally":
        """Two judges of the same templates: rates of the sum are the mean over judges."""
        return Tally(
            *(getattr(self, name) + getattr(judged, name) for name in self.__dataclass_fields__),
        )

    def rate(self, kind: str, at: int) -> float:
        """Accepted share of ``kind`` at threshold number ``at``."""
        return float(getattr(self, kind)[at].sum() / getattr(self, f"{kind}_of").sum())

    def share(self, kind: str, at: int, *, seed: int = 0, replicates: int = 2000) -> Share:
        """The same with its interval: people are resampled, thresholds are not."""
        accepted, compared = getattr(self, kind)[at], getattr(self, f"{kind}_of")
        weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, len(compared), replicates, seed, "templates")
        values = (weights @ accepted) / np.maximum(weights @ compared, np.finfo(float).tiny)
        hits, total = int(accepted.sum()), int(compared.sum())
        interval = rate_interval(hits, total, Replicates(values, mirrored=True), len(compared))
        return Share.counted(hits, total, interval, len(compared))

    def chance(self, at: int) -> Rate:
        """Strangers accepted."""
        return Rate.counted(int(self.stranger[at].sum()), int(self.stranger_of.sum()))


def tally(
    templates: NDArray[np.floating],
    rows: NDArray[np.integer],
    vectors: NDArray[np.floating],
    identities: NDArray[np.integer],
    cosines: Sequence[float],
) -> Tally:
    """Compare each template with every picture, at each cosine; template i was made of picture ``rows[i]``.

    Both are (·, dim) in one space and of any length; ``identities`` (n,) are the codes 0 … k − 1 of the pictures.
    """
    pictures = unit_rows(vectors).astype(np.float32)
    people, owners = int(identities.max()) + 1, identities[rows]
    kinds = np.zeros((3, len(cosines), people), np.int64)
    sizes = np.bincount(identities, minlength=people)
    for start in range(0, len(templates), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores = unit_rows(templates[block]).astype(np.float32) @ pictures.T
        mine = owners[block, None] == identities
        itself = np.arange(len(scores)), rows[block]
        for at, cosine in enumerate(cosines):
            accepted = scores >= np.float32(cosine)
            same = accepted[itself]
            own = (accepted & mine).sum(axis=1)
            for kind, hits in enumerate((same, own - same, accepted.sum(axis=1) - own)):
                kinds[kind, at] += np.bincount(owners[block], hits, minlength=people).astype(np.int64)
    made = np.bincount(owners, minlength=people)
    return Tally(kinds[0], made, kinds[1], made * (sizes - 1), kinds[2], made * (len(identities) - sizes))


Pictures = tuple[NDArray[np.floating], NDArray[np.floating]]
"""Vectors of the same pictures in two spaces."""


@dataclass(frozen=True, eq=False)
class Translation:
    """A linear map between two spaces; ``mean`` is that of the train pictures in the second one."""

    strength: float
    map: LinearMap
    mean: NDArray[np.float64]


def learn_translation(train: Pictures, calibrate: Pictures) -> Translation:
    """The map from the first to the second space, learned on ``train``; its strength is the best one on ``calibrate``.

    Best: the cosine of a mapped vector with the true one, in standard deviations of its cosines with all, both taken
    relative to the mean of the train pictures, so that a mean face earns nothing. Needs moments alone.
    """
    maps = PairSums(train[0].shape[1], train[1].shape[1]).add(*train).fit()
    true = unit_rows(calibrate[1] - maps.y)
    spread = true.T @ true / len(true)

    def told_apart(strength: float) -> float:
        mapped = np.nan_to_num(unit_rows(maps.at(strength)(calibrate[0]) - maps.y))
        mean = float(mapped.mean(axis=0) @ true.mean(axis=0))
        variance = float(np.einsum("ij,jk,ik->", mapped, spread, mapped, optimize=True)) / len(true) - mean**2
        return (float(np.einsum("ij,ij->i", mapped, true).mean()) - mean) / math.sqrt(max(variance, 1e-30))

    best = max(STRENGTHS, key=told_apart)
    return Translation(best, maps.at(best), maps.y)


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rows of length one; a row without a direction becomes NaN, which no judge accepts."""
    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit: NDArray[np.float64] = exact / lengths
    return unit
