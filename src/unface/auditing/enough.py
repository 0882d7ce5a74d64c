"""Whether a set has people enough for what is asked of it, said in people, before anything is encoded or fitted."""

from collections import Counter

import numpy as np

from unface.auditing.protocol import Prepared, Protocol, fitting_ks
from unface.data import DEFAULT_SHARES, PAPER_SHARES, ImageSet, Role
from unface.data.split import role_sizes
from unface.errors import UnfaceError
from unface.metrics.rates import Resolution, identities_needed, resolution
from unface.probe import Variant
from unface.result.words import count, rate


def require_rates(prepared: Prepared, protocol: Protocol, option: str = "--far ") -> Prepared:
    """Refuse false-accept rates that this set cannot show: any of them if ``every_far``, else only if none is left.

    ``option`` is what a rate is given by, as the advice has it.
    """
    images, people = prepared.curation.images, len(prepared.embeddings.names)
    calibrate = prepared.roles.calibrate.count
    _require_rates(calibrate, images, people, prepared.ks, protocol, prepared.embeddings.source, option)
    return prepared


def require_people(pictures: ImageSet, protocol: Protocol, *, rank: int | None = None) -> None:
    """The same of pictures that are not encoded yet, as if each showed a face; ``rank`` is that of an eraser."""
    sizes = np.array(list(Counter(one.identity for one in pictures if one.copy_of is None).values()), np.int64)
    if protocol.split is not None or not len(sizes):
        return  # a column decides, which pictures do not have
    images = protocol.images or min(20, int(np.sort(sizes)[(len(sizes) - 1) // 2]))
    variant = protocol.plan().variant
    asked = (protocol.k,) if isinstance(protocol.k, int | str) else protocol.k
    ks, _ = fitting_ks(asked, images, variant)
    people = min(int(np.count_nonzero(sizes >= images)), protocol.max_identities)
    roles = role_sizes(people, _shares(variant))
    fitted = roles[Role.TRAIN if variant is Variant.PAPER else Role.FIT]
    if rank is not None and rank > fitted - 1:
        raise UnfaceError(
            f"{pictures.source}: rank {rank} needs at least {_people_for(rank + 1, Role.FIT, variant):,} people with"
            f" {images} pictures; this set has {people:,}. Use --rank {max(1, fitted - 1)} or add people"
        )
    _require_rates(roles[Role.CALIBRATE], images, people, ks, protocol, pictures.source)


def _require_rates(
    calibrate: int,
    images: int,
    people: int,
    ks: tuple[int, ...],
    protocol: Protocol,
    source: str,
    option: str = "--far ",
) -> None:
    absent = next((k for k in protocol.needed_k if k not in ks), None)
    if absent is not None:
        there, advice = ", ".join(map(str, ks)), f"ask for it with --k {absent}, or change the policy"
        if absent > images:
            advice = f"give more pictures of each person and --images {absent}, or change the policy"
        raise UnfaceError(f"{source}: the policy asks for k = {absent}, and this audit measures k = {there}; {advice}")
    plan = protocol.plan()
    compared = images - min(ks) if plan.hold_out else images
    each = compared**2 if plan.quota is None else plan.quota
    pairs = calibrate * (calibrate - 1) // 2 * each
    refused = [far for far in plan.fars if resolution(far, pairs) is Resolution.REFUSED]
    if not refused or (len(refused) < len(plan.fars) and not protocol.every_far):
        return
    far = min(refused) if protocol.every_far else max(refused)
    wanted = identities_needed(far, each)
    if protocol.split is None:
        needs = f"{_people_for(wanted, Role.CALIBRATE, plan.variant):,} people with {count(images, 'picture')} each"
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
