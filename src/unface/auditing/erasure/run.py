"""Erasers and controls made, and every space under the same attack; then what changed on the same pairs."""

from collections.abc import Mapping, Sequence

import numpy as np

from unface.auditing.attack import Attack, Attacked
from unface.auditing.bench import Bench
from unface.auditing.defence import (
    Defence,
    Defender,
    RankRule,
    can_fit,
    certified,
    describe_erasure,
    equal_controls,
    fit_erasers,
    ready_defence,
)
from unface.auditing.leakage.run import space_curves, space_points
from unface.auditing.protocol import Prepared
from unface.erase import KEEPER, UTILITY_AWARE, Projection
from unface.errors import UnfaceError
from unface.probe import Measurement, difference
from unface.progress import Progress
from unface.result.audit import Change, SameRate, SpaceResult
from unface.result.numbers import Rate

# Achieved rates of two spaces on test identities that differ by more: so do their thresholds.
_UNLIKE = 1.5
_USUAL = ("isp",)
_USUAL_AWARE = "utility-pca"


def make_defences(
    methods: Sequence[str] | None,
    rule: RankRule,
    projections: Sequence[Projection],
    defender: Defender,
    prepared: Prepared,
    attack: Attack,
    progress: Progress,
) -> list[Defence]:
    """Ready projections, erasers fitted here (None: the usual one, where there is anybody to fit it on), controls."""
    embeddings = prepared.embeddings
    made = [
        ready_defence(projection, f"projection {number}".removesuffix(" 1"), embeddings)
        for number, projection in enumerate(projections, 1)
    ]
    if methods is None:
        methods = () if made or not can_fit(_USUAL, rule, defender) else _USUAL
    elif defender.task is not None and not methods:
        raise UnfaceError("--spare: is for an eraser that preserves a task, and none is fitted here; leave it out")
    if defender.task is not None and not any(method in UTILITY_AWARE or method == KEEPER for method in methods):
        methods = (*methods, _USUAL_AWARE)
    fitted = fit_erasers(methods, rule, defender, embeddings, attack, progress)
    made += [certified(defence, prepared) for defence in fitted]
    return [*made, *(certified(control, prepared) for control in equal_controls(made, defender))]


def attack_spaces(bench: Bench) -> list[SpaceResult]:
    """The raw space, then each eraser's and each control's."""
    prepared, attack, defences = bench.prepared, bench.attack, bench.defences
    vectors = prepared.embeddings.vectors
    own = "raw" if bench.erased_by is None else bench.erased_by.name
    raw = attack.run(vectors, bench.progress, own)
    attacked, vanished = {own: raw}, {}
    for defence in defences:
        erased = defence.apply(vectors)
        vanished[defence.name] = len(erased) - int(np.count_nonzero(erased.any(axis=1)))
        attacked[defence.name] = attack.run(erased, bench.progress, defence.name)
    return [
        SpaceResult(name=own, points=space_points(raw, attack, prepared.context), curves=space_curves(raw)),
        *(
            SpaceResult(
                name=defence.name,
                erasure=describe_erasure(defence, prepared, vanished[defence.name]),
                points=space_points(attacked[defence.name], attack, prepared.context),
                curves=space_curves(attacked[defence.name]),
                changes=_changes(_rivals(defence, defences, attacked, own), attacked[defence.name], attack),
                utility=bench.utility.kept(defence.projection),
            )
            for defence in defences
        ),
    ]


def _rivals(
    defence: Defence, defences: Sequence[Defence], attacked: Mapping[str, Attacked], own: str
) -> dict[str, Attacked]:
    """What a space is compared with: the raw one, and whatever else removed as many dimensions."""
    rank = defence.projection.rank
    equal = [other.name for other in defences if other.projection.rank == rank and other is not defence]
    return {name: attacked[name] for name in (own, *equal)}


def _changes(others: Mapping[str, Attacked], attacked: Attacked, attack: Attack) -> list[Change]:
    """Worst case here less worst case in each other space, at every k and rate that is measured."""
    changes = []
    for other, before in others.items():
        for k in attack.plan.ks:
            for far in attack.plan.fars:
                here, there = attacked.worst(k, far), before.worst(k, far)
                if here is None or there is None:
                    continue
                value, interval = difference(there, here, attack.bootstrap.level)
                changes.append(
                    Change(
                        against=other,
                        k=k,
                        far=far,
                        probe=here.probe,
                        against_probe=there.probe,
                        value=value,
                        low=interval.low,
                        high=interval.high,
                        level=interval.level,
                        same_rate=_same_rate(attacked, here, before, there),
                    )
                )
    return changes


def _same_rate(attacked: Attacked, here: Measurement, before: Attacked, there: Measurement) -> SameRate | None:
    """Both spaces at thresholds of the test identities themselves, where the calibrated ones accept unlike shares."""
    ours, theirs = (
        side.panel.trials[worst.probe, worst.k].on_test[worst.far]
        for side, worst in ((attacked, here), (before, there))
    )
    found = SameRate(
        tar=Rate.counted(ours.accepted, ours.mated),
        against_tar=Rate.counted(theirs.accepted, theirs.mated),
        achieved_far=Rate.counted(here.false_accepts, here.impostors),
        against_achieved_far=Rate.counted(there.false_accepts, there.impostors),
    )
    unlike = here.false_accepts + there.false_accepts > 0 and found.factor > _UNLIKE
    return found if unlike else None
