"""Panel and control as the rows of audit.json."""

from typing import Literal, Protocol

from unface.auditing.attack import Attack, Attacked
from unface.auditing.schema import Bounds, ContextAdjusted, ControlPoint, Curve, Estimate, Point, Rate, WithoutSuspects
from unface.metrics import Resolution
from unface.probe import Context, Control, Measurement, Plan, Trial, Variant, adjust_for_context

_BOOTSTRAP = "identity bootstrap"


def space_points(attacked: Attacked, attack: Attack, context: Context | None) -> list[Point]:
    """All points of one space, by k, rate and probe."""
    points = []
    for k in attack.plan.ks:
        resolved = attacked.panel.resolved[k]
        for far in attack.plan.fars:
            for probe in attack.probes:
                if far in resolved.measured:
                    points.append(_point(attacked, attack, (probe.name, k, far), context))
                else:
                    points.append(_refused(probe.name, k, far, resolved.needed[far]))
    return points


def space_curves(attacked: Attacked) -> list[Curve]:
    """The operating curve of each probe at each k."""
    return [_curve(trial) for trial in attacked.panel.trials.values()]


def control_points(control: Control) -> list[ControlPoint]:
    """The shuffled control, and whether each probe stayed at chance."""
    failures = set(map(id, control.failures))
    return [
        ControlPoint(
            probe=found.probe,
            k=found.k,
            far=found.far,
            tar=_estimate(found, _BOOTSTRAP),
            chance=found.chance,
            passed=id(found) not in failures,
        )
        for found in control.measurements
    ]


def _point(attacked: Attacked, attack: Attack, which: tuple[str, int, float], context: Context | None) -> Point:
    probe, k, far = which
    found, trial = attacked.numbers[which], attacked.panel.trials[probe, k]
    paper = attack.plan.variant is Variant.PAPER
    worst = attacked.panel.worst(k, far) == probe
    return Point(
        probe=probe,
        k=k,
        far=far,
        resolution=found.resolution.value,
        worst=worst,
        tar=tar_estimate(found, attack.plan),
        achieved_far=Rate(value=found.achieved_far, numerator=found.false_accepts, denominator=found.impostors),
        chance=found.chance,
        times_chance=found.times_chance,
        threshold=found.threshold,
        calibrate_tar=trial.calibrate_tar[far],
        setting=dict(trial.setting),
        tar_by_seed=list(found.by_seed),
        partial_auc=trial.partial_auc if paper and trial.calibrate_impostors < 10_000 else None,
        identities_needed=trial.resolved.needed_for_resolved[far] if found.resolution == "coarse" else None,
        context_adjusted=_adjusted(trial, far, context, attack) if context and worst else None,
        notes=list(trial.notes),
    )


def _refused(probe: str, k: int, far: float, needed: int) -> Point:
    return Point(
        probe=probe,
        k=k,
        far=far,
        resolution="refused",
        worst=False,
        tar=None,
        achieved_far=None,
        chance=None,
        times_chance=None,
        threshold=None,
        calibrate_tar=None,
        setting={},
        tar_by_seed=[],
        identities_needed=needed,
    )


def tar_estimate(found: Measurement, plan: Plan) -> Estimate:
    """TAR as audit.json says it."""
    return _estimate(found, "1.96 sd over seeds" if plan.variant is Variant.PAPER else _BOOTSTRAP)


class _Bounded(Protocol):
    """What rooms below give where a value has an interval."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def bounds_of(found: _Bounded) -> Bounds:
    """A value and its interval as audit.json says them."""
    return Bounds(value=found.value, low=found.low, high=found.high)


def resolution_word(found: Resolution) -> Literal["resolved", "coarse"]:
    """Of a rate that was measured: a refused one has no numbers to stand beside."""
    return "resolved" if found is Resolution.RESOLVED else "coarse"


def _estimate(found: Measurement, method: str) -> Estimate:
    return Estimate(
        value=found.tar,
        numerator=found.accepted,
        denominator=found.mated,
        low=found.interval.low,
        high=found.interval.high,
        level=found.interval.level,
        method=method,
        identities=found.identities,
        effective_n=found.effective_n,
    )


def _adjusted(trial: Trial, far: float, context: Context, attack: Attack) -> ContextAdjusted | None:
    adjusted = adjust_for_context(trial, far, context, attack.roles.test, attack.bootstrap, attack.plan.seed)
    if adjusted is None:
        return None
    return ContextAdjusted(
        context=context.name,
        value=adjusted.value,
        low=adjusted.interval.low,
        high=adjusted.interval.high,
        level=adjusted.interval.level,
        unknown=adjusted.unknown,
        overlap=adjusted.overlap,
        effective_pairs=adjusted.effective_pairs,
        suspects=_rate(adjusted.suspects, adjusted.accepted) if adjusted.accepted else None,
        without_suspects=[
            WithoutSuspects(similarity=left.similarity, tar=_rate(left.accepted, left.mated))
            for left in adjusted.left_out
        ],
    )


def _rate(numerator: int, denominator: int) -> Rate:
    return Rate(value=numerator / denominator, numerator=numerator, denominator=denominator)


def _curve(trial: Trial) -> Curve:
    return Curve(
        probe=trial.probe, k=trial.k, far=trial.curve.far.tolist(), tar=trial.curve.tar.tolist(), eer=trial.curve.eer
    )
