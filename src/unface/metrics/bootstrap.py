"""Bootstrap over identities, not pairs: weights on test identities for TAR, on calibrate identities for thresholds.

No score is computed again: the listed tail of impostor scores gives each replicate its threshold, the mated scores
give it each identity's accepts there. The same weights serve every probe, k and space, so differences are paired.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from unface.metrics.rates import just_above
from unface.seeds import stream

_CHUNK = 32


class Scheme(StrEnum):
    """How identities are reweighted; see docs/statistics.md for the coverage of each."""

    DOUBLE_OR_NOTHING = "double-or-nothing"
    MULTINOMIAL = "multinomial"


def identity_weights(scheme: Scheme, identities: int, replicates: int, seed: int, role: str) -> NDArray[np.float64]:
    """(replicates, identities) weights of mean 1 and variance about 1, from a stream named after the role.

    Double-or-nothing weights come in mirrored halves: what the first half doubles, the second leaves out. A draw that
    leaves fewer than two identities has no impostor pair and is drawn again.
    """
    rng = stream(seed, "bootstrap", scheme, role)
    if scheme is Scheme.MULTINOMIAL:
        even = np.full(identities, 1 / identities)
        return _with_pairs(lambda count: rng.multinomial(identities, even, size=count).astype(np.float64), replicates)
    half = _with_pairs(lambda count: rng.choice((0.0, 2.0), size=(count, identities)), replicates // 2, mirrored=True)
    return np.vstack([half, 2 - half])


def _with_pairs(
    draw: Callable[[int], NDArray[np.float64]], count: int, *, mirrored: bool = False
) -> NDArray[np.float64]:
    weights = draw(count)
    while weights.shape[1] > 3:  # with three or fewer, mirrors that both have a pair do not exist
        alive = np.count_nonzero(weights, axis=1)
        poor = (alive < 2) | (mirrored & (alive > weights.shape[1] - 2))
        if not poor.any():
            break
        weights[poor] = draw(int(np.count_nonzero(poor)))
    return weights


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


def threshold_replicates(tail: ImpostorTail, far: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The threshold of each replicate: the smallest whose weighted accepts are at most far × the weighted pairs."""
    if not len(tail.scores):
        return np.full(len(weights), just_above(np.float32(tail.floor)))
    budget = far * tail.pairs(weights) * (1 + 1e-12)
    chunk, spent = _exhausting_chunk(tail, weights, budget)
    # Inside its chunk each replicate goes pair by pair; one that outlasts the list is cut off at the floor.
    at = chunk[:, None] * _CHUNK + np.arange(_CHUNK)
    inside = at < len(tail.scores)
    at = np.minimum(at, len(tail.scores) - 1)
    replicate = np.arange(len(weights))[:, None]
    products = weights[replicate, tail.first[at]] * weights[replicate, tail.second[at]]
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
