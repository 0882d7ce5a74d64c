"""``unface fit``: an eraser on a set of one's own, certified on identities that it was not fitted on.

In memory, or from the sums of one read over a collection of any size. With ``--from audit.json`` the projection that
an audit measured is fitted again and compared with its hash.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.auditing.attack import Attack
from unface.auditing.copies import Copies, nuisance_of, read_copies, with_copies, without_copies
from unface.auditing.defence import (
    Defender,
    GateSet,
    RankRule,
    certified,
    choose_keeper,
    choose_rank,
    fit_again,
    fit_set,
    plain_rank,
)
from unface.auditing.protocol import Protocol, prepare, require_rates
from unface.auditing.strangers import require_strangers
from unface.auditing.utility import Utility
from unface.data import EmbeddingSet, Role, Source, Space, read_embeddings, require_same_space, split_identities
from unface.data.arrow import list_type, matrix_of
from unface.data.embeddings import METADATA_KEY, codes_of, on_bad_rows, space_from_json
from unface.data.files import without_parquet
from unface.data.parquet import opened_parquet, row_batches
from unface.erase import (
    CONTROLS,
    ERASERS,
    ISP,
    KEEPER,
    USUAL_MU,
    UTILITY_AWARE,
    ClosedFormEraser,
    Projection,
    certificate,
    make_eraser,
    usual_rank,
)
from unface.erase.eraser import chosen_rank
from unface.erase.fitted_on import FittedOn
from unface.erase.gate import MISS
from unface.errors import UnfaceError
from unface.metrics import Scheme
from unface.moments import MomentStream
from unface.output.place import Place, place_at
from unface.probe import USUAL_PROBES, Plan, Variant, draw_bootstrap, pick_probes
from unface.progress import Progress, Silent
from unface.result.audit import AuditResult, SpaceResult
from unface.result.file import Given
from unface.scale.executor import Executor, local_executor
from unface.scale.stream import NO_IDS
from unface.scale.sums import Gather, NamesJob, PartSums, SumsJob, cut_identities, gather_here

_MOST_HELD_ROWS = 200_000
"""For the certificate: whole identities up to so many rows are kept, whatever the size of the collection."""
_ROWS_AT_ONCE = 1 << 10
_HOLD_OUT = 0.2
"""Share of the people a projection is certified on, by default."""


def fit_certified(
    source: Source,
    eraser: str = "isp",
    *,
    rank: int | float | str | None = None,
    keep: int | None = None,
    mu: float | None = None,
    spare: Source | None = None,
    gate: Source | None = None,
    miss: float = MISS,
    copies: Source | None = None,
    hold_out: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Projection:
    """Fit ``eraser`` on all identities but a share ``hold_out``, a fifth, on which the projection is certified.

    ``rank`` is that of ``unface.audit``. With a target such as "0.05@1e-4" the identities are split as in an audit:
    fitted on fit, attacked by train, judged on calibrate, certified on test. ``spare`` are vectors of a task, for the
    erasers that spare one; ``keep`` and ``mu`` are for a keeper. With ``gate`` and ``miss``, as those of
    ``unface.audit``, only faces are erased.
    """
    given = read_embeddings(source)
    rule, method = RankRule.of(rank, keep, mu), eraser
    rule.require_keeper((method,))
    progress = progress or Silent()
    # A gate has use for copies too, whatever the eraser.
    require_use(method, spare=spare is not None, copies=copies is not None and (gate is None or method == KEEPER))
    given, known = without_copies(given)
    if copies is not None:
        if known is not None:
            raise UnfaceError("--copies: SRC itself has copies in 'copy_of'; leave one of them out")
        known = read_copies(copies, given)
    task = _task(given, spare)
    if rule.target is not None:
        if hold_out is not None:
            raise UnfaceError("--hold-out: with --target the people are divided as in an audit; leave it out")
        plan = Plan(fars=(rule.target.far,), seed=seed, threads=threads)
        gate_set = _gate_set(given.unit(), gate, miss, seed, known)
        return _to_target(given, task, gate_set, known, method, rule, plan, progress)
    hold_out = _HOLD_OUT if hold_out is None else hold_out
    people = given.unit()
    gate_set = _gate_set(people, gate, miss, seed, known)
    nuisance = None
    if method == KEEPER and hold_out == 0:
        nuisance = nuisance_of(known, task)
    if hold_out == 0:
        return _fitted(Defender(people, _vectors(task), gate_set, nuisance), method, rule)
    shares = {Role.FIT: 1 - hold_out, Role.TEST: hold_out}
    split = split_identities(people.names, shares=shares, seed=seed)
    fit, test = (people.take(split.rows(people, role)) for role in (Role.FIT, Role.TEST))
    if method == KEEPER:
        nuisance = nuisance_of(None if known is None else known.of(split, Role.FIT), task)
    projection = _fitted(Defender(fit, _vectors(task), gate_set, nuisance), method, rule)
    try:
        return replace(projection, certificate=certificate(projection, test.vectors, test.identities))
    except UnfaceError as error:
        raise UnfaceError(f"{error}; raise --hold-out, or use 0 for no certificate") from None


def require_use(method: str, *, spare: bool, copies: bool) -> None:
    """Refuse a task or copies that an eraser has no use for."""
    if spare and method not in (*UTILITY_AWARE, KEEPER):
        able = " or ".join((*UTILITY_AWARE, KEEPER))
        raise UnfaceError(f"{method}: does not preserve a task; leave --spare out, or use --eraser {able}")
    if copies and method != KEEPER:
        raise UnfaceError(f"{method}: does not learn from copies; leave --copies out, or use --eraser {KEEPER}")
    if copies and spare:
        raise UnfaceError(f"{KEEPER}: learns from copies of pictures or from a task; give --copies or --spare")


def _task(given: EmbeddingSet, source: Source | None) -> EmbeddingSet | None:
    if source is None:
        return None
    task = read_embeddings(source).unit()
    require_strangers("--spare", task, given, by_name=False)
    return task


def _vectors(task: EmbeddingSet | None) -> NDArray[np.float32] | None:
    return None if task is None else task.vectors


def _gate_set(
    people: EmbeddingSet | Space, source: Source | None, miss: float, seed: int, known: Copies | None = None
) -> GateSet | None:
    """Of people that are not in memory only the space is known."""
    if source is None:
        return None
    given = read_embeddings(source, identity=None)
    if isinstance(people, EmbeddingSet):
        require_strangers("--gate", given, people, by_name=False)
    else:
        require_same_space(replace(people, normalised=True), given.unit().space)
    return GateSet.of(given, miss, seed, known)


def _fitted(defender: Defender, method: str, rule: RankRule) -> Projection:
    return defender.project(method, plain_rank(rule, method, defender), rule.mu)


def _to_target(
    given: EmbeddingSet,
    task: EmbeddingSet | None,
    gate_set: GateSet | None,
    known: Copies | None,
    method: str,
    rule: RankRule,
    plan: Plan,
    progress: Progress,
) -> Projection:
    protocol = Protocol(far=plan.fars, variant=plan.variant, seed=plan.seed)
    option = "" if rule.target is None else f"--target {rule.target.tar:g}@"
    prepared = require_rates(prepare(given, protocol), protocol, option)
    roles = prepared.roles
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 2, plan.seed)
    plan = replace(plan, ks=prepared.ks, everything=prepared.everything)
    attack = Attack(roles, pick_probes(USUAL_PROBES), plan, weights)
    fit = prepared.embeddings.take(prepared.split.rows(prepared.embeddings, Role.FIT))
    defender = Defender(fit, _vectors(task), gate_set, nuisance_of(None, task) if method == KEEPER else None)
    if method == KEEPER:
        if known is not None:
            defender = with_copies(defender, known, given, prepared)
        rank, mu = choose_keeper(rule, defender, prepared.embeddings, attack, progress)
        projection = defender.project(method, rank, mu)
    else:
        projection = defender.project(
            method, choose_rank(rule, method, defender, prepared.embeddings, attack, progress)
        )
    test = roles.test
    return replace(
        projection, certificate=certificate(projection, prepared.embeddings.vectors[test.rows], test.identities)
    )


def is_streamed(method: str) -> bool:
    """Whether a method is fitted from sums, so that it can be on a collection of any size."""
    known = {**ERASERS, **CONTROLS}
    return method in ("random", KEEPER) or (method in known and isinstance(known[method](1), ClosedFormEraser))


def fit_streamed(
    source: str | os.PathLike[str],
    eraser: str = "isp",
    *,
    rank: int | float | None = None,
    keep: int | None = None,
    mu: float | None = None,
    gate: Source | None = None,
    miss: float = MISS,
    spare: Source | None = None,
    copies: Source | None = None,
    hold_out: float | None = None,
    vector: str = "vector",
    identity: str = "identity",
    bad_rows: str = "fail",
    seed: int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    gather: Gather = gather_here,
    progress: Progress | None = None,
    notes: list[str] | None = None,
) -> Projection:
    """As ``fit_certified``, over the Parquet files of a folder or a URL: identities are read first, then vectors once.

    Holds a sum for each identity and the rows of the certificate, no file. Ids are not looked at. Those rows also set
    the threshold of a face gate.
    ``copies`` are a file with their originals in it; they and ``spare`` are read whole, and are for a keeper. How many
    bad rows were left out is added to ``notes``.
    """
    rule, method = RankRule.of(rank, keep, mu), eraser
    rule.require_keeper((method,))
    hold_out = _HOLD_OUT if hold_out is None else hold_out
    require_use(method, spare=spare is not None, copies=copies is not None)
    task = None if spare is None else read_embeddings(spare).unit()
    nuisance = nuisance_of(None if copies is None else read_copies(copies, None), task)
    place = place_at(source)
    files = [found.name for found in place.parquet_files()]
    if not files:
        raise without_parquet(place.shown)
    space = _one_space(place, files, vector)
    if nuisance is not None and len(nuisance) != space.dim:
        raise UnfaceError(
            f"{method}: copies or task of {len(nuisance)} dimensions, SRC of {space.dim}; encode them alike"
        )
    model = make_eraser(method, 1, nuisance=nuisance)
    # What cannot work, whatever the vectors are, is refused before hours of reading.
    rule.keeper_rank(space.dim)
    chosen_rank(method, np.ones(space.dim), space.dim, space.dim + 1, rule.rank, rule.energy)
    named = [NamesJob(place.address, name, identity) for name in files]
    cut = cut_identities(executor or local_executor(threads), named, hold_out, seed, _MOST_HELD_ROWS)
    if gate is not None and hold_out == 0:
        raise UnfaceError("--gate: held-out people set its threshold; raise --hold-out")
    gate_set = _gate_set(space, gate, miss, seed)
    scatter = gate is not None or (isinstance(model, ClosedFormEraser) and model.needs_scatter())
    jobs = [
        SumsJob(place.address, name, space.dim, scatter, cut, vector, identity, on_bad_rows(bad_rows)) for name in files
    ]
    sums = gather(jobs, progress or Silent())
    if notes is not None and sums.skipped:
        notes.append(f"skipped {sums.skipped:,} of {sums.rows:,} rows: no usable vector, or no identity")
    found = _fitted_from_sums(method, rule, sums.moments, nuisance)
    record = FittedOn.of(map(str, sums.moments.names), found.directions)
    projection = replace(found, space=replace(space, normalised=True), fitted_on=record)
    return projection if hold_out == 0 else _certified(projection, sums, gate_set)


def _fitted_from_sums(
    method: str, rule: RankRule, moments: MomentStream, nuisance: NDArray[np.float64] | None
) -> Projection:
    if rule.rank is not None:
        rank = rule.rank
    elif rule.energy is not None:
        rank = ISP(energy=rule.energy).fit_moments(moments).projection_.rank
    elif method == KEEPER:
        rank = rule.keeper_rank(moments.dim)
    else:
        rank = usual_rank(moments.dim, moments.identities)
    eraser = make_eraser(method, rank, nuisance=nuisance, mu=USUAL_MU if rule.mu is None else rule.mu)
    if isinstance(eraser, ClosedFormEraser):
        return eraser.fit_moments(moments).projection_
    # Of the vectors it needs their length alone.
    return eraser.fit(np.zeros((2, moments.dim), np.float32)).projection_


def _certified(projection: Projection, sums: PartSums, gate_set: GateSet | None) -> Projection:
    try:
        codes = codes_of(np.concatenate(sums.held_names).tolist())[0] if sums.held else np.empty(0, np.int64)
        vectors = np.concatenate(sums.held) if sums.held else np.empty((0, projection.dim), np.float32)
        if gate_set is not None:
            projection = replace(projection, gate=gate_set.gate(sums.moments.moments(), vectors, codes))
        return replace(projection, certificate=certificate(projection, vectors, codes))
    except UnfaceError as error:
        advice = "raise --hold-out" if gate_set is not None else "raise --hold-out, or use 0 for no certificate"
        raise UnfaceError(f"{error}; {advice}") from None


def _one_space(place: Place, files: Sequence[str], vector: str) -> Space:
    """Of all files, read from their schemas; two spaces, or two lengths of vectors, never mix."""
    said: list[Space | None] = []
    dim = None
    for name in files:
        with place.opened(name) as file, opened_parquet(file, name) as opened:
            schema = opened.schema_arrow
            if vector not in schema.names:
                there = ", ".join(schema.names)
                raise UnfaceError(
                    f"{name}: has no column {vector!r}; there are {there}: name yours with --vector-column"
                )
            kind = list_type(schema.field(vector).type)
            matrix_of(pa.chunked_array([], kind), NO_IDS, name, vector)
            text = (schema.metadata or {}).get(METADATA_KEY)
            said.append(None if text is None else space_from_json(text, name))
            if dim is None and pa.types.is_fixed_size_list(kind):
                dim = kind.list_size
            elif dim is None:
                dim = _first_length(opened, name, vector)
        if (said[0] is None) != (said[-1] is None):
            raise UnfaceError(
                f"{files[0]} and {name}: only one of them says which space it is in; two embedding spaces never mix"
            )
        if said[0] is not None and said[-1] is not None:
            require_same_space(said[0], said[-1])
    if dim is None:
        raise UnfaceError(f"{place.shown}: no vectors in {vector!r}; at least two identities are needed")
    return said[0] or Space(encoder=None, weights_sha256=None, dim=dim, normalised=False)


def _first_length(opened: pq.ParquetFile, name: str, vector: str) -> int | None:
    """Of the first vector there is, where the type does not say; rows without one may come before it."""
    for batch in row_batches(opened, name, _ROWS_AT_ONCE, [vector]):
        there = batch.column(vector).drop_null()
        if len(there):
            return len(there[0])
    return None


_SAVE = "; run the audit again with --save-projection"


def fit_audited(
    audit: AuditResult,
    source: Source,
    eraser: str | None = None,
    *,
    spare: Source | None = None,
    gate: Source | None = None,
    copies: Source | None = None,
) -> Projection:
    """On the same fit identities, at the same rank: refused unless every byte is that of the audited projection.

    ``source`` is the audited set, ``spare``, ``gate`` and ``copies`` those of the audit; hashes say whether they are.
    ``eraser`` names the space, where the audit has several.
    """
    space = _chosen(audit, eraser)
    assert space.erasure is not None
    if audit.fit_source is not None:
        raise UnfaceError(f"--from: its erasers were fitted on another set, {audit.fit_source.name}{_SAVE}")
    if audit.roles.seed is None:
        raise UnfaceError(f"--from: its roles came from a column, which audit.json does not hold{_SAVE}")
    given, known = without_copies(read_embeddings(source))
    given = _same(given, audit.source, "SRC")
    task = _also(spare, Utility.of(audit).spared, "--spare")
    without_faces = _also(gate, audit.gate_source, "--gate")
    copied = _also(copies, audit.copy_source, "--copies")
    if copied is not None:
        known = read_copies(copied, given)
    protocol = Protocol(variant=audit.protocol.variant, seed=audit.protocol.seed, images=audit.curated.images)
    prepared = prepare(given, protocol)
    if prepared.split.hash != audit.roles.sha256:
        raise UnfaceError(f"--from: its identities have other roles than this version gives them{_SAVE}")
    gate_set = None
    if without_faces is not None and space.erasure.gate is not None:
        miss = space.erasure.gate.certificate.asked
        gate_set = GateSet.of(without_faces, miss, protocol.seed, known)
    people = fit_set(prepared, None, Variant(audit.protocol.variant))
    defender = Defender(people, None if task is None else task.unit().vectors, gate_set=gate_set)
    if space.erasure.method == KEEPER:
        if task is not None:
            defender = replace(defender, nuisance=nuisance_of(None, task.unit()))
        if known is not None:
            defender = with_copies(defender, known, given, prepared)
    projection = certified(fit_again(space.erasure, defender), prepared).projection
    if projection.sha256 != space.erasure.projection_sha256:
        raise UnfaceError(
            f"--from: now it is {projection.sha256[:12]}…, audited was {space.erasure.projection_sha256[:12]}…: "
            f"another version or machine rounds differently, or the audit had settings that it does not record{_SAVE}"
        )
    return projection


def _chosen(audit: AuditResult, eraser: str | None) -> SpaceResult:
    fitted = {one.name: one for one in audit.erased if one.erasure and one.erasure.fit_identities is not None}
    if not fitted:
        raise UnfaceError("--from: no eraser was fitted in this audit; name an audit with one")
    if eraser is None and len(fitted) > 1:
        raise UnfaceError(f"--from: the audit has {', '.join(fitted)}; choose one with --eraser")
    name = eraser or next(iter(fitted))
    if name not in fitted:
        raise UnfaceError(f"--from: the audit has no eraser {name!r}; it has {', '.join(fitted)}")
    return fitted[name]


def _also(source: Source | None, audited: Given | None, option: str) -> EmbeddingSet | None:
    if audited is None:
        if source is not None:
            raise UnfaceError(f"{option}: the audit had none; leave it out with --from")
        return None
    if source is None:
        raise UnfaceError(f"--from: the audit had {option} {audited.name} ({audited.sha256[:12]}…); give it again")
    identity = None if option == "--gate" else "identity"
    return _same(read_embeddings(source, identity=identity), audited, option)


def _same(given: EmbeddingSet, audited: Given, option: str) -> EmbeddingSet:
    if given.sha256() != audited.sha256:
        raise UnfaceError(
            f"{option} {given.source}: is not the set of the audit, which was {audited.name} of {audited.rows:,} rows "
            f"({audited.sha256[:12]}…); give that one"
        )
    return given
