"""Thresholds, rates, curves and honest intervals, from scores and counts wherever they came from."""

from unface.metrics.bootstrap import (
    ImpostorTail,
    Scheme,
    accepts_by_identity,
    identity_weights,
    tar_replicates,
    threshold_replicates,
)
from unface.metrics.curves import Roc, eer, equal_error, mean_tar, partial_auc, roc
from unface.metrics.intervals import (
    Replicates,
    difference_interval,
    effective_trials,
    paired_interval,
    rate_interval,
    wilson,
)
from unface.metrics.rates import (
    RESOLVED_ACCEPTS,
    RESOLVED_PEOPLE,
    Resolution,
    TarAtFar,
    allowed_accepts,
    identities_needed,
    just_above,
    resolution,
    tar_at_far,
    threshold_allowing,
)
from unface.result.numbers import Interval, zero_bound

__all__ = [
    "RESOLVED_ACCEPTS",
    "RESOLVED_PEOPLE",
    "ImpostorTail",
    "Interval",
    "Replicates",
    "Resolution",
    "Roc",
    "Scheme",
    "TarAtFar",
    "accepts_by_identity",
    "allowed_accepts",
    "difference_interval",
    "eer",
    "effective_trials",
    "equal_error",
    "identities_needed",
    "identity_weights",
    "just_above",
    "mean_tar",
    "paired_interval",
    "partial_auc",
    "rate_interval",
    "resolution",
    "roc",
    "tar_at_far",
    "tar_replicates",
    "threshold_allowing",
    "threshold_replicates",
    "wilson",
    "zero_bound",
]
