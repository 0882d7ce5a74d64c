"""What an audit says of itself: what was given, what was used of it, how, and what was left unmeasured."""

from unface.auditing.attack import Attack
from unface.auditing.inputs import Prepared
from unface.auditing.schema import Curated, Given, Protocol, RoleCounts, SpaceResult
from unface.data import EmbeddingSet, Role, Space
from unface.models import cards
from unface.probe import PROBES


def protocol_part(attack: Attack) -> Protocol:
    """How it was measured."""
    plan, bootstrap = attack.plan, attack.bootstrap
    return Protocol(
        variant=plan.variant.value,
        fars=list(plan.fars),
        ks=list(plan.ks),
        seeds=plan.seeds,
        seed=plan.seed,
        probes=attack.names,
        score="cosine of each probe's vectors; plda: log-likelihood ratio",
        bootstrap=bootstrap.scheme.value,
        bootstraps=len(bootstrap.test),
        level=bootstrap.level,
        impostor_quota=plan.quota,
    )


def not_measured(
    spaces: list[SpaceResult], probes: list[str], *, transfer: bool, utility: bool, attribution: bool
) -> list[str]:
    """What a reader might take for measured and is not."""
    missing = []
    if not any(point.context_adjusted for point in spaces[0].points):
        missing.append(
            "same-shoot pairs: bare vectors do not tell the same person elsewhere from the same photo shoot; "
            "name a --group or --context column"
        )
    if len(spaces) == 1:
        missing.append("what an eraser leaves: this is the space as it is")
    else:
        if not utility:
            missing.append("what erasure costs the task the vectors are for: give its labelled vectors as --utility")
        if not transfer:
            missing.append("whether the projection holds on other faces: give a second set as --transfer")
    missing.append("template inversion")
    if not attribution:
        missing.append("face-context attribution")
    left_out = [name for name in PROBES if name not in probes]
    if left_out:
        missing.append(f"probes left out: {', '.join(left_out)}")
    return missing


def given_part(given: EmbeddingSet) -> Given:
    return Given(
        name=given.source,
        sha256=given.sha256(),
        rows=len(given),
        identities=len(given.names),
        dim=given.space.dim,
        encoder=given.space.encoder,
        weights_sha256=given.space.weights_sha256,
        licence=_licence(given.space),
        notes=list(given.notes),
    )


def _licence(space: Space) -> str | None:
    """By the card of the encoder, if the weights are those of the card."""
    known = (one for one in cards() if one.name == space.encoder and one.sha256 == space.weights_sha256)
    return next((one.licence.name for one in known), None)


def curated_part(prepared: Prepared) -> Curated:
    curation = prepared.curation
    return Curated(
        images=curation.images,
        identities=curation.identities_kept,
        identities_dropped=curation.identities_dropped,
        rows=curation.rows_kept,
    )


def role_counts(prepared: Prepared) -> RoleCounts:
    counts = prepared.split.counts()
    return RoleCounts(
        fit=counts[Role.FIT],
        train=counts[Role.TRAIN],
        calibrate=counts[Role.CALIBRATE],
        test=counts[Role.TEST],
        seed=prepared.split.seed,
        sha256=prepared.split.hash,
    )
