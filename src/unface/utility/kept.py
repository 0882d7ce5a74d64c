"""What is kept of a measure: its value before and after erasure and the share retained, each with an interval."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from unface.errors import UnfaceError
from unface.metrics import effective_trials, wilson, zero_bound
from unface.result.numbers import Estimate, Kept
from unface.utility.tasks import Outcome

# Shares are of order one; what differs by less does not differ.
_ROUNDING = 1e-12


def kept(before: Outcome, after: Outcome, level: float = 0.95) -> Kept:
    """Compare the outcomes of one task in the raw space and after erasure."""
    ours, theirs = ((one.measure, one.on, len(one.per_query)) for one in (before, after))
    if ours != theirs:
        raise UnfaceError(
            f"kept: {ours[0]} on {ours[1]} with {ours[2]} queries cannot be compared with"
            f" {theirs[0]} on {theirs[1]} with {theirs[2]}; take both from one task"
        )
    if len(np.unique(before.groups)) < 2:
        raise UnfaceError(
            f"{before.on}: all {ours[2]} queries of {before.measure} are of one identity, or copies of one picture;"
            " an interval needs at least two"
        )
    if not before.value > 0:
        raise UnfaceError(
            f"{before.on}: the raw vectors get none of {ours[2]} queries of {before.measure} right, so nothing can be"
            " retained; check its labels or leave it out"
        )
    return Kept(
        before.measure,
        before.on,
        len(before.per_query),
        raw=_share(before, level),
        erased=_share(after, level),
        retained=_retained(before, after, level),
    )


def _share(outcome: Outcome, level: float) -> Estimate:
    """Wilson's interval at as many independent queries as would vary as much."""
    value = min(max(outcome.value, 0.0), 1.0)
    variance = _variance_of_mean(outcome.per_query, outcome.groups)
    groups = len(np.unique(outcome.groups))
    # No cap at the number of queries: shares vary less than hits and misses, and are worth more of these.
    trials = effective_trials(value, variance, groups, pairs=2**53)
    interval = wilson(value * trials, trials, level)
    return Estimate(value, min(interval.low, value), max(interval.high, value), level)


def _retained(before: Outcome, after: Outcome, level: float) -> Estimate:
    """The ratio of two means over the same queries; the interval is of first order, so what both share cancels."""
    raw = before.value
    ratio = after.value / raw
    variance = _variance_of_mean((after.per_query - ratio * before.per_query) / raw, before.groups)
    half = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
    if not half:
        # No query changed, or none is left; the next one still may differ.
        half = zero_bound(len(np.unique(before.groups)), level) / raw
    return Estimate(ratio, max(ratio - half, 0.0), ratio + half, level)


def _variance_of_mean(per_query: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """Of a mean over queries that are independent between groups; p(1 − p)/q where each of q hits is its own group."""
    _, codes = np.unique(groups, return_inverse=True)
    apart = per_query - per_query.mean()
    sums = np.bincount(codes, weights=np.where(np.abs(apart) < _ROUNDING, 0, apart))
    count, queries = len(sums), len(per_query)
    return float((sums**2).sum()) / queries**2 * (count / (count - 1)) * ((queries - 1) / queries)
