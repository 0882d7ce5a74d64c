"""Bootstrap over identities, not pairs: weights on test identities for TAR, on calibrate identities for thresholds.

No score is computed again: the listed tail of impostor scores gives each replicate its threshold, the mated scores
give it each identity's accepts there. The same weights serve every probe, k and space, so differences are paired.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from unface.metrics.rates import just_above
from unface.seeds import stream

_CHUNK = 128


class Scheme(StrEnum):
    """How identities are reweighted; see docs/statistics.md for the coverage of each."""

    DOUBLE_OR_NOTHING = "double-or-nothing"
    MULTINOMIAL = "multinomial"


def identity_weights(scheme: Scheme, identities: int, replicates: int, seed: int, role: str) -> NDArray[np.float64]:
    """(replicates, identities) weights of mean 1 and variance about 1, from a stream named after the role."""
    rng = stream(seed, "bootstrap", scheme, role)
    if scheme is Scheme.MULTINOMIAL:
        return rng.multinomial(identities, np.full(identities, 1 / identities), size=replicates).astype(np.float64)
    return rng.choice((0.0, 2.0), size=(replicates, identities))


@dataclass(frozen=True, eq=False)
class ImpostorTail:
    """The highest impostor scores, falling, with the identities of both sides as columns of the weights.

    ``images`` is (seeds, identities): how many images each identity has in each set of pairs that was pooled, or any
    numbers whose products are the numbers of pairs between two identities.
    """

    scores: NDArray[np.float32]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    images: NDArray[np.int64] | NDArray[np.float64]
    floor: float

    def pairs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ w_i w_j over all impostor pairs, listed or not, for each row of weights."""
        total = np.zeros(len(weights))
        for images in self.images:
            weighted = weights * images
            total += (weighted.sum(axis=1) ** 2 - (weighted**2).sum(axis=1)) / 2
        return total


def threshold_replicates(
    tail: ImpostorTail, far: float, allowed: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The threshold of each replicate: the smallest whose weighted accepts are at most far × the weighted pairs."""
    if not len(tail.scores):
        return np.full(len(weights), just_above(np.float32(tail.floor)))
    tempered = 1 + np.sqrt(tempering(tail, far, allowed)) * (weights - 1)
    budget = far * tail.pairs(tempered) * (1 + 1e-12)
    chunk, spent = _exhausting_chunk(tail, tempered, budget)
    # Inside its chunk each replicate goes pair by pair; one that outlasts the list is cut off at the floor.
    at = chunk[:, None] * _CHUNK + np.arange(_CHUNK)
    inside = at < len(tail.scores)
    at = np.minimum(at, len(tail.scores) - 1)
    replicate = np.arange(len(weights))[:, None]
    products = tempered[replicate, tail.first[at]] * tempered[replicate, tail.second[at]]
    affordable = (spent[:, None] + np.cumsum(products, axis=1) <= budget[:, None]) & inside
    refused = np.append(tail.scores, np.float32(tail.floor))[chunk * _CHUNK + affordable.sum(axis=1)]
    return np.asarray(np.nextafter(refused, np.float32(np.inf)), dtype=np.float64)


def _exhausting_chunk(
    tail: ImpostorTail, weights: NDArray[np.float64], budget: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each replicate, the chunk of the tail in which its budget runs out, and what was spent before that chunk."""
    by_identity = np.ascontiguousarray(weights.T)
    chunk, spent = np.zeros(len(weights), np.int64), np.zeros(len(weights))
    for number, start in enumerate(range(0, len(tail.scores), _CHUNK)):
        part = slice(start, start + _CHUNK)
        after = spent + np.einsum("tb,tb->b", by_identity[tail.first[part]], by_identity[tail.second[part]])
        running = (after <= budget) & (chunk == number)
        if not running.any() or start + _CHUNK >= len(tail.scores):
            break
        chunk[running] += 1
        spent[running] = after[running]
    return chunk, spent


def tempering(tail: ImpostorTail, far: float, allowed: int) -> float:
    """Variance to give the calibrate weights so that their products spread as the accepts really do to first order.

    An impostor pair belongs to two identities. With weights of variance 1 the product w_i w_j counts the noise of the
    pair itself once more than its two identities do; where few pairs are accepted that is most of the noise. Solves
    v·A + v²·P = A with A the identities' and P the pairs' sum of squares; v → 1 where identities dominate.
    """
    identities = tail.images.shape[1]
    first, second = tail.first[:allowed], tail.second[:allowed]
    per_identity = np.bincount(first, minlength=identities) + np.bincount(second, minlength=identities)
    per_pair = np.unique(np.minimum(first, second) * identities + np.maximum(first, second), return_counts=True)
    pairs_of_identity = (tail.images * (tail.images.sum(axis=1, keepdims=True) - tail.images)).sum(axis=0)
    by_identity = float(((per_identity - far * pairs_of_identity) ** 2).sum())
    expected = far * _pairs_between(tail.images, per_pair[0] // identities, per_pair[0] % identities)
    unseen = far**2 * _sum_of_squared_pairs(tail.images) - float((expected**2).sum())
    by_pair = float(((per_pair[1] - expected) ** 2).sum()) + max(unseen, 0.0)
    if by_pair == 0 or by_identity == 0:
        return 1.0
    ratio = by_identity / by_pair
    return float((np.sqrt(ratio**2 + 4 * ratio) - ratio) / 2)


def tar_replicates(
    identities: NDArray[np.int64],
    scores: NDArray[np.float32],
    thresholds: NDArray[np.float64],
    weights: NDArray[np.float64],
    pair_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """TAR of each replicate at its own threshold: Σ w_i a_i / Σ w_i n_i."""
    count = weights.shape[1]
    pairs = np.bincount(identities, pair_weights, minlength=count)
    accepted = accepts_by_identity(identities, scores, thresholds, count, pair_weights)
    share = np.einsum("bi,ib->b", weights, accepted) / np.maximum(weights @ pairs, np.finfo(float).tiny)
    return np.asarray(share)


def accepts_by_identity(
    identities: NDArray[np.int64],
    scores: NDArray[np.float32],
    thresholds: NDArray[np.float64],
    count: int,
    pair_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """(identities, thresholds): how many of each identity's scores reach each threshold, or their weights' sum."""
    distinct, back = np.unique(thresholds, return_inverse=True)
    reached = np.searchsorted(distinct, scores.astype(np.float64), side="right")
    cells = np.bincount(
        identities * (len(distinct) + 1) + reached, pair_weights, minlength=count * (len(distinct) + 1)
    ).reshape(count, len(distinct) + 1)
    at_least = np.cumsum(cells[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return np.asarray(at_least[:, back], dtype=np.float64)


def _pairs_between(
    images: NDArray[np.int64] | NDArray[np.float64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    return np.asarray((images[:, first].astype(np.float64) * images[:, second]).sum(axis=0))


def _sum_of_squared_pairs(images: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Σ over identity pairs of (image pairs between them)²."""
    counts = images.astype(np.float64)
    return float(((counts @ counts.T) ** 2).sum() - ((counts**2).sum(axis=0) ** 2).sum()) / 2
