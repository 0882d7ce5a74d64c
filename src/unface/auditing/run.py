"""``unface.audit``: the whole measurement, from embeddings to an AuditResult."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from unface._version import __version__
from unface.auditing.describe import (
    controls_part,
    curated_part,
    given_part,
    not_measured,
    protocol_part,
    role_counts,
    suspect_rows,
)
from unface.auditing.findings import find, verdict
from unface.auditing.inputs import prepare
from unface.auditing.points import space_result
from unface.auditing.schema import AuditResult, Run
from unface.auditing.words import rate
from unface.data import Source, read_embeddings
from unface.errors import UnfaceError
from unface.metrics import Scheme
from unface.probe import (
    PROBES,
    Panel,
    Plan,
    Variant,
    draw_bootstrap,
    lookalikes,
    near_duplicates,
    pick_probes,
    run_panel,
    shuffled_control,
    strays,
)
from unface.progress import Progress, Silent


def audit(
    embeddings: Source,
    *,
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
    """Measure how well identities can be told from embeddings, open-set and at low false-accept rates.

    ``embeddings`` is anything ``read_embeddings`` takes. ``ks`` defaults to those of 1, 4, 16 that the images allow.
    ``group`` or ``context`` name a column that says which pictures share their surroundings.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    progress = progress or Silent()
    given = read_embeddings(embeddings, context=context)
    fars = (fars,) if isinstance(fars, int | float) else tuple(fars)
    ks = (ks,) if isinstance(ks, int) else ks
    chosen = pick_probes((probes,) if isinstance(probes, str) else probes)
    plan = Plan(fars=tuple(dict.fromkeys(fars)), seeds=seeds, seed=seed, variant=_variant(variant), quota=quota)
    plan = replace(plan, threads=threads, device=device)
    prepared = prepare(
        given,
        images=images,
        ks=ks,
        split_column=split_column,
        group=group,
        context=context,
        variant=plan.variant,
        seed=seed,
    )
    plan = replace(plan, ks=prepared.ks)
    roles, vectors = prepared.roles, prepared.embeddings.vectors
    scheme = _scheme(bootstrap)
    if bootstraps < 2 or (bootstraps % 2 and scheme is Scheme.DOUBLE_OR_NOTHING):
        raise UnfaceError(f"double-or-nothing replicates come in mirrored pairs; give an even number, not {bootstraps}")
    weights = draw_bootstrap(scheme, roles.calibrate.count, roles.test.count, bootstraps, seed)

    panel = run_panel(vectors, roles, chosen, plan, progress)
    _require_some_rate(panel, plan)
    names = [probe.name for probe in chosen]
    raw = space_result("raw", panel, names, plan=plan, bootstrap=weights, context=prepared.context, test=roles.test)
    control = shuffled_control(vectors, roles, chosen, plan, weights, progress)
    duplicates = near_duplicates(prepared.embeddings, device=device, threads=threads)
    doubles = lookalikes(prepared.embeddings)
    lost = strays(prepared.embeddings)
    controls = controls_part(control, duplicates, doubles, lost)
    findings = find(raw.points, controls, prepared.dropped_ks, prepared.curation.images)
    return AuditResult(
        valid=not any(finding.severity == "invalid" for finding in findings),
        verdict=verdict(raw.points, findings),
        findings=findings,
        not_measured=not_measured(any(point.context_adjusted for point in raw.points), names),
        source=given_part(given),
        curated=curated_part(prepared),
        roles=role_counts(prepared),
        protocol=protocol_part(plan, names, scheme, bootstraps, weights.level),
        spaces=[raw],
        controls=controls,
        run=Run(
            unface=__version__,
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - clock, 3),
        ),
        suspects=suspect_rows(duplicates, doubles, lost),
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


def _require_some_rate(panel: Panel, plan: Plan) -> None:
    if panel.trials:
        return
    far = max(plan.fars)
    k, resolved = max(panel.resolved.items(), key=lambda item: item[1].impostors)
    raise UnfaceError(
        f"FAR {rate(far)} cannot be resolved: at k = {k} calibrate has {resolved.impostors:,} impostor pairs, so fewer "
        f"than 3 false accepts are expected; {resolved.needed[far]} calibrate identities are needed, or a higher --far"
    )
