"""Panel and control as the rows of audit.json."""

from unface.auditing.schema import (
    ContextAdjusted,
    ControlPoint,
    Curve,
    Estimate,
    Point,
    Rate,
    SpaceResult,
    WithoutSuspects,
)
from unface.probe import (
    Bootstrap,
    Context,
    Control,
    Measurement,
    Panel,
    Plan,
    RoleRows,
    Trial,
    Variant,
    adjust_for_context,
    measure,
)


def space_result(
    name: str,
    panel: Panel,
    probes: list[str],
    *,
    plan: Plan,
    bootstrap: Bootstrap,
    context: Context | None,
    test: RoleRows,
) -> SpaceResult:
    """All points and curves of one space, by k, rate and probe."""
    points = []
    for k in plan.ks:
        for far in plan.fars:
            measured = far in panel.resolved[k].measured
            for probe in probes:
                if measured:
                    trial = panel.trials[probe, k]
                    worst = panel.worst(k, far) == probe
                    points.append(_point(trial, far, worst, plan, bootstrap, context, test))
                else:
                    points.append(_refused(probe, k, far, panel.resolved[k].needed[far]))
    curves = [_curve(trial) for trial in panel.trials.values()]
    return SpaceResult(name=name, points=points, curves=curves)


def control_points(control: Control) -> list[ControlPoint]:
    """The shuffled control, and whether each probe stayed at chance."""
    failures = set(map(id, control.failures))
    return [
        ControlPoint(
            probe=found.probe,
            k=found.k,
            far=found.far,
            tar=_estimate(found, "identity bootstrap"),
            chance=found.chance,
            passed=id(found) not in failures,
        )
        for found in control.measurements
    ]


def _point(
    trial: Trial, far: float, worst: bool, plan: Plan, bootstrap: Bootstrap, context: Context | None, test: RoleRows
) -> Point:
    found = measure(trial, far, bootstrap, plan)
    paper = plan.variant is Variant.PAPER
    coarse = found.resolution == "coarse"
    return Point(
        probe=trial.probe,
        k=trial.k,
        far=far,
        resolution=found.resolution.value,
        worst=worst,
        tar=_estimate(found, "1.96 sd over seeds" if paper else "identity bootstrap"),
        achieved_far=Rate(value=found.achieved_far, numerator=found.false_accepts, denominator=found.impostors),
        chance=found.chance,
        times_chance=found.times_chance,
        threshold=found.threshold,
        calibrate_tar=trial.calibrate_tar[far],
        setting=dict(trial.setting),
        tar_by_seed=list(found.by_seed),
        partial_auc=trial.partial_auc if paper and trial.calibrate_impostors < 10_000 else None,
        identities_needed=trial.resolved.needed_for_resolved[far] if coarse else None,
        context_adjusted=_adjusted(trial, far, context, test, bootstrap, plan) if context and worst else None,
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


def _adjusted(
    trial: Trial, far: float, context: Context, test: RoleRows, bootstrap: Bootstrap, plan: Plan
) -> ContextAdjusted | None:
    adjusted = adjust_for_context(trial, far, context, test, bootstrap, plan.seed)
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
