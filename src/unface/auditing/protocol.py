"""How an audit measures, and from any embeddings to what its panel takes: unit vectors of each role, context.

Whether a set has people enough for what is asked is said in people, before anything is encoded or fitted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unface.data import (
    DEFAULT_SHARES,
    PAPER_SHARES,
    Curation,
    EmbeddingSet,
    ImageSet,
    Role,
    Split,
    curate,
    split_from_column,
    split_identities,
    usual_images,
)
from unface.data.curate import LEARNED, images_of_each, lower_median, with_enough
from unface.data.split import role_sizes
from unface.errors import UnfaceError
from unface.metrics import Scheme
from unface.metrics.rates import Resolution, identities_needed, resolution
from unface.probe import (
    PAPER_PROBES,
    USUAL_PROBES,
    Context,
    GroupContext,
    Plan,
    Probe,
    Roles,
    SignatureContext,
    Variant,
    pick_probes,
    role_rows,
)
from unface.result.words import count, rate
from unface.seeds import stream

ALL = "all"
DEFAULT_KS = (1, 4, 16, ALL)
Shots = int | str
"""A number of pictures, or "all"."""
# Resampling fewer people than that says nothing about other people.
_FEWEST = {Role.TRAIN: 2, Role.CALIBRATE: 5, Role.TEST: 5}


@dataclass(frozen=True)
class Protocol:
    """Everything about how an audit measures; the defaults are what ``unface audit`` does."""

    far: float | Sequence[float] = (1e-3, 1e-4)
    """Target false-accept rates."""
    every_far: bool = False
    """Refuse a set that is too small for one of them; otherwise it is left out, unless none can be measured."""
    k: Shots | Sequence[Shots] | None = None
    """Pictures of each of their own people that attackers learn from, or "all"; None: those of 1, 4, 16 that the set
    allows, and all."""
    needed_k: Sequence[int] = ()
    """Refuse a set that would be measured without one of these, as a policy asks."""
    probe: str | Sequence[str] | None = None
    """Attackers by name; None: cosine, ridge, lda and plda, in the paper variant also its mlp."""
    seeds: int = 5
    """Draws of the pictures that attackers learn from."""
    images: int | None = None
    """Pictures that a calibrate or test identity brings at most; None: the median, at most 20. Fit and train identities
    bring all, at most 200. In the paper variant: pictures that each identity brings, exactly."""
    max_identities: int = 16_000
    """Above that many, so many are drawn: an audit compares all pairs, and its memory grows with identities."""
    variant: str = "unface"
    """Or "paper": the ISP paper's own reading."""
    impostor_quota: int | None = None
    """Image pairs for each pair of identities, as in the paper; None: all."""
    bootstrap: str = Scheme.DOUBLE_OR_NOTHING
    bootstraps: int = 2000
    seed: int = 0
    identity: str = "identity"
    """Column of identities."""
    vector: str = "vector"
    """Column of vectors."""
    id: str = "id"
    """Column of row ids."""
    split: str | None = None
    """Column with the roles fit, train, calibrate, test of your own."""
    group: str | None = None
    """Column of shoots, to adjust TAR for, or of groups of people, to compare: where it is the same for all pictures of
    a person and shared by people, it names groups of people and adjusts nothing."""
    context: str | None = None
    """Column of vectors that describe the surroundings, to adjust TAR for."""
    bad_rows: str = "fail"
    """Or "drop": leave out rows whose vector is null, NaN, Inf or zero, or that have no identity."""
    sample: int | None = None
    """Read only so many people, drawn with ``seed``."""
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        """What is wrong with the settings themselves is refused before any data is read."""
        self.plan()
        self.scheme()
        self.probes()
        if self.max_identities < 25:
            raise UnfaceError(f"max_identities is {self.max_identities}; an audit needs at least 25")

    def probes(self) -> list[Probe]:
        """The attackers."""
        paper = _named(Variant, self.variant, "variant") is Variant.PAPER
        named = (self.probe,) if isinstance(self.probe, str) else self.probe
        if named and "mlp" in named and not paper:
            raise UnfaceError("probe 'mlp' belongs to the paper variant; use 'net', or --variant paper")
        return pick_probes(named or (PAPER_PROBES if paper else USUAL_PROBES))

    def plan(self) -> Plan:
        """For the panel; k is filled in when the set is known."""
        return Plan(
            fars=tuple(dict.fromkeys((self.far,) if isinstance(self.far, int | float) else self.far)),
            seeds=self.seeds,
            seed=self.seed,
            variant=_named(Variant, self.variant, "variant"),
            quota=self.impostor_quota,
            threads=self.threads,
            device=self.device,
        )

    def scheme(self) -> Scheme:
        """How identities are resampled."""
        scheme = _named(Scheme, self.bootstrap, "bootstrap")
        if self.bootstraps < 2 or (self.bootstraps % 2 and scheme is Scheme.DOUBLE_OR_NOTHING):
            raise UnfaceError(
                f"double-or-nothing replicates come in mirrored pairs; give an even number, not {self.bootstraps}"
            )
        return scheme


_Choice = TypeVar("_Choice", bound=StrEnum)


def _named(choices: type[_Choice], name: str, what: str) -> _Choice:
    try:
        return choices(name)
    except ValueError:
        raise UnfaceError(f"{what} {name!r} is not known; use {' or '.join(choices)}") from None


@dataclass(frozen=True, eq=False)
class PeopleGroups:
    """Groups of people by row of a set: a code, or one below 0 where the group is not known."""

    column: str
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is measured, and how it came from what was given."""

    embeddings: EmbeddingSet
    curation: Curation
    split: Split
    roles: Roles
    context: Context | None
    """What mated pairs may share beside the person."""
    groups: PeopleGroups | None
    ks: tuple[int, ...]
    everything: int | None
    """The k that stands for all pictures: the most that a train identity has."""
    drawn_from: int | None
    """Identities with enough pictures, where these were more than are audited."""


def prepare(given: EmbeddingSet, protocol: Protocol) -> Prepared:
    """Curate, normalise, split; every refusal happens here, before anything is computed."""
    variant = _named(Variant, protocol.variant, "variant")
    paper = variant is Variant.PAPER
    n = protocol.images if protocol.images is not None else usual_images(given)
    sizes = images_of_each(given)
    n = n if paper else min(n, max(2, int(sizes.max(initial=0))))
    asked = (protocol.k,) if isinstance(protocol.k, int | np.integer | str) else protocol.k
    chosen = fitting_ks(asked, n if paper else _usually_learned(sizes), variant)
    if protocol.split is not None:
        _own_split(given, protocol.split)  # all rows are held to it, also those that curation leaves out
    given, drawn_from = _drawn(given, n if paper else 2, protocol)
    given = _in_order(given)
    kept = with_enough(given, n if paper else 2)
    split = _split(given.take(kept[given.identities]), protocol.split, variant, protocol.seed)
    most = np.array([_most(split, name, n) if there else 0 for name, there in zip(given.names, kept, strict=True)])
    curated, curation = curate(given, n, protocol.seed, most=None if paper else most)
    embeddings = curated.unit()
    roles = [role_rows(embeddings, split, role) for role in (Role.TRAIN, Role.CALIBRATE, Role.TEST)]
    for rows, (role, fewest) in zip(roles, _FEWEST.items(), strict=True):
        if rows.count < fewest:
            raise UnfaceError(
                f"{given.source}: role '{role}' has {count(rows.count, 'identity', 'identities')} of "
                f"{len(embeddings.names)}; at least {fewest} are needed for a result"
            )
    everything = int(roles[0].images().max())
    ks = [everything if isinstance(k, str) else k if paper else min(k, everything) for k in chosen]
    return Prepared(
        embeddings,
        curation,
        split,
        Roles(*roles),
        *_context_and_groups(embeddings, protocol.group, protocol.context),
        tuple(dict.fromkeys(ks)),
        None if paper else everything,
        drawn_from,
    )


def _most(split: Split, name: str, images: int) -> int:
    """What is learned from is taken whole: cut to a few pictures, an eraser and an attacker are weaker than real ones.

    What is judged is capped, so that nobody counts for much more than another.
    """
    return LEARNED if split.role_of(name) in (Role.FIT, Role.TRAIN) else images


def _usually_learned(sizes: NDArray[np.int64]) -> int:
    """Half of the people, or more, have as many pictures to learn from."""
    return min(LEARNED, lower_median(sizes[sizes >= 2]))


def _drawn(given: EmbeddingSet, images: int, protocol: Protocol) -> tuple[EmbeddingSet, int | None]:
    """At most ``max_identities`` of those with enough images, at random; and of how many, where that is a choice."""
    enough = np.flatnonzero(np.bincount(given.identities, minlength=len(given.names)) >= images)
    if len(enough) <= protocol.max_identities:
        return given, None
    names = np.array(given.names)[enough]
    ordered = enough[np.argsort(names, kind="stable")]  # whatever order the rows came in
    chosen = stream(protocol.seed, "audited identities").permutation(ordered)[: protocol.max_identities]
    wanted = np.zeros(len(given.names), bool)
    wanted[chosen] = True
    return given.take(np.flatnonzero(wanted[given.identities])), len(enough)


def _in_order(given: EmbeddingSet) -> EmbeddingSet:
    """Rows by identity and id: the order they came in decides nothing."""
    return given.take(np.lexsort((given.ids.astype(str), given.identities)))


def fitting_ks(ks: Sequence[Shots] | None, images: int, variant: Variant) -> tuple[Shots, ...]:
    """The ks to run: of the default ones those that half of the people have pictures for, and all.

    In the paper variant everybody has ``images``, k of them must leave two to compare, and there is no k = all.
    Asked-for ks that do not fit are refused.
    """
    paper = variant is Variant.PAPER
    wanted = tuple(dict.fromkeys(ks)) if ks else tuple(k for k in DEFAULT_KS if not (paper and k == ALL))
    for k in wanted:
        if k != ALL and not isinstance(k, int | np.integer):
            raise UnfaceError(f"k is a whole number of images or 'all', not {k!r}")
        if k == ALL and paper:
            raise UnfaceError("k = all: the paper variant compares what k images leave; give numbers")
    if paper and images < 3:
        raise UnfaceError(
            f"{count(images, 'image')} for each identity {'is' if images == 1 else 'are'} too few; 3 are needed, 1 to "
            "learn from and 2 to compare: --images 3 or more leaves out identities with fewer"
        )
    most = max((int(k) for k in wanted if k != ALL), default=0)
    compared = 2 if paper else 0
    if ks and most + compared > images:
        if paper:
            needs = f"k = {most} needs {most + compared} images for each identity, {images} are used; "
            raise UnfaceError(f"{needs}ask for a smaller k, or for more --images of fewer identities")
        raise UnfaceError(
            f"k = {most} needs {count(most, 'image')} of most people, and their median is {images}; ask for a smaller "
            "k, or for all"
        )
    return tuple(k if k == ALL else int(k) for k in wanted if k == ALL or int(k) + compared <= images)


def _split(embeddings: EmbeddingSet, column: str | None, variant: Variant, seed: int) -> Split:
    if column is None:
        shares = PAPER_SHARES if variant is Variant.PAPER else DEFAULT_SHARES
        return split_identities(embeddings.names, shares=shares, seed=seed)
    return _own_split(embeddings, column)


def _own_split(embeddings: EmbeddingSet, column: str) -> Split:
    names = [embeddings.names[code] for code in embeddings.identities]
    return split_from_column(names, [str(role) for role in _label(embeddings, column)])


def _context_and_groups(
    embeddings: EmbeddingSet, group: str | None, context: str | None
) -> tuple[Context | None, PeopleGroups | None]:
    """A group column is one or the other; groups of people never change what TAR is adjusted for."""
    if group is None:
        return _signatures(embeddings, context), None
    codes = _group_codes(embeddings, group)
    if _of_people(embeddings, codes):
        return _signatures(embeddings, context), PeopleGroups(group, codes)
    if context is not None:
        raise UnfaceError(f"--group {group}: names shoots, and --context adjusts for shoots too; give one of them")
    return GroupContext(group, codes), None


def names_people(embeddings: EmbeddingSet, group: str) -> bool:
    """Whether a column names groups of people rather than shoots."""
    return _of_people(embeddings, _group_codes(embeddings, group))


def _of_people(embeddings: EmbeddingSet, codes: NDArray[np.int64]) -> bool:
    """Each person in one group at most, and some group of several people; else every pair of one person shares it."""
    known = codes >= 0
    pairs = np.unique(np.stack([embeddings.identities[known], codes[known]]), axis=1)
    people, groups = (len(np.unique(side)) for side in pairs)
    return bool(pairs.shape[1] == people > groups)


def _group_codes(embeddings: EmbeddingSet, group: str) -> NDArray[np.int64]:
    values = _label(embeddings, group)
    words = np.array(["" if value is None else str(value) for value in values.tolist()])
    codes = np.unique(words, return_inverse=True)[1].astype(np.int64)
    codes[np.isin(words, ("", "nan"))] = -1
    if len(np.unique(codes[codes >= 0])) < 2:
        raise UnfaceError(f"{embeddings.source}: '{group}' names fewer than two groups; there is nothing to compare")
    return codes


def _signatures(embeddings: EmbeddingSet, context: str | None) -> Context | None:
    if context is not None:
        signatures = _label(embeddings, context)
        if signatures.ndim != 2 or signatures.dtype.kind not in "fiu":
            raise UnfaceError(
                f"{embeddings.source}: '{context}' is no column of vectors; --context needs one vector for each row, "
                "--group takes a name"
            )
        return SignatureContext(context, signatures.astype(np.float32))
    return None


def label_column(prepared: Prepared, column: str) -> NDArray[np.generic]:
    """A column of the curated set, row by row."""
    return _label(prepared.embeddings, column)


def _label(embeddings: EmbeddingSet, column: str) -> NDArray[np.generic]:
    if column not in embeddings.labels:
        listed = ", ".join(sorted(embeddings.labels)) or "none"
        raise UnfaceError(f"{embeddings.source}: has no column '{column}'; other columns are: {listed}")
    return embeddings.labels[column]


def require_rates(prepared: Prepared, protocol: Protocol, option: str = "--far ") -> Prepared:
    """Refuse false-accept rates that this set cannot show: any of them if ``every_far``, else only if none is left.

    ``option`` is what a rate is given by, as the advice has it.
    """
    calibrate, people = prepared.roles.calibrate, len(prepared.embeddings.names)
    images = float(np.sqrt(calibrate.impostors() / (calibrate.count * (calibrate.count - 1) / 2)))
    _require_rates(calibrate.count, images, people, prepared.ks, protocol, prepared.embeddings.source, option)
    return prepared


def require_people(pictures: ImageSet, protocol: Protocol, *, rank: int | None = None) -> None:
    """The same of pictures that are not encoded yet, as if each showed a face; ``rank`` is that of an eraser."""
    sizes = np.array(list(Counter(one.identity for one in pictures if one.copy_of is None).values()), np.int64)
    if protocol.split is not None or not len(sizes):
        return  # a column decides, which pictures do not have
    sizes = sizes[sizes >= 2]
    images = protocol.images or min(20, lower_median(sizes))
    variant = protocol.plan().variant
    paper = variant is Variant.PAPER
    asked = (protocol.k,) if isinstance(protocol.k, int | str) else protocol.k
    learned = images if paper else _usually_learned(sizes)
    ks = [learned if isinstance(k, str) else k for k in fitting_ks(asked, learned, variant)]
    people = min(int(np.count_nonzero(sizes >= (images if paper else 2))), protocol.max_identities)
    roles = role_sizes(people, _shares(variant))
    fitted = roles[Role.TRAIN if variant is Variant.PAPER else Role.FIT]
    if rank is not None and rank > fitted - 1:
        needed, each = _people_for(rank + 1, Role.FIT, variant), images if paper else 2
        raise UnfaceError(
            f"{pictures.source}: rank {rank} needs at least {needed:,} people with {each} pictures; this set has"
            f" {people:,}. Use --rank {max(1, fitted - 1)} or add people"
        )
    compared = float(images if paper or not len(sizes) else np.minimum(sizes, images).mean())
    _require_rates(roles[Role.CALIBRATE], compared, people, ks, protocol, pictures.source)


def _require_rates(
    calibrate: int,
    images: float,
    people: int,
    ks: Sequence[int],
    protocol: Protocol,
    source: str,
    option: str = "--far ",
) -> None:
    absent = next((k for k in protocol.needed_k if k not in ks), None)
    if absent is not None:
        there, advice = ", ".join(map(str, ks)), f"ask for it with --k {absent}, or change the policy"
        if absent > max(images, *ks):
            advice = "give more pictures of each person, or change the policy"
        raise UnfaceError(f"{source}: the policy asks for k = {absent}, and this audit measures k = {there}; {advice}")
    plan = protocol.plan()
    compared = images - min(ks) if plan.hold_out else images
    each = compared**2 if plan.quota is None else plan.quota
    pairs = round(calibrate * (calibrate - 1) // 2 * each)
    refused = [far for far in plan.fars if resolution(far, pairs) is Resolution.REFUSED]
    if not refused or (len(refused) < len(plan.fars) and not protocol.every_far):
        return
    far = min(refused) if protocol.every_far else max(refused)
    wanted = identities_needed(far, each)
    if protocol.split is None:
        pictures = f"{'' if images.is_integer() else 'about '}{count(round(images), 'picture')} each"
        needs = f"{_people_for(wanted, Role.CALIBRATE, plan.variant):,} people with {pictures}"
        has = f"{people:,}"
    else:
        needs, has = f"{wanted:,} people of role calibrate", f"{calibrate:,}"
    able = [ten for ten in (10.0**-power for power in range(1, 12)) if resolution(ten, pairs) is not Resolution.REFUSED]
    advice = f"Use {option}{rate(min(able))} or add people" if able else "Add people"
    raise UnfaceError(f"{source}: FAR {rate(far)} needs at least {needs}; this set has {has}. {advice}")


def _people_for(wanted: int, role: Role, variant: Variant) -> int:
    """A number from which on so many people get a role; a few fewer may do, as shares are rounded."""
    shares = _shares(variant)
    role = Role.TRAIN if variant is Variant.PAPER and role is Role.FIT else role
    people = int(wanted / shares[role]) + 10
    while role_sizes(people - 1, shares)[role] >= wanted:
        people -= 1
    return people


def _shares(variant: Variant) -> "dict[Role, float]":
    return dict(PAPER_SHARES if variant is Variant.PAPER else DEFAULT_SHARES)
