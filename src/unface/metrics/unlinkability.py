"""D_sys, the global unlinkability measure of ISO/IEC 24745 (Gomez-Barrero et al. 2018), with ω = 1.

D(s) = max(0, (LR − 1)/(LR + 1)) with LR = p(s | mated)/p(s | impostor), and D_sys is its mean over mated scores: 0
where the two distributions are the same (unlinkable), 1 where they are apart (every pair is linkable). It looks at all
scores, so it says little of the low false-accept rates at which people are searched for; TAR does.

Estimator: densities are shares in bins that hold equally many mated scores, so that each bin is known equally well. D
is never negative, so noise does not average out: of n mated scores in B bins about √(B / (8πn)) is left where there is
nothing to find (``null_bias``). With B = ⌈n^(1/3)⌉, at most 100, that is 0.009 of 10,000 scores and 0.02 of 1,000.
Scores of one person depend on each other and count as fewer.
"""

import math

import numpy as np
from numpy.typing import NDArray

_MOST_BINS = 100


def score_bins(mated: NDArray[np.float32]) -> NDArray[np.float64]:
    """Lower edges of bins that hold equally many mated scores; below the first there are none. Ties share a bin."""
    bins = min(_MOST_BINS, max(2, math.ceil(len(mated) ** (1 / 3))))
    return np.unique(np.quantile(mated.astype(np.float64), np.arange(bins) / bins))


def binned(edges: NDArray[np.float64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """The bin of each score, 0 for those below all mated scores."""
    return np.searchsorted(edges, scores.astype(np.float64), side="right").astype(np.int64)


def dsys(mated: NDArray[np.float64], impostor: NDArray[np.float64]) -> NDArray[np.float64]:
    """D_sys of counts or weights in the same bins; the last axis is that of the bins."""
    p, q = (part / np.maximum(part.sum(axis=-1, keepdims=True), np.finfo(float).tiny) for part in (mated, impostor))
    linkable = np.maximum(p - q, 0) / np.maximum(p + q, np.finfo(float).tiny)
    return np.asarray((p * linkable).sum(axis=-1))


def null_bias(mated: int, bins: int) -> float:
    """What is expected of ``mated`` independent scores that have the impostors' own distribution."""
    # p − q has a standard deviation of √(1/(B n)) in a bin of share 1/B; half of the normal's mean modulus, over 2/B.
    return min(1.0, math.sqrt(bins / (8 * math.pi * mated)))
