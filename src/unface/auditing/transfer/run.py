"""An eraser between two sets of people, measured: fitted here and there, tested here and there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unface.auditing.attack import Attack, resolution_word, tar_share
from unface.auditing.bench import Bench, describe_given
from unface.auditing.defence import Defence, Defender, fit_set
from unface.auditing.protocol import Prepared, Protocol, prepare
from unface.auditing.strangers import require_strangers
from unface.auditing.transfer import EraserTransfer, TransferCell
from unface.data import EmbeddingSet, Source, read_embeddings, require_same_space
from unface.data.curate import lower_median
from unface.erase import FitError, Projection, principal_cosines
from unface.errors import UnfaceError
from unface.progress import Silent
from unface.result.audit import Headline

_CELLS = 6


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two sets, and who attacks it."""

    given: EmbeddingSet
    prepared: Prepared
    attack: Attack


@dataclass(frozen=True, eq=False)
class Pairing:
    """The second set, and what each eraser becomes when fitted there."""

    second: Side
    projections: Sequence[Projection]


def pair_up(bench: Bench, source: Source) -> Pairing:
    """The second set prepared like the first, and each eraser fitted on its people at the same rank."""
    second = _second_side(bench, read_embeddings(source))
    if not bench.fitted:
        raise UnfaceError("--transfer: no eraser is fitted in this audit; name one with --eraser, or leave it out")
    return Pairing(second, [_fit_there(defence, second, bench.defender) for defence in bench.fitted])


def transfer(bench: Bench, head: Headline, pairing: Pairing) -> list[EraserTransfer]:
    """The 2 × 2 of each eraser at the headline's k: raw, fitted here and fitted there, on both sets."""
    first = Side(bench.given, bench.prepared, bench.attack.fast_at(head.k))
    second = replace(pairing.second, attack=pairing.second.attack.fast_at(head.k))
    return [
        _one(bench, defence, there, first, second)
        for defence, there in zip(bench.fitted, pairing.projections, strict=True)
    ]


def _second_side(bench: Bench, given: EmbeddingSet) -> Side:
    attack = bench.attack
    plan = attack.plan
    audited, fitted_on = bench.prepared.embeddings, bench.defender.people
    for people in (audited,) if set(fitted_on.names) <= set(audited.names) else (audited, fitted_on):
        bench.findings.extend(require_strangers("--transfer", given, people, device=plan.device, threads=plan.threads))
    prepared = prepare(given, Protocol(variant=plan.variant, seed=plan.seed))
    most = max((k for k in plan.ks if k != plan.everything), default=0)
    compared = 2 if plan.hold_out else 0
    learned = lower_median(prepared.roles.train.images())
    if most + compared > learned:
        raise UnfaceError(
            f"{given.source}: {learned} images of most identities; k = {most} needs {most + compared} of them in both "
            "sets: ask for a smaller --k"
        )
    weights = attack.bootstrap.for_people(prepared.roles.calibrate.count, prepared.roles.test.count, plan.seed)
    return Side(given, prepared, replace(attack, roles=prepared.roles, bootstrap=weights))


def _fit_there(defence: Defence, second: Side, defender: Defender) -> Projection:
    require_same_space(defence.projection.space, second.prepared.embeddings.space)
    people = fit_set(second.prepared, None, second.attack.plan.variant)
    try:
        return replace(defender, people=people).project(defence.method, defence.projection.rank, defence.mu)
    except FitError as error:
        raise UnfaceError(f"{second.given.source}: {error}; --transfer needs as many, or a lower --rank") from None


def _one(bench: Bench, defence: Defence, there: Projection, first: Side, second: Side) -> EraserTransfer:
    """Thresholds come from the set tested on."""
    if second.given.source in (first.given.source, defence.fitted_on):  # two sets of one name would read as one
        second = replace(second, given=replace(second.given, source=f"{second.given.source} (2)"))
    fitted = ((None, None), (defence.fitted_on, defence.projection), (second.given.source, there))
    bench.progress.start("transfer", _CELLS)
    cells = []
    for side in (first, second):
        for name, projection in fitted:
            cells += _cells(side, name, projection)
            bench.progress.advance("transfer")
    cosines = principal_cosines(defence.projection, there)
    return EraserTransfer(
        method=defence.method,
        rank=defence.projection.rank,
        first=first.given.source,
        second=describe_given(second.given),
        cells=cells,
        cosines=cosines.values.tolist(),
        chance_cosine=cosines.chance,
    )


def _cells(side: Side, fitted_on: str | None, projection: Projection | None) -> list[TransferCell]:
    vectors = side.prepared.embeddings.vectors
    attacked = side.attack.run(vectors if projection is None else projection.apply(vectors), Silent(), "transfer")
    plan = side.attack.plan
    worst_cases = [attacked.worst(k, far) for k in plan.ks for far in plan.fars]
    return [
        TransferCell(
            fitted_on=fitted_on,
            tested_on=side.given.source,
            k=worst.k,
            far=worst.far,
            resolution=resolution_word(worst.resolution),
            probe=worst.probe,
            tar=tar_share(worst),
            chance=worst.chance,
            times_chance=worst.times_chance,
        )
        for worst in worst_cases
        if worst is not None
    ]
