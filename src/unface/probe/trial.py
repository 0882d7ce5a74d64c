"""One probe at one k: setting and thresholds are fixed on calibrate identities, then it meets the test identities."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.metrics import ImpostorTail, mean_tar
from unface.pairs import (
    Histogram,
    Mated,
    Tail,
    all_mated,
    bin_scores,
    impostor_histogram,
    open_screen,
    sample_impostors,
)
from unface.probe.calibrate import Attacker, calibrate, cpu_threads
from unface.probe.curve import Curve, det_curve, thinned
from unface.probe.impostors import impostors_accepted
from unface.probe.kshot import RoleRows, Shot
from unface.probe.plan import Plan, Resolved
from unface.probe.ports import Probe, Setting
from unface.threads import parallel_map

_CURVE_BINS = 8192


@dataclass(frozen=True, eq=False)
class Trial:
    """What a probe did at one k, in counts and scores that every later number is made of."""

    probe: str
    k: int
    setting: Setting
    notes: tuple[str, ...]
    resolved: Resolved
    calibrate: ImpostorTail
    calibrate_impostors: int
    calibrate_tar: dict[float, float]
    thresholds: dict[float, float]
    identities: int
    """Test identities."""
    mated: tuple[Mated, ...]
    """Test pairs of each seed; rows are rows of the embedding set."""
    false_accepts: dict[float, int]
    impostors: int
    curve: Curve
    partial_auc: float
    """Mean TAR for FAR up to 1e-3 (the ISP paper, A.4), from the curve over all test pairs."""


def run_trial(probe: Probe, shots: list[Shot], vectors: NDArray[np.float32], plan: Plan, resolved: Resolved) -> Trial:
    """Fit on every seed's support, choose on calibrate, report on test."""
    known = calibrate(probe, shots, vectors, plan, resolved)
    calibrating = known.attackers[: plan.calibrating_seeds]
    low = float(sample_impostors(calibrating[0].pairs(known.setting, calibrating[0].shot.calibrate)).min())
    high = float(max(known.tail.scores[0], known.mated.max()))
    if high <= low:  # all scores are one
        high = low + max(1.0, abs(low))
    tested = parallel_map(
        partial(
            _test, setting=known.setting, thresholds=list(known.thresholds.values()), plan=plan, between=(low, high)
        ),
        known.attackers,
        cpu_threads(plan),
    )
    accepted = np.sum([part.accepted for part in tested], axis=0)
    impostors = sum(part.impostors for part in tested)
    curve = det_curve([part.mated_bins for part in tested], [part.bins for part in tested])
    return Trial(
        probe=probe.name,
        k=shots[0].support.k,
        setting=known.setting,
        notes=known.attackers[0].scorer.notes,
        resolved=resolved,
        calibrate=_as_impostor_tail(known.tail, [attacker.shot.calibrate for attacker in calibrating], plan),
        calibrate_impostors=known.tail.impostors,
        calibrate_tar=known.tar,
        thresholds=known.thresholds,
        identities=shots[0].test.count,
        mated=tuple(part.mated for part in tested),
        false_accepts={far: int(count) for far, count in zip(known.thresholds, accepted, strict=True)},
        impostors=impostors,
        curve=thinned(curve, impostors),
        partial_auc=mean_tar(np.append(0.0, curve.far), np.append(0.0, curve.tar), 1e-3),
    )


@dataclass(frozen=True, eq=False)
class _Tested:
    mated: Mated
    accepted: NDArray[np.int64]
    impostors: int
    bins: Histogram
    mated_bins: Histogram


def _test(
    attacker: Attacker, setting: Setting, thresholds: list[float], plan: Plan, between: tuple[float, float]
) -> _Tested:
    pairing = attacker.pairs(setting, attacker.shot.test)
    accepted, impostors = impostors_accepted(pairing, thresholds, plan, f"test {attacker.shot.support.seed}")
    mated = all_mated(pairing)
    # Always on the CPU: a histogram takes scores as they are screened, and another device's differ in their last bits.
    bins = impostor_histogram(pairing, open_screen(pairing.space), *between, _CURVE_BINS, threads=1)
    return _Tested(mated, accepted, impostors, bins, bin_scores(mated.scores, bins.low, bins.width, _CURVE_BINS))


def _as_impostor_tail(tail: Tail, queries: list[RoleRows], plan: Plan) -> ImpostorTail:
    images = np.stack([query.images() for query in queries]).astype(np.float64)
    if plan.quota is not None:
        # as many image pairs for each identity pair as the quota: products of these give it
        images = np.full_like(images, np.sqrt(plan.quota))
    return ImpostorTail(tail.scores, tail.first, tail.second, images, tail.floor)
