"""The attack on one space as the numbers of audit.json, and the controls that can void them."""

from unface.auditing.attack import Attack, Attacked, tar_share
from unface.auditing.bench import Bench
from unface.auditing.leakage import SUSPECTS_FILE
from unface.probe import (
    Context,
    Control,
    Trial,
    Variant,
    adjust_for_context,
    lookalikes,
    near_duplicates,
    shuffled_control,
    strays,
)
from unface.result.audit import (
    ContextAdjusted,
    ControlPoint,
    Controls,
    Curve,
    Duplicates,
    Point,
    WithoutSuspects,
)
from unface.result.file import Listing
from unface.result.numbers import Rate, Share


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
    return [
        Curve(
            probe=trial.probe,
            k=trial.k,
            far=trial.curve.far.tolist(),
            tar=trial.curve.tar.tolist(),
            eer=trial.curve.eer,
        )
        for trial in attacked.panel.trials.values()
    ]


def check_controls(bench: Bench) -> Controls:
    """Shuffled identities, and pictures or names that occur twice, on the vectors as they came."""
    embeddings, attack = bench.prepared.embeddings, bench.attack
    plan = attack.plan
    shuffled = shuffled_control(embeddings.vectors, attack.roles, attack.probes, plan, attack.bootstrap, bench.progress)
    duplicates = near_duplicates(embeddings, device=plan.device, threads=plan.threads)
    doubles, misplaced = lookalikes(embeddings), strays(embeddings)
    bench.listings[SUSPECTS_FILE] = Listing(
        ("why", "first_id", "first_identity", "second_id", "second_identity"),
        [
            *(("near-duplicate", *pair) for pair in duplicates.named),
            *(("one person, two names?", "", double.first, "", double.second) for double in doubles),
            *(("picture of another?", stray.id, stray.identity, "", stray.resembles) for stray in misplaced),
        ],
        "rows and identities that look wrong",
    )
    return Controls(
        shuffled_identities=_control_points(shuffled),
        near_duplicates=Duplicates(
            cosine=duplicates.cosine,
            across_identities=duplicates.across,
            within_identities=duplicates.within,
            mated=duplicates.mated,
        ),
        lookalike_identities=len(doubles),
        stray_pictures=len(misplaced),
    )


def _control_points(control: Control) -> list[ControlPoint]:
    """Whether each probe stayed at chance."""
    failures = set(map(id, control.failures))
    return [
        ControlPoint(
            probe=measured.probe,
            k=measured.k,
            far=measured.far,
            tar=tar_share(measured),
            chance=measured.chance,
            passed=id(measured) not in failures,
        )
        for measured in control.measurements
    ]


def _point(attacked: Attacked, attack: Attack, which: tuple[str, int, float], context: Context | None) -> Point:
    probe, k, far = which
    measured, trial = attacked.numbers[which], attacked.panel.trials[probe, k]
    paper = attack.plan.variant is Variant.PAPER
    worst = attacked.panel.worst(k, far) == probe
    return Point(
        probe=probe,
        k=k,
        far=far,
        resolution=measured.resolution.value,
        worst=worst,
        tar=tar_share(measured),
        tar_over_people=measured.over_people,
        achieved_far=Rate.counted(measured.false_accepts, measured.impostors),
        chance=measured.chance,
        times_chance=measured.times_chance,
        threshold=measured.threshold,
        calibrate_tar=trial.calibrate_tar[far],
        setting=dict(trial.setting),
        tar_by_seed=list(measured.by_seed),
        partial_auc=trial.partial_auc if paper and trial.calibrate_impostors < 10_000 else None,
        identities_needed=measured.needed,
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
        suspects=Rate.counted(adjusted.suspects, adjusted.accepted) if adjusted.accepted else None,
        without_suspects=[
            WithoutSuspects(similarity=left.similarity, tar=Rate.counted(left.accepted, left.mated))
            for left in adjusted.left_out
        ],
        apart=None
        if (apart := adjusted.apart) is None
        else Share.counted(apart.accepted, apart.mated, apart.interval, apart.people, apart.effective_n),
    )
