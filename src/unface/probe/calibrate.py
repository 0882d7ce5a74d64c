"""One probe at one k on calibrate identities: its setting, its thresholds, and how well it does there.

Impostor scores of a role are those of all pairs through the engine, or of the paper's quota for each identity pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.metrics import allowed_accepts, just_above
from unface.pairs import (
    Pairing,
    Tail,
    all_mated,
    count_impostors,
    highest_impostors,
    open_screen,
    pair_up,
    pool_tails,
    reaching_impostors,
    require_room,
)
from unface.probe.kshot import RoleRows, Shot
from unface.probe.plan import Plan, Resolved
from unface.probe.ports import Probe, Scorer, Setting
from unface.seeds import stream
from unface.threads import parallel_map

# Draws that settings are chosen on. All draws compare the same calibrate pairs, so more of them add little to a choice
# among a few settings (docs/decisions.md).
_CHOOSING = 2


@dataclass(frozen=True, eq=False)
class Attacker:
    """A fitted probe, and the images of one seed that it is let loose on."""

    scorer: Scorer
    shot: Shot
    vectors: NDArray[np.float32]

    def pairs(self, setting: Setting, rows: RoleRows) -> Pairing:
        """All pairs of a role's query images, as this attacker scores them."""
        pairing = pair_up(self.scorer.space(setting, self.vectors[rows.rows]), rows.identities)
        return replace(pairing, rows=rows.rows[pairing.rows])


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Fitted attackers, one for each seed, and all that is fixed before any test identity is looked at."""

    attackers: list[Attacker]
    setting: Setting
    tail: Tail
    mated: NDArray[np.float32]
    thresholds: dict[float, float]
    tar: dict[float, float]
    learned: bool
    """False where neither k nor the draw makes a difference."""


def calibrate(
    probe: Probe, shots: list[Shot], vectors: NDArray[np.float32], plan: Plan, resolved: Resolved
) -> Calibrated:
    """Fit on every seed's support; choose setting and thresholds on the calibrate images of the calibrating seeds."""
    threads = cpu_threads(plan)
    scorers = parallel_map(lambda shot: probe.fit(shot.support), shots, threads)
    learned = plan.hold_out or plan.quota is not None or any(id(scorer) != id(probe) for scorer in scorers)
    if not learned:  # every draw compares the same images in the same way
        shots, scorers = shots[:1], scorers[:1]
    attackers = [Attacker(scorer, shot, vectors) for scorer, shot in zip(scorers, shots, strict=True)]
    calibrating = attackers[: plan.calibrating_seeds]
    setting = _best_setting(probe, calibrating[:_CHOOSING], plan, resolved, threads)
    far = max(resolved.measured)
    tail, mated = _calibrate(calibrating, setting, plan=plan, far=far, spare=5.0, threads=threads)
    thresholds = {far: _threshold(tail, far) for far in resolved.measured}
    tar = {far: float(np.mean(mated >= threshold)) for far, threshold in thresholds.items()}
    return Calibrated(attackers, setting, tail, mated, thresholds, tar, learned)


def cpu_threads(plan: Plan) -> int | None:
    """Threads for work beside the screen, which on a GPU is one queue."""
    return plan.threads if plan.device == "cpu" else 1


def _best_setting(
    probe: Probe, attackers: list[Attacker], plan: Plan, resolved: Resolved, threads: int | None
) -> Setting:
    """The setting with the highest TAR on calibrate at the reference rate; the first of equals."""
    if len(probe.settings) == 1:
        return probe.settings[0]
    far = resolved.reference

    def accepted(setting: Setting) -> int:
        tail, mated = _calibrate(attackers, setting, plan=plan, far=far, spare=1.5, threads=threads)
        return int(np.count_nonzero(mated >= _threshold(tail, far)))

    # From the last to the first, so that the first of equals is left. The last regularise most and are usually best,
    # and a setting that is no better is cheaper to refuse than to measure.
    best = probe.settings[-1]
    most = accepted(best)
    for setting in probe.settings[-2::-1]:
        if plan.quota is not None or _accepts_more(attackers, setting, most - 1, plan, far, threads):
            now = accepted(setting)
            best, most = (setting, now) if now >= most else (best, most)
    return best


def _accepts_more(
    attackers: list[Attacker], setting: Setting, most: int, plan: Plan, far: float, threads: int | None
) -> bool:
    """Whether a setting accepts more than ``most`` mated pairs, for which its threshold need not be known.

    It does if no more impostors than allowed reach the mated score that would be one too many.
    """

    def scored(attacker: Attacker) -> tuple[Pairing, NDArray[np.float32]]:
        pairing = attacker.pairs(setting, attacker.shot.calibrate)
        return pairing, all_mated(pairing).scores

    parts = parallel_map(scored, attackers, threads)
    mated = np.concatenate([scores for _, scores in parts])
    if not 0 <= most < len(mated):
        return most < 0
    score = float(np.partition(mated, len(mated) - most - 1)[len(mated) - most - 1])
    allowed = allowed_accepts(far, sum(pairing.impostors for pairing, _ in parts))

    def reaching(pairing: Pairing) -> int | None:
        return reaching_impostors(pairing, score, allowed, open_screen(pairing.space, plan.device))

    counts = parallel_map(reaching, [pairing for pairing, _ in parts], threads)
    return all(count is not None for count in counts) and sum(count or 0 for count in counts) <= allowed


def _calibrate(
    attackers: list[Attacker], setting: Setting, *, plan: Plan, far: float, spare: float, threads: int | None
) -> tuple[Tail, NDArray[np.float32]]:
    """Calibrate impostor tail pooled over seeds, ``spare`` times as long as the rate needs, and the mated scores."""
    while True:
        scored = partial(_scored, setting=setting, plan=plan, far=far, spare=spare, tails=len(attackers))
        parts = parallel_map(scored, attackers, threads)
        tail = pool_tails([part for part, _ in parts])
        if len(tail) > allowed_accepts(far, tail.impostors) or tail.floor == -np.inf:
            return tail, np.concatenate([mated for _, mated in parts])
        spare *= 4  # seeds so unlike that one's list ends above the common threshold: list more of each


def _scored(
    attacker: Attacker, *, setting: Setting, plan: Plan, far: float, spare: float, tails: int
) -> tuple[Tail, NDArray[np.float32]]:
    pairing = attacker.pairs(setting, attacker.shot.calibrate)
    keep = int(spare * allowed_accepts(far, pairing.impostors)) + 300
    if plan.quota is None:
        require_room(min(keep, pairing.impostors), pairing.impostors, tails)
    return impostor_tail(pairing, keep, plan, f"calibrate {attacker.shot.support.seed}"), all_mated(pairing).scores


def _threshold(tail: Tail, far: float) -> float:
    return just_above(tail.scores[allowed_accepts(far, tail.impostors)])


def impostor_tail(pairing: Pairing, keep: int, plan: Plan, name: str) -> Tail:
    """The ``keep`` highest impostor scores."""
    if plan.quota is None:
        return highest_impostors(pairing, keep, open_screen(pairing.space, plan.device), threads=1)
    return _quota(pairing, plan, name)


def impostors_accepted(
    pairing: Pairing, thresholds: Sequence[float], plan: Plan, name: str
) -> tuple[NDArray[np.int64], int]:
    """Accepted impostor pairs at each threshold, and how many pairs there were."""
    if plan.quota is None:
        accepts = count_impostors(pairing, np.array(thresholds), open_screen(pairing.space, plan.device), threads=1)
        return accepts.total, pairing.impostors
    tail = _quota(pairing, plan, name)
    return np.array([np.count_nonzero(tail.scores >= threshold) for threshold in thresholds]), tail.impostors


def _quota(pairing: Pairing, plan: Plan, name: str) -> Tail:
    """Every score of a quota of image pairs drawn for each identity pair (the ISP paper, A.2)."""
    codes, starts, sizes = np.unique(pairing.identities, return_index=True, return_counts=True)
    first, second = (np.repeat(side, plan.quota or 1) for side in np.triu_indices(len(codes), 1))
    rng = stream(plan.seed, "quota", name)
    i = starts[first] + rng.integers(0, sizes[first])
    j = starts[second] + rng.integers(0, sizes[second])
    scores = pairing.space.exact(i, j)
    order = np.argsort(-scores, kind="stable")
    return Tail(
        scores[order],
        codes[first[order]],
        codes[second[order]],
        np.stack([pairing.rows[i[order]], pairing.rows[j[order]]], axis=1),
        -np.inf,
        len(scores),
    )
