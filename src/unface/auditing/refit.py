"""``unface fit --from audit.json``: the projection that an audit measured, fitted again and compared with its hash."""

from dataclasses import replace

from unface.auditing.copies import nuisance_of, read_copies, with_copies, without_copies
from unface.auditing.defence import Defender, GateSet, certified, fit_again, fit_set
from unface.auditing.protocol import Protocol, prepare
from unface.auditing.utility import Utility
from unface.data import EmbeddingSet, Source, read_embeddings
from unface.erase import KEEPER, Projection
from unface.errors import UnfaceError
from unface.probe import Variant
from unface.result.audit import AuditResult, SpaceResult
from unface.result.file import Given

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
        gate_set = GateSet.of(without_faces, prepared.embeddings, miss, protocol.seed)
        gate_set = replace(gate_set, copied=None if known is None else (known.copies, known.ids))
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
