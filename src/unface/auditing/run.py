"""``unface.audit``: measure, erase, measure again, from embeddings to an AuditResult."""

from collections.abc import Sequence
from dataclasses import replace

from unface.auditing.aftermath import spared_findings
from unface.auditing.attack import Attack
from unface.auditing.attributing import Subjects
from unface.auditing.clock import Clock
from unface.auditing.controls import Checked, check
from unface.auditing.describe import curated_part, given_part, not_measured, protocol_part, role_counts
from unface.auditing.findings import find, verdict
from unface.auditing.inputs import prepare
from unface.auditing.loop import Extras, Found, Loop, measure_loop
from unface.auditing.ranks import RankRule, parse_target
from unface.auditing.schema import AuditResult
from unface.data import Source, read_embeddings
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.metrics import Scheme
from unface.probe import PROBES, Plan, Variant, draw_bootstrap, pick_probes
from unface.progress import Progress, Silent


def audit(
    embeddings: Source,
    *,
    erasers: str | Sequence[str] | None = None,
    rank: int | None = None,
    energy: float | None = None,
    target: str | None = None,
    fit_on: Source | None = None,
    projections: Sequence[Projection] = (),
    utility: Sequence[Source] = (),
    utility_aware: Source | None = None,
    transfer: Source | None = None,
    attribute: str | None = None,
    attribution: Subjects | None = None,
    sweep: bool = True,
    fit_counts: Sequence[int] = (),
    maps: bool = True,
    fars: float | Sequence[float] = (1e-3, 1e-4),
    ks: int | Sequence[int] | None = None,
    seeds: int = 5,
    probes: str | Sequence[str] = tuple(PROBES),
    images: int | None = None,
    variant: str = "unface",
    split_column: str | None = None,
    group: str | None = None,
    context: str | None = None,
    quota: int | None = None,
    bootstraps: int = 2000,
    bootstrap: str = Scheme.DOUBLE_OR_NOTHING,
    seed: int = 0,
    threads: int | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> AuditResult:
    """Measure how well identities can be told from embeddings, erase, and measure again with attackers trained anew.

    ``embeddings`` and all other sets are anything ``read_embeddings`` takes. ``ks`` defaults to those of 1, 4, 16 that
    the images allow. ``group`` or ``context`` name a column that says which pictures share their surroundings.

    ``erasers`` are names such as "isp" (the default where identities are there to fit it on), "leace" or "sal"; ()
    measures the raw space alone. They are fitted on the set's own fit identities, or on ``fit_on``, at a ``rank``, at
    a share ``energy`` of the class means' variance, or at the smallest rank that meets a ``target`` such as
    "0.05@1e-4"; two controls of equal rank ride along. ``projections`` are ready ones to measure.

    ``utility`` sets say what the vectors are for: classes as identities, or copies by a column ``copy_of``;
    ``utility_aware`` is one that a further eraser may spare. ``transfer`` is a second set of faces of the same encoder;
    ``attribute`` a column of two values; ``attribution`` the pictures behind the vectors, to tell whether similarity
    rests on faces or on what is around them. ``sweep`` goes over ranks, ``fit_counts`` over numbers of fit identities;
    ``maps`` draws test identities by t-SNE.
    """
    clock = Clock()
    progress = progress or Silent()
    given = read_embeddings(embeddings, context=context)
    chosen = pick_probes((probes,) if isinstance(probes, str) else probes)
    plan = Plan(
        fars=tuple(dict.fromkeys((fars,) if isinstance(fars, int | float) else fars)),
        seeds=seeds,
        seed=seed,
        variant=_variant(variant),
        quota=quota,
        threads=threads,
        device=device,
    )
    scheme = _scheme(bootstrap)
    if bootstraps < 2 or (bootstraps % 2 and scheme is Scheme.DOUBLE_OR_NOTHING):
        raise UnfaceError(f"double-or-nothing replicates come in mirrored pairs; give an even number, not {bootstraps}")
    rule = RankRule(rank, energy, None if target is None else parse_target(target))
    prepared = prepare(
        given,
        images=images,
        ks=(ks,) if isinstance(ks, int) else ks,
        split_column=split_column,
        group=group,
        context=context,
        variant=plan.variant,
        seed=seed,
    )
    plan = replace(plan, ks=prepared.ks)
    weights = draw_bootstrap(scheme, prepared.roles.calibrate.count, prepared.roles.test.count, bootstraps, seed)
    attack = Attack(prepared.roles, chosen, plan, weights)
    extras = Extras(
        fit_on=None if fit_on is None else read_embeddings(fit_on),
        projections=tuple(projections),
        utility=tuple(read_embeddings(source) for source in utility),
        utility_aware=None if utility_aware is None else read_embeddings(utility_aware),
        transfer=None if transfer is None else read_embeddings(transfer),
        attribute=attribute,
        attribution=attribution,
        sweep=sweep,
        fit_counts=tuple(fit_counts),
        maps=maps,
    )
    methods = (erasers,) if isinstance(erasers, str) else erasers
    loop = Loop(given, prepared, attack, methods, rule, extras)
    found = measure_loop(loop, progress)
    return _result(loop, found, check(prepared, attack, progress), clock)


def _result(loop: Loop, found: Found, checked: Checked, clock: Clock) -> AuditResult:
    """All of it together, and what it comes to."""
    prepared, extras, controls = loop.prepared, loop.extras, checked.part()
    spared = spared_findings(extras.utility_aware, extras.utility)
    findings = find(found.spaces, controls, prepared.dropped_ks, prepared.curation.images, spared)
    unmeasured = not_measured(
        found.spaces,
        loop.attack.names,
        transfer=bool(found.transfers),
        utility=bool(extras.utility),
        attribution=found.attribution is not None,
    )
    return AuditResult(
        valid=not any(finding.severity == "invalid" for finding in findings),
        verdict=verdict(found.spaces, findings),
        findings=findings,
        not_measured=[*found.not_measured, *unmeasured],
        source=given_part(loop.given),
        curated=curated_part(prepared),
        roles=role_counts(prepared),
        protocol=protocol_part(loop.attack),
        spaces=found.spaces,
        sweeps=found.sweeps,
        transfers=found.transfers,
        maps=found.maps,
        attribute_swaps=found.attribute_swaps,
        attribution=None if found.attribution is None else found.attribution.part,
        utility_sources=[given_part(source) for source in extras.utility],
        utility_aware_source=None if extras.utility_aware is None else given_part(extras.utility_aware),
        fit_source=None if extras.fit_on is None else given_part(extras.fit_on),
        controls=controls,
        run=clock.run(),
        suspects=checked.suspects(),
        left_out=[] if found.attribution is None else found.attribution.left_out,
    )


def _variant(name: str) -> Variant:
    try:
        return Variant(name)
    except ValueError:
        raise UnfaceError(f"variant {name!r} is not known; use {' or '.join(Variant)}") from None


def _scheme(name: str) -> Scheme:
    try:
        return Scheme(name)
    except ValueError:
        raise UnfaceError(f"bootstrap {name!r} is not known; use {' or '.join(Scheme)}") from None
