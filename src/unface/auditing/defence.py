"""The defender: who erasers are fitted on, how much they remove, and the projections with controls of equal rank."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import Attack
from unface.auditing.protocol import Prepared
from unface.data import EmbeddingSet, Role, split_identities
from unface.erase import (
    CONTROLS,
    ISP,
    KEEPER,
    USUAL_MU,
    FitError,
    Projection,
    certificate,
    fit_projection,
    make_eraser,
    usual_rank,
    usually_kept,
)
from unface.erase.fitted_on import FittedOn, too_many
from unface.erase.gate import Gate, fit_gate
from unface.errors import UnfaceError
from unface.fitted import ERASED, FITTED, Remembered
from unface.moments import ClassMoments, class_moments
from unface.probe import Variant, calibrate_tar
from unface.progress import Progress
from unface.result.audit import ErasedSource, Erasure, FitOverlap, GateUse
from unface.result.file import Finding
from unface.result.numbers import Certificate, Rate
from unface.result.words import count, percent, rate

if TYPE_CHECKING:
    from unface.auditing.copies import Copies

_FEWEST_FIT_IDENTITIES = 3
_FEWEST_GATED = 4
_STEPS = 16
# Of the dimensions: what a keeper that is fitted to a target may keep, and how much people may count.
_KEPT_SHARES = (1 / 64, 1 / 32, 3 / 64, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2)
_MUS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class GateSet:
    """Unit vectors of pictures without faces, or unlabelled ones of the index, that a face gate learns from."""

    vectors: NDArray[np.float32]
    source: str
    miss: float
    """What the upper bound of the share of missed faces is to stay below."""
    seed: int
    copied: tuple[NDArray[np.float32], NDArray[np.object_]] | None = None
    """Unit vectors of altered copies of faces, and the ids of their originals: they must be on the same side."""

    @classmethod
    def of(cls, given: EmbeddingSet, miss: float, seed: int, known: "Copies | None" = None) -> "GateSet":
        """The unit vectors of a set; ``known`` are copies of faces."""
        return cls(given.unit().vectors, given.source, miss, seed, None if known is None else (known.copies, known.ids))

    def gate(
        self,
        faces: ClassMoments,
        held: NDArray[np.float32],
        identities: NDArray[np.int64],
        copies: tuple[NDArray[np.float32], NDArray[np.int64]] | None = None,
    ) -> Gate:
        """With a threshold that held faces set, and copies of them where there are any."""
        try:
            return fit_gate(faces, self.vectors, held, identities, copies=copies, miss=self.miss, seed=self.seed)
        except UnfaceError as error:
            raise UnfaceError(f"--gate {self.source}: {error}") from None


@dataclass(frozen=True, eq=False)
class Defender:
    """Unit vectors of people to learn from; ``task``, if given, are unit vectors of what must stay useful.

    With a ``gate_set``, everything that is fitted stands behind a face gate: one half of the people teaches it what a
    face is, the other half sets its threshold.
    """

    people: EmbeddingSet
    task: NDArray[np.float32] | None = None
    gate_set: GateSet | None = None
    nuisance: NDArray[np.float64] | None = None
    """(d, d) of copies, or of the task's classes, for a keeper."""
    useful: Callable[[Projection], float] | None = None
    """On calibrate: what a keeper that is fitted to a target must keep most of."""

    @cached_property
    def gate(self) -> Gate | None:
        """Fitted when it is first asked for."""
        if self.gate_set is None:
            return None
        people = self.people
        if self.identities < _FEWEST_GATED:
            raise UnfaceError(
                f"--gate: {count(self.identities, 'identity', 'identities')} to fit on; a face gate needs at least "
                f"{_FEWEST_GATED}, half of them to set its threshold"
            )
        split = split_identities(people.names, shares={Role.FIT: 0.5, Role.TEST: 0.5}, seed=self.gate_set.seed)
        learned, held = (people.take(split.rows(people, role)) for role in (Role.FIT, Role.TEST))
        copies = None
        if self.gate_set.copied is not None:
            vectors, ids = self.gate_set.copied
            row_of = {name: row for row, name in enumerate(held.ids.tolist())}
            rows = np.array([row_of.get(name, -1) for name in ids.tolist()], np.int64)
            copies = vectors[rows >= 0], rows[rows >= 0]
        faces = class_moments(learned.vectors, learned.identities)
        return self.gate_set.gate(faces, held.vectors, held.identities, copies)

    @property
    def dim(self) -> int:
        """Dimensions of the space."""
        return self.people.space.dim

    @property
    def identities(self) -> int:
        """How many people."""
        return len(self.people.names)

    def project(self, method: str, rank: int, mu: float | None = None) -> Projection:
        """Fit a method by its name; ``mu`` is for a keeper."""
        eraser = make_eraser(method, rank, self.task, nuisance=self.nuisance, mu=USUAL_MU if mu is None else mu)
        return replace(fit_projection(eraser, self.people), gate=self.gate)

    def only(self, chosen: NDArray[np.bool_]) -> "Defender":
        """The same with some of the rows."""
        return replace(self, people=self.people.take(chosen))


@dataclass(frozen=True)
class Target:
    """The highest worst-case TAR, on calibrate identities, that is acceptable at a rate."""

    tar: float
    far: float

    def __str__(self) -> str:
        return f"at most {percent(self.tar)} at FAR {rate(self.far)}"


@dataclass(frozen=True)
class RankRule:
    """At most one of the first three; none means three eighths of the dimensions, or what the fit identities allow."""

    rank: int | None = None
    energy: float | None = None
    target: Target | None = None
    keep: int | None = None
    """Dimensions that a keeper keeps."""
    mu: float | None = None
    """How much people count beside copies, for a keeper."""

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.rank, self.energy, self.target)) > 1:
            raise UnfaceError("rank, energy and target each set how many dimensions are removed; give one")
        if self.rank is not None and self.rank < 1:
            raise UnfaceError(f"rank {self.rank}; an eraser removes at least one dimension")
        if self.keep is not None and (self.rank is not None or self.energy is not None):
            raise UnfaceError("--keep: --rank or --energy decides that too; give one of them")
        if self.keep is not None and self.keep < 1:
            raise UnfaceError(f"--keep {self.keep}: {KEEPER} keeps at least one dimension")
        if self.mu is not None and not 0 <= self.mu < float("inf"):
            raise UnfaceError(f"--mu {self.mu:g}: expected 0 or more")

    def require_keeper(self, methods: Sequence[str]) -> None:
        """Refuse what only a keeper has use for where none is fitted."""
        for option, value in (("--keep", self.keep), ("--mu", self.mu)):
            if value is not None and KEEPER not in methods:
                raise UnfaceError(f"{option}: is for --eraser {KEEPER}, which is not fitted here; leave it out")

    def keeper_rank(self, dim: int) -> int:
        """Dimensions that a keeper removes, where neither rank nor energy is given."""
        kept = usually_kept(dim) if self.keep is None else self.keep
        if self.keep is not None and self.keep >= dim:
            raise UnfaceError(f"--keep {self.keep}: of {dim} dimensions; keep at most {dim - 1}")
        return dim - kept

    @classmethod
    def of(cls, rank: int | float | str | None, keep: int | None = None, mu: float | None = None) -> "RankRule":
        """A number of dimensions, a share of the class means' variance, or a target such as "0.05@1e-4"."""
        if isinstance(rank, str):
            return cls(target=parse_target(rank), keep=keep, mu=mu)
        if isinstance(rank, float) and rank == 1:
            raise UnfaceError(
                "rank 1.0 could mean one dimension or all of the class means' variance; give 1, or a share below 1"
            )
        return cls(energy=rank, keep=keep, mu=mu) if isinstance(rank, float) else cls(rank=rank, keep=keep, mu=mu)

    def __str__(self) -> str:
        if self.rank is not None:
            return "given"
        if self.energy is not None:
            return f"{percent(self.energy)} of the energy of the class means"
        if self.target is not None:
            return f"smallest rank with a worst case on calibrate of {self.target}"
        return "usual: three eighths of the dimensions, at most fit identities − 1"


def parse_target(text: str) -> Target:
    """``0.05@1e-4``: at most 5 % at FAR 1e-4."""
    found = re.fullmatch(r"([0-9.eE+-]+)@([0-9.eE+-]+)", text.strip())
    try:
        target = Target(*(float(part) for part in found.groups())) if found else None
    except ValueError:
        target = None
    if target is None or not (0 < target.tar < 1 and 0 < target.far < 1):
        raise UnfaceError(f"target {text!r}; expected a TAR and a FAR between 0 and 1, such as 0.05@1e-4")
    return target


@dataclass(frozen=True, eq=False)
class Defence:
    """A projection and where it came from."""

    name: str
    """Of the space it makes."""
    method: str
    projection: Projection
    control: bool
    rank_rule: str
    fitted_on: str
    fit: EmbeddingSet | None
    """None for a ready projection."""
    mu: float | None = None
    """Of a keeper."""

    def apply(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Unit vectors as they would be released."""
        return self.projection.apply(vectors)


def fit_set(prepared: Prepared, other: EmbeddingSet | None, variant: Variant) -> EmbeddingSet:
    """Who the defender learns from: fit identities, the attacker's own (paper), or another set of other people."""
    if other is None:
        role = Role.TRAIN if variant is Variant.PAPER else Role.FIT
        return prepared.embeddings.take(prepared.split.rows(prepared.embeddings, role))
    return other.unit()


def fit_erasers(
    methods: Sequence[str],
    rule: RankRule,
    defender: Defender,
    audited: EmbeddingSet,
    attack: Attack,
    progress: Progress,
) -> list[Defence]:
    """Each eraser at its rank."""
    if methods and defender.identities < _FEWEST_FIT_IDENTITIES:
        raise UnfaceError(
            f"{defender.people.source}: {count(defender.identities, 'identity', 'identities')} for an eraser to learn "
            f"from; at least {_FEWEST_FIT_IDENTITIES} are needed: name more as 'fit', or give --fit-on"
        )
    made = []
    for method in dict.fromkeys(methods):
        if method == KEEPER:
            rank, mu = choose_keeper(rule, defender, audited, attack, progress)
            made.append(_fitted(method, method, rank, f"{_keeper_rule(rule)}; μ = {mu:g}", defender, mu))
            continue
        rank = choose_rank(rule, method, defender, audited, attack, progress)
        made.append(_fitted(method, method, rank, str(rule), defender))
    return made


def fit_again(erasure: Erasure, defender: Defender) -> Defence:
    """What an audit measured, by its method and rank."""
    return _fitted(erasure.method, erasure.method, erasure.rank, erasure.rank_rule, defender, erasure.mu)


def _keeper_rule(rule: RankRule) -> str:
    if rule.target is not None:
        return f"most useful on calibrate with a worst case there of {rule.target}"
    given = rule.rank is not None or rule.energy is not None
    usual = "usual: an eighth of the dimensions is kept" if rule.keep is None else "dimensions to keep given"
    return str(rule) if given else usual


def can_fit(methods: Sequence[str], rule: RankRule, defender: Defender) -> bool:
    """Whether there is anybody to fit them on, and anything that tells these people apart."""
    if defender.identities < _FEWEST_FIT_IDENTITIES:
        return False
    if rule != RankRule():
        return True  # a rank that was asked for and cannot be reached is refused, not left out
    try:
        for method in methods:
            defender.project(method, plain_rank(rule, method, defender))
    except FitError:
        return False
    return True


def equal_controls(made: Sequence[Defence], defender: Defender) -> list[Defence]:
    """At each rank among them, as many dimensions at random, and the largest ones without labels; gated alike."""
    ranks = sorted({defence.projection.rank for defence in made})
    gates = {id(defence.projection.gate): defence.projection.gate for defence in made}
    pairs = sorted({(defence.projection.rank, list(gates).index(id(defence.projection.gate))) for defence in made})
    taken = {defence.name for defence in made}
    made_alike = []
    for rank, number in pairs:
        gate = list(gates.values())[number]
        ending = ("" if len(ranks) == 1 else f"@{rank}") + ("" if not number else f" (gate {number + 1})")
        for control in CONTROLS:
            if control + ending in taken:
                continue
            # Where vectors do not vary in so many directions there is no such principal component to remove.
            with suppress(FitError):
                alike = _fitted(control + ending, control, rank, "that of the erasers", defender)
                made_alike.append(replace(alike, projection=replace(alike.projection, gate=gate)))
    return made_alike


def ready_defence(projection: Projection, name: str, embeddings: EmbeddingSet) -> Defence:
    """A projection that was fitted elsewhere."""
    projection.require_space(embeddings.space)
    require_unit_vectors(projection, name)
    return Defence(name, projection.kind, projection, False, "of a ready projection", "elsewhere", None)


def require_unit_vectors(projection: Projection, name: str) -> None:
    """Refuse one that does something else to unit vectors, on which everything is measured, than to those it is for."""
    if projection.mean is not None and not projection.space.normalised:
        # Without a mean the map commutes with scaling, so that it is the same at every length (Kernel).
        raise UnfaceError(
            f"{name}: {projection.kind} subtracts a mean of vectors that were not scaled, but the audit works on unit "
            "vectors, so it would not measure what 'unface apply' releases; fit it with 'unface fit', on unit vectors"
        )


def describe_erasure(defence: Defence, prepared: Prepared, degenerate: int) -> Erasure:
    """What audit.json says of it; the certificate is of test identities. Of ``degenerate`` vectors nothing is left."""
    projection = defence.projection
    return Erasure(
        method=defence.method,
        control=defence.control,
        rank=projection.rank,
        dim=projection.dim,
        kept=None if projection.kept is None else projection.kept.shape[1],
        mu=defence.mu,
        rank_rule=defence.rank_rule,
        fitted_on=defence.fitted_on,
        fit_identities=len(defence.fit.names) if defence.fit else None,
        fit_images=len(defence.fit) if defence.fit else None,
        projection_sha256=projection.sha256,
        degenerate=degenerate,
        spectrum=projection.spectrum.tolist(),
        certificate=projection.certificate if defence.fit else measured_certificate(projection, prepared),
        overlap=None if defence.fit else fit_overlap(projection.fitted_on, prepared, projection),
        gate=_gate_use(projection, prepared),
    )


def certified(defence: Defence, prepared: Prepared) -> Defence:
    """A fitted one with the certificate that it is shipped with."""
    found = measured_certificate(defence.projection, prepared)
    return replace(defence, projection=replace(defence.projection, certificate=found))


def fit_overlap(record: FittedOn | None, prepared: Prepared, projection: Projection | None = None) -> FitOverlap | None:
    """Of those who set thresholds and those who are judged; an attacker may well know the people the defender knew.

    Without a record of names, the pictures that this process fitted the projection on are looked for.
    """
    people, split = prepared.embeddings, prepared.split
    judged = [people.take(split.rows(people, role)) for role in (Role.CALIBRATE, Role.TEST)]
    names = [name for some in judged for name in some.names]
    if record is None:
        fitted = 0 if projection is None else sum(_with_known_pictures(one, FITTED, projection.mark) for one in judged)
        if not fitted:
            return None
        return FitOverlap(people=fitted, compared=len(names), matches=fitted, chance=0.0, overlap=True)
    matches = int(np.count_nonzero(record.matches(names)))
    return FitOverlap(
        people=record.people,
        compared=len(names),
        matches=matches,
        chance=record.chance,
        overlap=too_many(matches, len(names), record.chance),
    )


def _with_known_pictures(people: EmbeddingSet, known: Remembered, mark: str | None = None) -> int:
    """How many people have a picture that is remembered."""
    return len(np.unique(people.identities[known.among(people.vectors, mark)]))


def erased_for_themselves(prepared: Prepared) -> list[Finding]:
    """Whether the audited vectors are pictures that an eraser of this process was fitted on, erased by it."""
    people, split = prepared.embeddings, prepared.split
    judged = [people.take(split.rows(people, role)) for role in (Role.CALIBRATE, Role.TEST)]
    fitted = sum(_with_known_pictures(one, ERASED) for one in judged) if ERASED else 0
    if not fitted:
        return []
    compared = sum(len(one.names) for one in judged)
    text = (
        f"{fitted:,} of the {compared:,} calibrate and test identities have pictures that the eraser of these vectors "
    )
    text += "was fitted on, so its results are too good; fit it on some people and audit others"
    return [Finding(severity="invalid", about="erased before", text=text)]


def erased_source(
    prepared: Prepared, projections: Sequence[Projection]
) -> tuple[ErasedSource | None, list[Projection]]:
    """What erased the audited vectors, by their file or by its name of before; and the projections that did not."""
    given = prepared.embeddings
    applied = [one for one in projections if one.sha256 == given.space.weights_sha256]
    others = [one for one in projections if one.sha256 != given.space.weights_sha256]
    named = re.search(r" after (gated )?(\S+) (\d+)$", given.space.encoder or "")
    fields: dict[str, object] = {}
    if given.erased is not None:
        try:
            fields = json.loads(given.erased)
            if fields.keys() == {"projection_sha256"}:  # a store remembers no more
                fields = _remembered(str(fields["projection_sha256"]), applied)
            fields = {
                "kind": str(fields["kind"]),
                "rank": None if fields["rank"] is None else int(str(fields["rank"])),
                "gated": fields["gated"] is True,
                "projection_sha256": str(fields["projection_sha256"]),
                "fitted_on": fields["fitted_on"],
            }
        except (ValueError, KeyError, TypeError):
            raise UnfaceError(
                f"{given.source}: metadata 'unface.erased' is damaged; apply the projection again"
            ) from None
    elif named is not None:
        fields = {
            "kind": named[2],
            "rank": int(named[3]),
            "gated": named[1] is not None,
            "projection_sha256": given.space.weights_sha256,
            "fitted_on": None,
        }
    else:
        return None, others
    said = fields.pop("fitted_on")
    record = applied[0].fitted_on if applied else None if said is None else FittedOn.from_fields(said)
    return ErasedSource.model_validate({**fields, "overlap": fit_overlap(record, prepared)}), others


def _remembered(mark: str, applied: Sequence[Projection]) -> dict[str, object]:
    """What erased a store: its projection, if that is at hand."""
    known: dict[str, object] = {"kind": f"projection {mark[:8]}", "rank": None, "gated": False}
    for one in applied:
        known = {"kind": one.kind, "rank": one.rank, "gated": one.gate is not None}
    return {**known, "projection_sha256": mark, "fitted_on": None}


def _gate_use(projection: Projection, prepared: Prepared) -> GateUse | None:
    if projection.gate is None:
        return None
    test = prepared.embeddings.vectors[prepared.roles.test.rows]
    return GateUse(
        certificate=projection.gate.certificate,
        missed_here=Rate.counted(projection.kernel.rows(test).not_faces, len(test)),
    )


def measured_certificate(projection: Projection, prepared: Prepared) -> Certificate | None:
    train, test = (
        (prepared.embeddings.vectors[role.rows], role.identities)
        for role in (prepared.roles.train, prepared.roles.test)
    )
    try:
        # Where nobody has the role of fitting alone (the paper variant), erasers were fitted on train people.
        return certificate(projection, *test, train=train if prepared.split.counts()[Role.FIT] else None)
    except UnfaceError:  # identities that do not differ even before: there is nothing to certify
        return None


def _fitted(name: str, method: str, rank: int, rule: str, defender: Defender, mu: float | None = None) -> Defence:
    projection = defender.project(method, rank, mu)
    people = defender.people
    return Defence(name, method, projection, method in CONTROLS, rule, people.source, people, mu)


def choose_rank(
    rule: RankRule, method: str, defender: Defender, audited: EmbeddingSet, attack: Attack, progress: Progress
) -> int:
    """The rank at which ``method``, fitted by ``defender``, is to be applied."""
    if rule.target is None:
        return plain_rank(rule, method, defender)
    return _smallest(rule.target, method, defender, audited, attack, progress)


def plain_rank(rule: RankRule, method: str, defender: Defender) -> int:
    """By any rule that needs no attack."""
    if rule.rank is not None:
        return rule.rank
    if rule.energy is not None:
        return fit_projection(ISP(energy=rule.energy), defender.people).rank
    if method == KEEPER:
        return rule.keeper_rank(defender.dim)
    return usual_rank(defender.dim, defender.identities)


def _smallest(
    target: Target, method: str, defender: Defender, audited: EmbeddingSet, attack: Attack, progress: Progress
) -> int:
    """One sweep over ranks up to the first that meets the target, then halving the last step; test is not looked at."""
    plan = replace(attack.plan, fars=(target.far,))
    most = min(defender.dim - 1, defender.identities - 1)
    step = max(1, most // _STEPS)
    seen: dict[int, float] = {}

    def met(rank: int) -> bool:
        vectors = defender.project(method, rank).apply(audited.vectors)
        found = [calibrate_tar(vectors, attack.roles, attack.probes, plan, k) for k in plan.ks]
        if not any(found):
            raise UnfaceError(f"FAR {rate(target.far)} cannot be resolved on these calibrate identities; raise it")
        seen[rank] = max(tar[target.far] for tar in found if tar)
        progress.advance("rank by target")
        return seen[rank] <= target.tar

    ranks = [*range(step, most, step), most]
    most_tries = len(ranks) + step.bit_length()
    progress.start("rank by target", most_tries)
    passed = next((rank for rank in ranks if met(rank)), None)
    if passed is None:
        raise UnfaceError(
            f"{method}: no rank up to {most} brings the worst case to {target}; the lowest seen is "
            f"{percent(min(seen.values()))} at rank {min(seen, key=lambda rank: seen[rank])}"
        )
    low: int = max([rank for rank in seen if rank < passed], default=0)
    high: int = passed
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    progress.advance("rank by target", most_tries - len(seen))  # found with fewer
    return high


def choose_keeper(
    rule: RankRule, defender: Defender, audited: EmbeddingSet, attack: Attack, progress: Progress
) -> tuple[int, float]:
    """(rank, μ); to a target, of those that meet it on calibrate the pair that finds most copies there.

    With ``rule.keep`` or ``rule.mu`` a target chooses the other one.
    """
    target = rule.target
    if target is None:
        return plain_rank(rule, KEEPER, defender), USUAL_MU if rule.mu is None else rule.mu
    if defender.useful is None:
        raise UnfaceError(f"{KEEPER}: --target chooses by copies found on calibrate identities; give copies, or --rank")
    plan = replace(attack.plan, fars=(target.far,))
    # Of one dimension nothing but a sign is left at length one.
    sizes = sorted({max(min(2, defender.dim), round(defender.dim * share)) for share in _KEPT_SHARES})
    if rule.keep is not None:
        sizes = [defender.dim - rule.keeper_rank(defender.dim)]
    mus = _MUS if rule.mu is None else (rule.mu,)
    progress.start("copies found", len(sizes) * len(mus))
    found = []
    for mu in mus:
        for kept in sizes:
            with suppress(FitError):  # pictures that do not vary in so many directions
                projection = defender.project(KEEPER, defender.dim - kept, mu)
                found.append((defender.useful(projection), kept, mu, projection))
            progress.advance("copies found")
    if not found:
        raise UnfaceError(
            f"{KEEPER}: pictures of one person vary in fewer than {sizes[0]} directions; give more images"
        )
    # Best first; of equally good ones the smallest, which leaks least. One that fails rules out larger ones of its μ.
    found.sort(key=lambda one: (-one[0], one[1], -one[2]))
    progress.start("keeper by target", len(found))
    failed: dict[float, int] = {}
    seen: list[tuple[float, int, float]] = []
    for tried, (_, kept, mu, projection) in enumerate(found, 1):
        progress.advance("keeper by target")
        if kept >= failed.get(mu, kept + 1):
            continue
        vectors = projection.apply(audited.vectors)
        rates = [calibrate_tar(vectors, attack.roles, attack.probes, plan, k) for k in plan.ks]
        if not any(rates):
            raise UnfaceError(f"FAR {rate(target.far)} cannot be resolved on these calibrate identities; raise it")
        seen.append((max(tar[target.far] for tar in rates if tar), kept, mu))
        if seen[-1][0] <= target.tar:
            progress.advance("keeper by target", len(found) - tried)  # the others are worse
            return defender.dim - kept, mu
        failed[mu] = min(kept, failed.get(mu, kept))
    lowest, kept, mu = min(seen)
    raise UnfaceError(
        f"{KEEPER}: nothing it can keep brings the worst case to {target}; the lowest seen is {percent(lowest)}, "
        f"with {kept} dimensions kept and μ = {mu:g}"
    )
