"""The defender: on whom erasers are fitted, and the projections that come of it, controls of equal rank beside them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import Attack
from unface.auditing.defender import Defender
from unface.auditing.inputs import Prepared
from unface.auditing.points import bounds_of
from unface.auditing.ranks import RankRule, choose_rank, plain_rank
from unface.auditing.schema import Certificate, Erasure
from unface.auditing.strangers import require_strangers
from unface.auditing.words import count
from unface.data import EmbeddingSet, Role, require_same_space
from unface.erase import CONTROLS, FitError, Projection, certificate
from unface.errors import UnfaceError
from unface.probe import Variant
from unface.progress import Progress

FEWEST_FIT_IDENTITIES = 3


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

    def apply(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Unit vectors as they would be released."""
        return self.projection.apply(vectors)


def fit_set(prepared: Prepared, other: EmbeddingSet | None, variant: Variant) -> EmbeddingSet:
    """Whom the defender learns from: fit identities, the attacker's own (paper), or another set of other people."""
    if other is None:
        role = Role.TRAIN if variant is Variant.PAPER else Role.FIT
        return prepared.embeddings.take(prepared.split.rows(prepared.embeddings, role))
    other = other.unit()
    require_same_space(prepared.embeddings.space, other.space)
    require_strangers(prepared.embeddings, other)
    return other


def fit_erasers(
    methods: Sequence[str],
    rule: RankRule,
    defender: Defender,
    audited: EmbeddingSet,
    attack: Attack,
    progress: Progress,
) -> list[Defence]:
    """Each eraser at its rank."""
    if methods and defender.identities < FEWEST_FIT_IDENTITIES:
        raise UnfaceError(
            f"{defender.people.source}: {count(defender.identities, 'identity', 'identities')} for an eraser to learn "
            f"from; at least {FEWEST_FIT_IDENTITIES} are needed: name more as 'fit', or give --fit-on"
        )
    made = []
    for method in dict.fromkeys(methods):
        rank = choose_rank(rule, method, defender, audited, attack, progress)
        made.append(_fitted(method, method, rank, str(rule), defender))
    return made


def can_fit(methods: Sequence[str], rule: RankRule, defender: Defender) -> bool:
    """Whether there is anybody to fit them on, and anything that tells these people apart."""
    if defender.identities < FEWEST_FIT_IDENTITIES:
        return False
    if rule != RankRule():
        return True  # a rank that was asked for and cannot be had is told, not left out
    try:
        for method in methods:
            defender.project(method, plain_rank(rule, defender))
    except FitError:
        return False
    return True


def equal_controls(made: Sequence[Defence], defender: Defender) -> list[Defence]:
    """At each rank among them, as many dimensions at random, and the largest ones without labels."""
    ranks = sorted({defence.projection.rank for defence in made})
    ending = {rank: "" if len(ranks) == 1 else f"@{rank}" for rank in ranks}
    taken = {defence.name for defence in made}
    wanted = [(control + ending[rank], control, rank) for rank in ranks for control in CONTROLS]
    found = []
    for name, control, rank in wanted:
        if name not in taken:
            # Where vectors do not vary in so many directions there is no such principal component to remove.
            with suppress(FitError):
                found.append(_fitted(name, control, rank, "that of the erasers", defender))
    return found


def ready_defence(projection: Projection, name: str, embeddings: EmbeddingSet) -> Defence:
    """A projection that was fitted elsewhere."""
    projection.require_space(embeddings.space)
    return Defence(name, projection.kind, projection, False, "of a ready projection", "elsewhere", None)


def erasure_part(defence: Defence, prepared: Prepared) -> Erasure:
    """What audit.json says of it; the certificate is of test identities."""
    projection, embeddings = defence.projection, prepared.embeddings
    return Erasure(
        method=defence.method,
        control=defence.control,
        rank=projection.rank,
        dim=projection.dim,
        rank_rule=defence.rank_rule,
        fitted_on=defence.fitted_on,
        fit_identities=len(defence.fit.names) if defence.fit else None,
        fit_images=len(defence.fit) if defence.fit else None,
        projection_sha256=projection.sha256,
        degenerate=projection.count_degenerate(embeddings.vectors),
        spectrum=projection.spectrum.tolist(),
        certificate=_certificate(projection, prepared),
    )


def _certificate(projection: Projection, prepared: Prepared) -> Certificate | None:
    test = prepared.roles.test
    try:
        found = certificate(projection, prepared.embeddings.vectors[test.rows], test.identities)
    except UnfaceError:  # identities that do not differ even before: there is nothing to certify
        return None
    return Certificate(
        identities=found.identities,
        images=found.images,
        energy_left=bounds_of(found.energy_left),
        fisher_before=bounds_of(found.fisher_before),
        fisher_left=bounds_of(found.fisher_left),
        covers=found.covers,
    )


def _fitted(name: str, method: str, rank: int, rule: str, defender: Defender) -> Defence:
    projection = defender.project(method, rank)
    people = defender.people
    return Defence(name, method, projection, method in CONTROLS, rule, people.source, people)
