"""The loop: the raw space, each eraser and both controls under one attack, then how far and at what price it holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from unface.auditing.attack import Attack, Attacked, fast_at
from unface.auditing.attributing import Attributed, Subjects, attributed
from unface.auditing.comparing import changes
from unface.auditing.defence import (
    Defence,
    can_fit,
    equal_controls,
    erasure_part,
    fit_erasers,
    fit_set,
    ready_defence,
)
from unface.auditing.defender import Defender
from unface.auditing.findings import headline
from unface.auditing.inputs import Prepared, prepare
from unface.auditing.mapping import tsne_map
from unface.auditing.points import space_curves, space_points
from unface.auditing.ranks import RankRule
from unface.auditing.schema import AttributeSwap, Map, SpaceResult, Sweep, Transfer
from unface.auditing.strangers import require_other_vectors, require_strangers
from unface.auditing.survival import Survival, survival
from unface.auditing.swapping import swap_part, two_valued
from unface.auditing.sweeping import Ground, identity_sweep, rank_sweep
from unface.auditing.transferring import Side, fit_there, transfer
from unface.auditing.words import rate
from unface.data import EmbeddingSet, require_same_space
from unface.erase import UTILITY_AWARE, Projection
from unface.errors import UnfaceError
from unface.probe import Panel, Plan
from unface.progress import Progress

_USUAL = ("isp",)
_USUAL_AWARE = "utility-pca"


@dataclass(frozen=True, eq=False)
class Extras:
    """What may be measured beside the spaces themselves."""

    fit_on: EmbeddingSet | None
    projections: tuple[Projection, ...]
    utility: tuple[EmbeddingSet, ...]
    utility_aware: EmbeddingSet | None
    transfer: EmbeddingSet | None
    attribute: str | None
    attribution: Subjects | None
    sweep: bool
    fit_counts: tuple[int, ...]
    maps: bool


@dataclass(frozen=True, eq=False)
class Loop:
    """What is to be done."""

    given: EmbeddingSet
    prepared: Prepared
    attack: Attack
    methods: Sequence[str] | None
    """None: the usual one, where there is anybody to fit it on."""
    rule: RankRule
    extras: Extras


@dataclass(eq=False)
class Found:
    """What came of it."""

    spaces: list[SpaceResult] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    attribute_swaps: list[AttributeSwap] = field(default_factory=list)
    attribution: Attributed | None = None
    not_measured: list[str] = field(default_factory=list)


def measure_loop(loop: Loop, progress: Progress) -> Found:
    """Everything is refused that can be refused before the first long step."""
    prepared, attack, extras = loop.prepared, loop.attack, loop.extras
    defender = _defender(loop)
    useful = survival(prepared.embeddings, extras.utility, attack.plan.seed, attack.bootstrap.level)
    attribute = None if extras.attribute is None else two_valued(prepared, extras.attribute)
    other = None if extras.transfer is None else _second_side(extras.transfer, loop, defender)
    defences = _defences(loop, defender, progress)
    fitted = [defence for defence in defences if defence.fit is not None and not defence.control]
    _require_use(loop, fitted)
    theirs = [] if other is None else [fit_there(defence, other, defender.task) for defence in fitted]
    vectors, seed = prepared.embeddings.vectors, attack.plan.seed
    swaps = [] if attribute is None else [swap_part("raw", vectors, prepared, attribute, seed)]

    erasers = [defence for defence in defences if not defence.control]
    found = Found(attribution=_attributed(loop, erasers, progress), attribute_swaps=swaps)
    found.spaces = _spaces(loop, defences, useful, progress)
    erased = [(defence.name, defence.apply(vectors)) for defence in erasers]
    if attribute is not None:
        for name, space in erased:
            try:
                found.attribute_swaps.append(swap_part(name, space, prepared, attribute, seed))
            except UnfaceError as error:  # so little is left that there is nothing to move along
                found.not_measured.append(f"attribute swap in {name}: {error}")
    if extras.maps:
        drawn = [tsne_map(name, space, prepared.roles.test, seed) for name, space in (("raw", vectors), *erased[:1])]
        found.maps += [one for one in drawn if one is not None]

    head = headline(found.spaces[0].points)
    if head is None or not fitted:
        return found
    ground = Ground(defender, prepared.embeddings, attack, useful).at(head.k, head.far)
    if extras.sweep:
        found.sweeps += _some(rank_sweep(ground, fitted, progress))
    if extras.fit_counts:
        for defence in fitted:
            found.sweeps += _some(identity_sweep(ground, defence, extras.fit_counts, progress))
    if other is not None:
        here = Side(loop.given, prepared, fast_at(attack, head.k))
        there = replace(other, attack=fast_at(other.attack, head.k))
        for defence, their in zip(fitted, theirs, strict=True):
            found.transfers.append(transfer(defence, their, here, there, progress))
    return found


def _attributed(loop: Loop, erasers: Sequence[Defence], progress: Progress) -> Attributed | None:
    """On pictures of people that no eraser was fitted on; what cannot be had of them is told before the long part."""
    subjects = loop.extras.attribution
    if subjects is None:
        return None
    fitted = {name for defence in erasers if defence.fit is not None for name in defence.fit.names}
    projections = {defence.name: defence.projection for defence in erasers}
    plan = loop.attack.plan
    return attributed(subjects.without(fitted), projections, seed=plan.seed, threads=plan.threads, progress=progress)


def _require_use(loop: Loop, fitted: Sequence[Defence]) -> None:
    """An option that has nothing to act on is a mistake, not a wish to be passed over."""
    extras = loop.extras
    idle = {
        "--transfer": extras.transfer is not None,
        "--fit-counts": bool(extras.fit_counts),
        "--fit-on": extras.fit_on is not None,
    }
    asked = [option for option, given in idle.items() if given]
    if asked and not fitted:
        raise UnfaceError(f"{asked[0]}: no eraser is fitted in this audit; name one with --eraser, or leave it out")
    for defence in fitted:
        rank, most = defence.projection.rank, len(defence.fit.names) if defence.fit else 0
        if extras.fit_counts and not any(rank < number <= most for number in extras.fit_counts):
            raise UnfaceError(f"--fit-counts: none lies above rank {rank} and within the {most} fit identities")


def _defender(loop: Loop) -> Defender:
    people = fit_set(loop.prepared, loop.extras.fit_on, loop.attack.plan.variant)
    if loop.extras.utility_aware is None:
        return Defender(people)
    task = loop.extras.utility_aware.unit()
    require_same_space(people.space, task.space)
    require_other_vectors(loop.prepared.embeddings, task)
    return Defender(people, task.vectors)


def _defences(loop: Loop, defender: Defender, progress: Progress) -> list[Defence]:
    extras, embeddings = loop.extras, loop.prepared.embeddings
    made = [
        ready_defence(projection, f"projection {number}".removesuffix(" 1"), embeddings)
        for number, projection in enumerate(extras.projections, 1)
    ]
    methods = loop.methods
    if methods is None:
        methods = () if made or not can_fit(_USUAL, loop.rule, defender) else _USUAL
    if defender.task is not None and not any(method in UTILITY_AWARE for method in methods):
        methods = (*methods, _USUAL_AWARE)
    made += fit_erasers(methods, loop.rule, defender, embeddings, loop.attack, progress)
    return [*made, *equal_controls(made, defender)]


def _spaces(loop: Loop, defences: list[Defence], useful: Survival, progress: Progress) -> list[SpaceResult]:
    prepared, attack = loop.prepared, loop.attack
    vectors = prepared.embeddings.vectors
    raw = attack.run(vectors, progress, "raw")
    _require_some_rate(raw.panel, attack.plan)
    attacked = {"raw": raw}
    for defence in defences:
        attacked[defence.name] = attack.run(defence.apply(vectors), progress, defence.name)
    return [
        SpaceResult(name="raw", points=space_points(raw, attack, prepared.context), curves=space_curves(raw)),
        *(
            SpaceResult(
                name=defence.name,
                erasure=erasure_part(defence, prepared),
                points=space_points(attacked[defence.name], attack, prepared.context),
                curves=space_curves(attacked[defence.name]),
                changes=changes(_rivals(defence, defences, attacked), attacked[defence.name], attack),
                utility=useful.kept(defence.projection),
            )
            for defence in defences
        ),
    ]


def _rivals(defence: Defence, defences: list[Defence], attacked: dict[str, Attacked]) -> dict[str, Attacked]:
    """What a space is compared with: the raw one, and whatever else removed as many dimensions."""
    rank = defence.projection.rank
    equal = [other.name for other in defences if other.projection.rank == rank and other is not defence]
    return {name: attacked[name] for name in ("raw", *equal)}


def _second_side(given: EmbeddingSet, loop: Loop, defender: Defender) -> Side:
    for people in (loop.prepared.embeddings, defender.people):
        require_strangers(people, given)
    attack = loop.attack
    plan = attack.plan
    prepared = prepare(given, variant=plan.variant, seed=plan.seed)
    most = max(plan.ks)
    if most + 2 > prepared.curation.images:
        raise UnfaceError(
            f"{given.source}: {prepared.curation.images} images for each identity; k = {most} needs {most + 2} of them "
            "in both sets: ask for a smaller --k"
        )
    weights = attack.bootstrap.for_people(prepared.roles.calibrate.count, prepared.roles.test.count, plan.seed)
    return Side(given, prepared, replace(attack, roles=prepared.roles, bootstrap=weights))


def _some(sweep: Sweep | None) -> list[Sweep]:
    return [] if sweep is None else [sweep]


def _require_some_rate(panel: Panel, plan: Plan) -> None:
    if panel.trials:
        return
    far = max(plan.fars)
    k, resolved = max(panel.resolved.items(), key=lambda item: item[1].impostors)
    raise UnfaceError(
        f"FAR {rate(far)} cannot be resolved: at k = {k} calibrate has {resolved.impostors:,} impostor pairs, so fewer "
        f"than 3 false accepts are expected; {resolved.needed[far]} calibrate identities are needed, or a higher --far"
    )
