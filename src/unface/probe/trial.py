"""One probe at one k: setting and thresholds are fixed on calibrate identities, then it meets the test identities."""

from dataclasses import dataclass, field
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from unface.metrics import ImpostorTail, allowed_accepts, equal_error, mean_tar
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
from unface.probe.calibrate import Attacker, calibrate, cpu_threads, impostors_accepted
from unface.probe.kshot import RoleRows, Shot
from unface.probe.plan import Plan, Resolved
from unface.probe.ports import Probe, Setting
from unface.threads import parallel_map

_CURVE_BINS = 8192
_POINTS_PER_DECADE = 12


@dataclass(frozen=True, eq=False)
class Curve:
    """Rates at thresholds in falling order; FAR here is that of the test identities themselves."""

    far: NDArray[np.float64]
    tar: NDArray[np.float64]
    eer: float
    """Equal error rate to the histogram's resolution, however few points are kept."""


@dataclass(frozen=True)
class OnTest:
    """What the test identities' own threshold at a rate accepts; of a histogram, so a bin's width too strict."""

    accepted: int
    mated: int
    false_accepts: int
    impostors: int


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
    learned: bool
    """False where k makes no difference."""
    on_test: dict[float, OnTest] = field(default_factory=dict)
    """Spaces whose thresholds from calibrate accept unlike shares of test impostors are compared by these."""


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
    bins = [part.mated_bins for part in tested], [part.bins for part in tested]
    curve = det_curve(*bins)
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
        on_test={far: accepted_on_test(*bins, far) for far in known.thresholds},
        curve=thinned(curve, impostors),
        partial_auc=mean_tar(np.append(0.0, curve.far), np.append(0.0, curve.tar), 1e-3),
        learned=known.learned,
    )


def det_curve(mated: list[Histogram], impostors: list[Histogram]) -> Curve:
    """Pool the histograms of all seeds; both lists share their bins. Thresholds themselves never come from here."""
    accepted = [reduce(Histogram.add, parts).at_least_edge().astype(np.float64) for parts in (impostors, mated)]
    far, tar = (counts[::-1] / counts[0] for counts in accepted)
    return Curve(far, tar, equal_error(far, 1 - tar))


def accepted_on_test(mated: list[Histogram], impostors: list[Histogram], far: float) -> OnTest:
    """At the lowest edge that at most the share ``far`` of the impostors reaches."""
    false, true = (np.append(reduce(Histogram.add, parts).at_least_edge(), 0) for parts in (impostors, mated))
    at = int(np.argmax(false <= allowed_accepts(far, int(false[0]))))
    return OnTest(int(true[at]), int(true[0]), int(false[at]), int(false[0]))


def thinned(curve: Curve, impostors: int) -> Curve:
    """A few points for each decade of FAR, from one false accept to one half."""
    decades = np.log10(max(impostors, 10))
    wanted = np.logspace(-decades, np.log10(0.5), int(decades * _POINTS_PER_DECADE) + 1)
    # the last point whose FAR is no more than wanted: a point's TAR is never taken from a higher FAR
    positions = np.unique(np.searchsorted(curve.far, wanted * (1 + 1e-12), side="right") - 1)
    positions = positions[positions >= 0]
    positions = positions[curve.far[positions] > 0]
    return Curve(curve.far[positions], curve.tar[positions], curve.eer)


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
