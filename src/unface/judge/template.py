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

from unface.linear import LinearMap, PairSums
from unface.metrics import Resolution, allowed_accepts, resolution
from unface.pairs import Tail, cosine_space, pair_up
from unface.result.numbers import Rate
from unface.score import SPARE, Draws, Mated, Measured, Threshold, rate_at, threshold_of, thresholds

FARS = (1e-2, 1e-3, 1e-4)
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3)
"""What a map's α may be; of equally good ones the strongest wins."""
_BLOCK = 512


def picture_thresholds(
    calibrate: NDArray[np.floating],
    identities: NDArray[np.integer],
    far: Sequence[float] = FARS,
    *,
    threads: int | None = None,
) -> tuple[Threshold, ...]:
    """A recogniser's own thresholds, from its vectors of calibrate people; a FAR that they cannot resolve is left out.

    Rows without a direction show nobody; their people keep their codes, which are those of every other recogniser.
    """
    there = np.asarray(calibrate).any(axis=1)
    people = int(identities.max(initial=-1)) + 1
    if len(np.unique(identities[there])) < 2:
        return ()
    pairing = pair_up(cosine_space(np.ascontiguousarray(calibrate[there], np.float32)), identities[there])
    known = [rate for rate in far if resolution(rate, pairing.impostors) is not Resolution.REFUSED]
    return thresholds(pairing, known, people=people, threads=threads) if known else ()


def stranger_thresholds(
    templates: NDArray[np.floating],
    vectors: NDArray[np.floating],
    identities: NDArray[np.integer],
    far: Sequence[float] = FARS,
    *,
    role: str = "calibrate",
) -> tuple[Threshold, ...]:
    """Thresholds for templates that are less than pictures: template i (n, dim) is of the person of picture i.

    A template that is drawn to the mean face resembles everybody, and passes for strangers more often than pictures do.
    Here it is compared with all pictures of other people, and at most the given share of them is accepted. Templates
    and pictures without a direction are left out.
    """
    pictures, made = unit_rows(vectors).astype(np.float32), unit_rows(templates).astype(np.float32)
    rows, columns = (np.flatnonzero(np.isfinite(side).all(axis=1)) for side in (made, pictures))
    people = int(identities.max(initial=-1)) + 1
    own, others = (np.bincount(identities[side], minlength=people) for side in (rows, columns))
    strangers = len(rows) * len(columns) - int((own * others).sum())
    known = [rate for rate in far if resolution(rate, strangers) is not Resolution.REFUSED]
    if not known:
        return ()
    keep = min(SPARE * allowed_accepts(max(known), strangers) + 300, strangers)
    scores, first, second = np.empty(0, np.float32), np.empty(0, np.int64), np.empty(0, np.int64)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        compared = made[block] @ pictures[columns].T
        apart = identities[block, None] != identities[columns]
        i, j = np.nonzero(apart & (compared >= scores[-1] if len(scores) > keep else apart))
        scores = np.append(scores, compared[i, j])
        first, second = np.append(first, identities[block][i]), np.append(second, identities[columns][j])
        highest = np.argsort(-scores, kind="stable")[: keep + 1]
        scores, first, second = scores[highest], first[highest], second[highest]
    floor = float(scores[keep]) if len(scores) > keep else -math.inf
    listed = Tail(scores[:keep], first[:keep], second[:keep], np.empty((0, 2), np.int64), floor, strangers)
    # Template of one and picture of the other, and the other way round: 2 · n · m pairs of two people.
    images = np.sqrt(2.0 * own * others)
    return tuple(threshold_of(listed, images[None], rate, role) for rate in known)


@dataclass(frozen=True, eq=False)
class Tally:
    """What one judge says of templates: their scores with pictures of their person, and how often strangers pass.

    ``same``: with the very picture it was made of; ``other``: with other pictures of that person; ``stranger``
    (thresholds, people): accepted pictures of everybody else, which is what chance would accept of these templates.
    """

    thresholds: tuple[Threshold, ...]
    same: Mated
    other: Mated
    stranger: NDArray[np.int64]
    stranger_of: NDArray[np.int64]


def measured(judged: Sequence[Tally], kind: str, at: int, draws: Draws | None = None) -> Measured | None:
    """The share of "same" or "other" that judges of the same people accept; None where there is none to compare with.

    Other draws of people move both the templates that are judged and the thresholds that they are judged by.
    """
    parts = [(getattr(one, kind), one.thresholds[at]) for one in judged]
    return rate_at(parts, draws or Draws()) if sum(len(mated.scores) for mated, _ in parts) else None


def chance(judged: Sequence[Tally], at: int) -> Rate:
    """Strangers accepted."""
    return Rate.counted(
        sum(int(one.stranger[at].sum()) for one in judged), sum(int(one.stranger_of.sum()) for one in judged)
    )


def tally(
    templates: NDArray[np.floating],
    rows: NDArray[np.integer],
    vectors: NDArray[np.floating],
    identities: NDArray[np.integer],
    thresholds: Sequence[Threshold],
) -> Tally:
    """Compare each template with every picture; template i was made of picture ``rows[i]``.

    Both are (·, dim) in one space and of any length; ``identities`` (n,) are the codes 0 … k − 1 of the pictures.
    """
    pictures = unit_rows(vectors).astype(np.float32)
    people, owners = int(identities.max()) + 1, identities[rows].astype(np.int64)
    same, others, whose = list[NDArray[np.float32]](), list[NDArray[np.float32]](), list[NDArray[np.int64]]()
    stranger, strangers = np.zeros((len(thresholds), people), np.int64), np.zeros(people, np.int64)
    for start in range(0, len(templates), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores = unit_rows(templates[block]).astype(np.float32) @ pictures.T
        mine = owners[block, None] == identities
        itself = np.arange(len(scores)), rows[block]
        same.append(scores[itself])
        np.add.at(strangers, owners[block], (~mine).sum(axis=1))
        for at, one in enumerate(thresholds):
            np.add.at(stranger[at], owners[block], ((scores >= np.float32(one.cosine)) & ~mine).sum(axis=1))
        mine[itself] = False
        others.append(scores[mine])
        whose.append(owners[block][np.nonzero(mine)[0]])
    return Tally(
        tuple(thresholds),
        Mated(owners, np.concatenate(same), people),
        Mated(np.concatenate(whose), np.concatenate(others), people),
        stranger,
        strangers,
    )


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
