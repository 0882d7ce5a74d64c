"""One probe at one k: setting and thresholds are fixed on calibrate identities, then it meets the test identities."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.metrics import ImpostorTail, allowed_accepts, just_above, mean_tar
from unface.pairs import (
    Histogram,
    Mated,
    Pairing,
    Tail,
    all_mated,
    bin_scores,
    impostor_histogram,
    open_screen,
    pair_up,
    pool_tails,
    sample_impostors,
)
from unface.probe.curve import Curve, det_curve, thinned
from unface.probe.impostors import impostor_tail, impostors_accepted
from unface.probe.kshot import RoleRows, Shot
from unface.probe.plan import Plan, Resolved
from unface.probe.ports import Probe, Scorer, Setting
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
    """Mean TAR for FAR up to 1e-3 (paper 001, A.4), from the curve over all test pairs."""


@dataclass(frozen=True, eq=False)
class Attacker:
    """A fitted probe with one setting, and the images of one seed that it is let loose on."""

    scorer: Scorer
    shot: Shot
    vectors: NDArray[np.float32]

    def pairs(self, setting: Setting, rows: RoleRows) -> Pairing:
        """All pairs of a role's query images, as this attacker scores them."""
        pairing = pair_up(self.scorer.space(setting, self.vectors[rows.rows]), rows.identities)
        return replace(pairing, rows=rows.rows[pairing.rows])


def run_trial(probe: Probe, shots: list[Shot], vectors: NDArray[np.float32], plan: Plan, resolved: Resolved) -> Trial:
    """Fit on every seed's support, choose on calibrate, report on test."""
    threads = plan.threads if plan.device == "cpu" else 1
    scorers = parallel_map(lambda shot: probe.fit(shot.support), shots, threads)
    attackers = [Attacker(scorer, shot, vectors) for scorer, shot in zip(scorers, shots, strict=True)]
    setting = _best_setting(probe, attackers[: plan.calibrating_seeds], plan, resolved, threads)

    calibrating = attackers[: plan.calibrating_seeds]
    tail, calibrate_mated = _calibrate(
        calibrating, setting, plan=plan, far=max(resolved.measured), spare=5.0, threads=threads
    )
    thresholds = {far: _threshold(tail, far) for far in resolved.measured}
    low = float(sample_impostors(calibrating[0].pairs(setting, calibrating[0].shot.calibrate)).min())
    high = max(float(max(tail.scores[0], calibrate_mated.max())), low + 1e-6)
    tested = parallel_map(
        partial(_test, setting=setting, thresholds=list(thresholds.values()), plan=plan, between=(low, high)),
        attackers,
        threads,
    )
    accepted = np.sum([part.accepted for part in tested], axis=0)
    impostors = sum(part.impostors for part in tested)
    curve = det_curve([part.mated_bins for part in tested], [part.bins for part in tested])
    return Trial(
        probe=probe.name,
        k=shots[0].support.k,
        setting=setting,
        notes=scorers[0].notes,
        resolved=resolved,
        calibrate=_as_impostor_tail(tail, [attacker.shot.calibrate for attacker in calibrating], plan),
        calibrate_impostors=tail.impostors,
        calibrate_tar={far: float(np.mean(calibrate_mated >= threshold)) for far, threshold in thresholds.items()},
        thresholds=thresholds,
        identities=shots[0].test.count,
        mated=tuple(part.mated for part in tested),
        false_accepts={far: int(count) for far, count in zip(thresholds, accepted, strict=True)},
        impostors=impostors,
        curve=thinned(curve, impostors),
        partial_auc=mean_tar(np.append(0.0, curve.far), np.append(0.0, curve.tar), 1e-3),
    )


def _best_setting(
    probe: Probe, attackers: list[Attacker], plan: Plan, resolved: Resolved, threads: int | None
) -> Setting:
    """The setting with the highest TAR on calibrate at the reference rate; the first of equals."""
    if len(probe.settings) == 1:
        return probe.settings[0]
    far = resolved.reference

    def tar(setting: Setting) -> float:
        tail, mated = _calibrate(attackers, setting, plan=plan, far=far, spare=1.5, threads=threads)
        return float(np.mean(mated >= _threshold(tail, far)))

    return max(probe.settings, key=tar)


def _calibrate(
    attackers: list[Attacker], setting: Setting, *, plan: Plan, far: float, spare: float, threads: int | None
) -> tuple[Tail, NDArray[np.float32]]:
    """Calibrate impostor tail pooled over seeds, ``spare`` times as long as the rate needs, and the mated scores."""

    while True:
        parts = parallel_map(partial(_scored, setting=setting, plan=plan, far=far, spare=spare), attackers, threads)
        tail = pool_tails([part for part, _ in parts])
        if len(tail) > allowed_accepts(far, tail.impostors) or tail.floor == -np.inf:
            return tail, np.concatenate([mated for _, mated in parts])
        spare *= 4  # seeds so unlike that one's list ends above the common threshold: list more of each


def _scored(
    attacker: Attacker, *, setting: Setting, plan: Plan, far: float, spare: float
) -> tuple[Tail, NDArray[np.float32]]:
    pairing = attacker.pairs(setting, attacker.shot.calibrate)
    keep = int(spare * allowed_accepts(far, pairing.impostors)) + 300
    return impostor_tail(pairing, keep, plan, f"calibrate {attacker.shot.support.seed}"), all_mated(pairing).scores


def _threshold(tail: Tail, far: float) -> float:
    allowed = allowed_accepts(far, tail.impostors)
    return just_above(tail.scores[allowed]) if allowed < len(tail) else -np.inf


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
