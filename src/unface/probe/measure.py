"""From a trial's counts to numbers one can quote: TAR with its interval, its chance and what it was counted on."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unface.metrics import (
    Interval,
    Replicates,
    Resolution,
    Scheme,
    effective_trials,
    identity_weights,
    paired_interval,
    rate_interval,
    tar_replicates,
    threshold_replicates,
)
from unface.pairs import Mated
from unface.probe.plan import Plan, Variant
from unface.probe.trial import Trial
from unface.score import effective_people


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Weights on calibrate and on test identities, the same for every trial: differences come out paired."""

    calibrate: NDArray[np.float64]
    test: NDArray[np.float64]
    scheme: Scheme
    level: float = 0.95

    def tar(self, trial: Trial, far: float, pair_weights: NDArray[np.float64] | None = None) -> Replicates:
        """TAR of a trial as other draws of its calibrate and test identities would have given it."""
        thresholds = threshold_replicates(trial.calibrate, far, self.calibrate)
        identities = np.concatenate([part.identities for part in trial.mated])
        scores = np.concatenate([part.scores for part in trial.mated])
        return Replicates(tar_replicates(identities, scores, thresholds, self.test, pair_weights), self.mirrored)

    @property
    def mirrored(self) -> bool:
        """Whether the second half of the weights mirrors the first."""
        return self.scheme is Scheme.DOUBLE_OR_NOTHING

    def for_people(self, calibrate: int, test: int, seed: int) -> "Bootstrap":
        """The same kind of weights for other people."""
        return draw_bootstrap(self.scheme, calibrate, test, len(self.test), seed, self.level)


@dataclass(frozen=True, eq=False)
class Measurement:
    """TAR of one probe at one k and one rate, pooled over seeds."""

    probe: str
    k: int
    far: float
    resolution: Resolution
    needed: int | None
    """Calibrate identities that would resolve the rate, where it is not."""
    threshold: float
    accepted: int
    accepted_people: int
    """Identities with an accepted pair."""
    mated: int
    false_accepts: int
    impostors: int
    identities: int
    interval: Interval
    effective_n: float
    over_people: float
    """Mean over people of each one's own share of accepted pairs."""
    by_seed: tuple[float, ...]
    replicates: Replicates = field(repr=False)
    by_person: NDArray[np.float64] = field(repr=False)
    """(identities,) what each one adds to the TAR: accepted pairs as a share of all mated pairs."""

    @property
    def tar(self) -> float:
        """True-accept rate: the share of all pairs, so that people with many pictures count more than others."""
        return self.accepted / self.mated

    @property
    def achieved_far(self) -> float:
        """False-accept rate on the test identities."""
        return self.false_accepts / self.impostors

    @property
    def chance(self) -> float:
        """What a probe that knows nothing would accept of mated pairs: the target FAR.

        The achieved one is a count of a few accepts: a multiple of it may rise while TAR falls.
        """
        return self.far

    @property
    def times_chance(self) -> float:
        """TAR as a multiple of chance."""
        return self.tar / self.far


def draw_bootstrap(
    scheme: Scheme, calibrate: int, test: int, replicates: int, seed: int, level: float = 0.95
) -> Bootstrap:
    """Weights for so many calibrate and test identities."""
    return Bootstrap(
        identity_weights(scheme, calibrate, replicates, seed, "calibrate"),
        identity_weights(scheme, test, replicates, seed, "test"),
        scheme,
        level,
    )


def measure(trial: Trial, far: float, bootstrap: Bootstrap, plan: Plan) -> Measurement:
    """One number of a trial."""
    threshold = trial.thresholds[far]
    scores = np.concatenate([part.scores for part in trial.mated])
    accepted = int(np.count_nonzero(scores >= threshold))
    identities = np.concatenate([part.identities for part in trial.mated])
    how, needed = trial.resolved.judged(far, effective_people(trial.calibrate, threshold))
    by_seed = tuple(float(np.mean(part.scores >= threshold)) for part in trial.mated)
    replicates = bootstrap.tar(trial, far)
    if plan.variant is Variant.PAPER:
        interval = seed_interval(by_seed, bootstrap.level)
    else:
        interval = rate_interval(accepted, len(scores), replicates, trial.identities, bootstrap.level)
    return Measurement(
        probe=trial.probe,
        k=trial.k,
        far=far,
        resolution=how,
        needed=needed,
        threshold=threshold,
        accepted=accepted,
        accepted_people=len(np.unique(identities[scores >= threshold])),
        mated=len(scores),
        false_accepts=trial.false_accepts[far],
        impostors=trial.impostors,
        identities=trial.identities,
        interval=interval,
        effective_n=effective_trials(
            accepted / len(scores), replicates.variance(), trial.identities, _distinct(trial.mated)
        ),
        over_people=_over_people(identities, scores >= threshold),
        by_seed=by_seed,
        replicates=replicates,
        by_person=np.bincount(identities[scores >= threshold], minlength=trial.identities) / len(scores),
    )


def difference(before: Measurement, after: Measurement, level: float = 0.95) -> tuple[float, Interval]:
    """after − before with the interval of the paired replicates."""
    changes, replicates = after.by_person - before.by_person, after.replicates.less(before.replicates)
    return after.tar - before.tar, paired_interval(changes, replicates, after.identities, level)


def seed_interval(by_seed: tuple[float, ...], level: float) -> Interval:
    """Mean ± 1.96 standard deviations over seeds (the ISP paper, A.6); kept to compare with, it under-covers."""
    spread = 1.96 * float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else 0.0
    mean = float(np.mean(by_seed))
    return Interval(max(mean - spread, 0.0), min(mean + spread, 1.0), level)


def _over_people(identities: NDArray[np.int64], accepted: NDArray[np.bool_]) -> float:
    pairs = np.bincount(identities)
    there = pairs > 0
    return float(np.mean(np.bincount(identities, accepted)[there] / pairs[there]))


def _distinct(parts: tuple[Mated, ...]) -> int:
    """Image pairs that any seed compared, each counted once."""
    rows = np.concatenate([part.rows for part in parts])
    low, high = rows.min(axis=1), rows.max(axis=1)
    return len(np.unique(low * (int(high.max()) + 1) + high))
