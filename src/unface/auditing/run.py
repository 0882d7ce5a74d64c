"""``unface.audit``: attack the vectors, erase, attack again, and let every part measure what it is there for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from unface.auditing.albums import Albums
from unface.auditing.attack import Attack
from unface.auditing.bench import Bench, describe_given
from unface.auditing.copies import (
    Copies,
    copy_set,
    nuisance_of,
    pictures_of,
    read_copies,
    with_copies,
    without_copies,
)
from unface.auditing.defence import (
    Defender,
    GateSet,
    RankRule,
    erased_for_themselves,
    erased_source,
    fit_set,
)
from unface.auditing.erasure.run import attack_spaces, make_defences
from unface.auditing.exposure import Exposures
from unface.auditing.leakage.run import check_controls
from unface.auditing.maps import Maps
from unface.auditing.protocol import Prepared, Protocol, Shots, prepare, require_rates
from unface.auditing.search import Search
from unface.auditing.strangers import require_strangers, rows_again
from unface.auditing.sweeps import Sweeps
from unface.auditing.utility import Utility
from unface.auditing.utility.run import utility_tasks_of
from unface.data import (
    Curation,
    EmbeddingSet,
    Role,
    Source,
    Split,
    read_embeddings,
    split_from_column,
)
from unface.data.curate import LEARNED, images_of_each, lost_images
from unface.erase import KEEPER, Projection
from unface.erase.file import to_bytes
from unface.erase.gate import MISS
from unface.errors import UnfaceError
from unface.memory import numbers_take
from unface.probe import GroupContext, Plan, Roles, draw_bootstrap, role_rows
from unface.progress import Progress, Silent
from unface.result.audit import AuditResult, Controls, Curated, MeasuredProtocol, RoleCounts
from unface.result.file import Clock, Finding, Given, note, warning
from unface.result.parts import Part, installed_part, parts_of
from unface.result.verdict import verdict
from unface.result.words import count, percent
from unface.threads import one_blas_thread

# Measured, beside those of the file: the set as given, curated, erased, and in double precision where it is fitted.
_BYTES_OF_A_NUMBER = 28
# Of the people: where more are left out, the numbers are those of a selection.
_MANY_LEFT_OUT = 0.1
_SEVERITIES = ("invalid", "warning", "note")


@one_blas_thread()
def audit(
    source: Source,
    *,
    far: float | Sequence[float] | None = None,
    k: Shots | Sequence[Shots] | None = None,
    eraser: str | Sequence[str] | None = None,
    rank: int | float | str | None = None,
    keep: int | None = None,
    mu: float | None = None,
    fit_on: Source | None = None,
    attacker_data: Source | None = None,
    spare: Source | None = None,
    gate: Source | None = None,
    miss: float = MISS,
    copies: Source | None = None,
    projections: Sequence[Projection] = (),
    utility: Sequence[Source] = (),
    parts: Part | Sequence[Part] | None = None,
    protocol: Protocol | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Measure how well identities can be linked from embeddings, erase, and measure again with attackers trained anew.

    ``source`` and all other sets are anything ``read_embeddings`` takes. ``far`` and ``k`` override those of the
    ``protocol``, which holds every other setting of the measurement.

    ``eraser`` names one or several such as "isp" (the default where identities are there to fit it on), "leace" or
    "sal"; "none" measures the raw space alone. They are fitted on the set's own fit identities, or on ``fit_on``, at a
    ``rank``: dimensions to remove (12), a share of the class means' variance (0.95), or the smallest rank that meets a
    target ("0.05@1e-4": at most 5 % at FAR 1e-4 on calibrate). Two controls of equal rank are always measured beside
    them. ``spare`` are vectors of a task that a further eraser may spare, or that "keeper" keeps; ``copies`` are copies
    of pictures, by the ids of their originals in ``copy_of``, for "keeper". Rows of ``source`` that name an original
    there are copies too, and no pictures of their own. ``keep`` are the dimensions that "keeper" keeps, ``mu`` says how
    much people count beside copies; with a target it chooses what is not given. ``projections`` are ready ones.
    ``gate`` are vectors without faces: then only what a gate takes for a face is erased, also by the controls, and the
    upper bound of the share of faces it misses is to stay below ``miss``.

    ``attacker_data`` are people only the attacker has: they join the train identities, and are refused where one
    of them is in another set by name or by a nearly equal vector.

    ``utility`` sets say what the vectors are for: classes as identities, or copies by a column ``copy_of``. ``parts``
    are further measurements, by default albums, search, exposures, sweeps and maps; ``unface.auditing`` has others.
    """
    clock = Clock()
    further = _usual_parts() if parts is None else (parts,) if isinstance(parts, Part) else tuple(parts)
    _require_readers(further)
    protocol = protocol or Protocol()
    protocol = replace(protocol, far=protocol.far if far is None else far, k=protocol.k if k is None else k)
    given = _read(source, protocol)
    probes = protocol.probes()
    plan, scheme, rule = protocol.plan(), protocol.scheme(), RankRule.of(rank, keep, mu)
    methods = () if eraser == "none" else (eraser,) if isinstance(eraser, str) else eraser
    rule.require_keeper(methods or ())
    copied = None if copies is None else _read_beside(copies)
    _require_different(given)
    given, known = _known_copies(given, copied)
    prepared = require_rates(prepare(given, protocol), protocol)
    other = None if fit_on is None else _read_beside(fit_on)
    theirs = _attacker_data(attacker_data, plan)
    spared = None if spare is None else _read_beside(spare)
    without_faces = None if gate is None else _read_beside(gate, identity=None)
    alike = _compared_with_others(prepared.embeddings, other, theirs, spared, without_faces, plan)
    prepared = prepared if theirs is None else with_attacker_data(prepared, theirs)
    people = prepared.roles
    weights = draw_bootstrap(scheme, people.calibrate.count, people.test.count, protocol.bootstraps, protocol.seed)
    attack = Attack(people, probes, replace(plan, ks=prepared.ks, everything=prepared.everything), weights)

    sets = [_read_beside(one) for one in utility]
    defender = Defender(fit_set(prepared, other, plan.variant), None if spared is None else spared.unit().vectors)
    if without_faces is not None:
        defender = replace(defender, gate_set=GateSet.of(without_faces, miss, protocol.seed, known))
    keeps, useful = methods is not None and KEEPER in methods, sets
    if keeps and spared is not None:
        defender = replace(defender, nuisance=nuisance_of(None, spared.unit()))
    if known is not None:
        found = _copies_to_find(known, given, prepared)
        useful = [*sets, *([] if found is None else [found])]
        if keeps:
            defender = with_copies(defender, known, given, prepared)
    tasks = utility_tasks_of(prepared.embeddings, useful, plan.seed, weights.level)
    erased_by, ready_made = erased_source(prepared, projections)
    defences = make_defences(methods, rule, ready_made, defender, prepared, attack, progress or Silent())
    bench = Bench(given, prepared, attack, defender, defences, tasks, progress or Silent(), erased_by)
    idle = {"--fit-on": other is not None, "--gate": gate is not None, "--rank, --energy or --target": rank is not None}
    for option, is_given in idle.items():
        if is_given and not bench.fitted:
            raise UnfaceError(f"{option}: no eraser is fitted in this audit; name one with --eraser, or leave it out")

    asked: list[Part] = [Utility(sets, spared), *further]
    ready = [part.before(bench) for part in asked]
    bench = replace(bench, spaces=attack_spaces(bench))
    sections = {part.name: _section(part, bench, found) for part, found in zip(asked, ready, strict=True)}
    controls = check_controls(bench)
    bench.findings.extend(
        [
            *alike,
            *erased_for_themselves(prepared),
            *_size(prepared, plan),
            *_lost_to_bad_rows(prepared, given, plan),
            *_measured_on_gate_set(without_faces, sets),
        ]
    )
    measured = {name: section for name, section in sections.items() if section is not None}
    return _concluded(bench, controls, measured, (other, without_faces, theirs, copied), clock)


def _known_copies(given: EmbeddingSet, copied: EmbeddingSet | None) -> tuple[EmbeddingSet, Copies | None]:
    """The audited pictures, and copies of them in the same set or in another."""
    given, known = without_copies(given)
    if copied is not None and known is not None:
        raise UnfaceError("--copies: SRC itself has copies in 'copy_of'; leave one of them out")
    return given, known if copied is None else read_copies(copied, given)


def _read(source: Source, protocol: Protocol) -> EmbeddingSet:
    """The audited set; refused where an audit of it would need more memory than there is."""
    with numbers_take(_BYTES_OF_A_NUMBER):
        return read_embeddings(
            source,
            vector=protocol.vector,
            identity=protocol.identity,
            id=protocol.id,
            context=protocol.context,
            bad_rows=protocol.bad_rows,
            sample=protocol.sample,
            seed=protocol.seed,
        )


def _require_different(given: EmbeddingSet) -> None:
    """Refuse a column that nobody has filled: no attacker could link anything in it, and every limit would hold."""
    first = given.vectors[0]
    blocks = (given.vectors[at : at + 4096] for at in range(0, len(given), 4096))
    if all(np.abs(block - first).max() <= 1e-6 * np.abs(first).max() for block in blocks):
        raise UnfaceError(
            f"{given.source}: all {len(given):,} vectors are the same, so nothing can be measured; check that the "
            "encoder saw the pictures, and --vector-column"
        )


def _read_beside(source: Source, identity: str | None = "identity") -> EmbeddingSet:
    """A further set, which takes as much memory for each of its numbers."""
    with numbers_take(_BYTES_OF_A_NUMBER):
        return read_embeddings(source, identity=identity)


def _attacker_data(source: Source | None, plan: Plan) -> EmbeddingSet | None:
    if source is None:
        return None
    if plan.hold_out:
        raise UnfaceError("--attacker-data: the paper variant has no attacker with more people; leave one out")
    return _read_beside(source)


def _compared_with_others(
    audited: EmbeddingSet,
    fit_on: EmbeddingSet | None,
    theirs: EmbeddingSet | None,
    spared: EmbeddingSet | None,
    without_faces: EmbeddingSet | None,
    plan: Plan,
) -> list[Finding]:
    """Refuse pictures that are in two of the sets; say which sets have people who look like audited ones."""
    found = []
    for option, other, beside in (
        ("--fit-on", fit_on, [audited]),
        ("--attacker-data", theirs, [audited] if fit_on is None else [audited, fit_on]),
        ("--spare", spared, [audited]),
        ("--gate", without_faces, [audited]),
    ):
        people = option in ("--fit-on", "--attacker-data")
        for one in [] if other is None else beside:
            assert other is not None
            found += require_strangers(option, other, one, by_name=people, device=plan.device, threads=plan.threads)
    return found


def _size(prepared: Prepared, plan: Plan) -> list[Finding]:
    """Whether only some of the identities or their pictures were audited."""
    curation = prepared.curation
    found = [*_people_left_out(curation, plan), *_pictures_left_out(curation, plan)]
    if prepared.drawn_from is None:
        return found
    used = curation.identities_kept
    text = f"{used:,} of {prepared.drawn_from:,} identities were drawn at random and audited; intervals count these"
    return [*found, note("size", f"{text} alone. Protocol(max_identities=…) draws more")]


def _people_left_out(curation: Curation, plan: Plan) -> list[Finding]:
    """How many, which share, and why; who is left out of many of them may be easier or harder to link."""
    dropped, everybody = curation.identities_dropped, curation.identities_kept + curation.identities_dropped
    if not dropped:
        return []
    share = percent(dropped / everybody)
    text = f"{dropped:,} of {count(everybody, 'person', 'people')} ({share}) were left out: "
    if plan.hold_out:
        text += f"the paper variant needs {count(curation.images, 'picture')} of each. --images takes fewer"
    else:
        text += "they have one picture, and nothing to compare it with"
    return [(warning if dropped > _MANY_LEFT_OUT * everybody else note)("size", text)]


def _pictures_left_out(curation: Curation, plan: Plan) -> list[Finding]:
    if not curation.rows_dropped:
        return []
    images, whole = count(curation.images, "picture"), curation.rows_kept + curation.rows_dropped
    text = f"{curation.rows_dropped:,} of {count(whole, 'picture')} were left out: "
    if plan.hold_out:
        return [note("size", f"{text}exactly {images} of each person are used. --images sets the number")]
    text += f"calibrate and test people bring at most {images} each, fit and train people at most {LEARNED}"
    return [note("size", f"{text}. --images sets the first number")]


def _lost_to_bad_rows(prepared: Prepared, given: EmbeddingSet, plan: Plan) -> list[Finding]:
    """Whether bad rows left people with fewer images than the audit needs of each."""
    if given.bad_rows is None:
        return []
    images, sizes = prepared.curation.images if plan.hold_out else 2, images_of_each(given)
    short = (sizes < images) & (sizes + lost_images(given) >= images)
    if not short.any():
        return []
    people = count(int(short.sum()), "person has", "people have")
    return [note("size", f"{people} fewer than {images} pictures without their bad rows; they were not audited")]


def _usual_parts() -> tuple[Part, ...]:
    """What an audit measures beside the spaces themselves."""
    return Albums(), Search(), Exposures(), Sweeps(), Maps()


def _measured_on_gate_set(gate_set: EmbeddingSet | None, sets: Sequence[EmbeddingSet]) -> list[Finding]:
    """A utility set whose vectors the face gate has learned not to take for faces."""
    return [
        warning(
            "utility",
            f"{count(again, 'vector')} of {name} also in the gate set, so utility looks better than it is: "
            "measure on other pictures",
        )
        for name, again in ({} if gate_set is None else rows_again(gate_set, sets)).items()
    ]


def _section(part: Part, bench: Bench, ready: object) -> BaseModel | None:
    section = part.run(bench, ready)
    if section is not None and not isinstance(section, part.schema):
        raise UnfaceError(f"part {part.name!r}: measured {type(section).__name__}, expected {part.schema.__name__}")
    return section


def _require_readers(parts: Sequence[Part]) -> None:
    """A section is read by the class that is installed under its name; what has none is refused before the attack."""
    names = [Utility.name]
    for part in parts:
        reader = installed_part(part.name) if isinstance(part, Part) else None
        if reader is None or not isinstance(part, reader):
            told = "is not an instance of an installed part; register its class under the entry point unface.parts"
            raise UnfaceError(f"parts: {getattr(part, 'name', part)!r} {told}")
        if part.name in names:
            raise UnfaceError(f"parts: {part.name!r} is given twice; an audit has one section of each part")
        names.append(part.name)


def _copies_to_find(known: Copies, given: EmbeddingSet, prepared: Prepared) -> EmbeddingSet | None:
    """Copies of test pictures among all test pictures: what every space is asked to find."""
    return copy_set(known.of(prepared.split, Role.TEST), pictures_of(given, prepared.split, Role.TEST), "copies")


def _source(bench: Bench) -> Given:
    """The audited set, with the columns that say what surrounds each picture, and who is in which group."""
    described, context, groups = describe_given(bench.given), bench.prepared.context, bench.prepared.groups
    columns = dict(described.columns)
    if context is not None:
        columns["group" if isinstance(context, GroupContext) else "context"] = context.name
    if groups is not None:
        columns["group"] = groups.column
    return described.model_copy(update={"columns": columns})


def _concluded(
    bench: Bench,
    controls: Controls,
    sections: dict[str, Any],
    fitted_with: tuple[EmbeddingSet | None, ...],
    clock: Clock,
) -> AuditResult:
    """All of it as one result; findings, verdict and what was not measured are functions of the numbers in it."""
    fit_on, gate_set, theirs, copied = (None if one is None else describe_given(one) for one in fitted_with)
    prepared, plan, bootstrap = bench.prepared, bench.attack.plan, bench.attack.bootstrap
    curation, counts = prepared.curation, prepared.split.counts()
    numbers = AuditResult(
        valid=True,
        verdict="",
        findings=[],
        not_measured=[],
        source=_source(bench),
        curated=Curated(
            images=curation.images,
            most=prepared.everything,
            identities=curation.identities_kept,
            identities_dropped=curation.identities_dropped,
            rows=curation.rows_kept,
            rows_dropped=curation.rows_dropped,
        ),
        roles=RoleCounts(
            **{role.value: counts[role] for role in (Role.FIT, Role.TRAIN, Role.CALIBRATE, Role.TEST)},
            seed=prepared.split.seed,
            sha256=prepared.split.hash,
        ),
        protocol=MeasuredProtocol(
            variant=plan.variant.value,
            far=list(plan.fars),
            k=list(plan.ks),
            seeds=plan.seeds,
            seed=plan.seed,
            probe=bench.attack.names,
            score="cosine of each probe's vectors; plda: log-likelihood ratio",
            bootstrap=bootstrap.scheme.value,
            bootstraps=len(bootstrap.test),
            level=bootstrap.level,
            impostor_quota=plan.quota,
        ),
        spaces=list(bench.spaces),
        fit_source=fit_on,
        attacker_source=theirs,
        gate_source=gate_set,
        copy_source=copied,
        erased_by=bench.erased_by,
        projections={defence.name: to_bytes(defence.projection) for defence in bench.fitted},
        controls=controls,
        parts=sections,
        run=clock.run(),
        listings=bench.listings,
    )
    readers = parts_of(numbers)
    findings = [*(finding for part in readers for finding in part.findings(numbers)), *bench.findings]
    findings.sort(key=lambda finding: _SEVERITIES.index(finding.severity))
    numbers = numbers.model_copy(
        update={
            "valid": not any(finding.severity == "invalid" for finding in findings),
            "findings": findings,
            "not_measured": [
                *bench.not_measured,
                *(missing for part in readers for missing in part.not_measured(numbers)),
            ],
        }
    )
    return numbers.model_copy(update={"verdict": verdict(numbers)})


def with_attacker_data(prepared: Prepared, theirs: EmbeddingSet) -> Prepared:
    """The audited set and behind it the attacker's own people: all are train identities, with all their pictures."""
    theirs = theirs.unit()
    audited = prepared.embeddings
    both = EmbeddingSet.from_arrays(
        np.concatenate([audited.vectors, theirs.vectors]),
        [*_names(audited), *_names(theirs)],
        ids=[*audited.ids, *(f"attacker's {one}" for one in theirs.ids)],
        labels={name: _padded(column, theirs, name) for name, column in audited.labels.items()},
        space=audited.space,
        source=audited.source,
    )
    attackers = split_from_column(list(theirs.names), [Role.TRAIN.value] * len(theirs.names))
    split = Split({**prepared.split.roles, **attackers.roles}, prepared.split.seed)
    roles = Roles(*(role_rows(both, split, role) for role in (Role.TRAIN, Role.CALIBRATE, Role.TEST)))
    return replace(prepared, embeddings=both, split=split, roles=roles)


def _names(people: EmbeddingSet) -> list[str]:
    return [people.names[code] for code in people.identities]


def _padded(column: NDArray[np.generic], theirs: EmbeddingSet, name: str) -> NDArray[np.generic]:
    """A column of the audited set with the attacker's own values behind it, or with nothing where there are none."""
    if name in theirs.labels and theirs.labels[name].shape[1:] == column.shape[1:]:
        return np.concatenate([column, theirs.labels[name]])
    if column.dtype.kind == "f":
        return np.concatenate([column, np.full((len(theirs), *column.shape[1:]), np.nan, column.dtype)])
    return np.concatenate([column.astype(object), np.full((len(theirs), *column.shape[1:]), None, object)])
