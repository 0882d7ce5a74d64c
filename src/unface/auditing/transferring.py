"""Does what was learned on one set hold on another? Fit on A, test on B, and back."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import Attack
from unface.auditing.defence import Defence, fit_set
from unface.auditing.defender import Defender
from unface.auditing.describe import given_part
from unface.auditing.inputs import Prepared
from unface.auditing.points import resolution_word, tar_estimate
from unface.auditing.schema import Transfer, TransferCell
from unface.data import EmbeddingSet, require_same_space
from unface.erase import FitError, Projection, principal_cosines
from unface.errors import UnfaceError
from unface.progress import Progress, Silent

_CELLS = 6


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two sets, and who attacks it."""

    given: EmbeddingSet
    prepared: Prepared
    attack: Attack


def fit_there(defence: Defence, second: Side, task: NDArray[np.float32] | None) -> Projection:
    """The same eraser at the same rank, fitted on the second set's own people."""
    require_same_space(defence.projection.space, second.prepared.embeddings.space)
    people = fit_set(second.prepared, None, second.attack.plan.variant)
    try:
        return Defender(people, task).project(defence.method, defence.projection.rank)
    except FitError as error:
        raise UnfaceError(f"{second.given.source}: {error}; --transfer needs as many, or a lower --rank") from None


def transfer(defence: Defence, there: Projection, first: Side, second: Side, progress: Progress) -> Transfer:
    """The 2 × 2 of one eraser: raw, fitted here and fitted there, on both sets; thresholds from the set tested on."""
    second = _apart(defence, first, second)
    fitted = ((None, None), (defence.fitted_on, defence.projection), (second.given.source, there))
    progress.start("transfer", _CELLS)
    cells = []
    for side in (first, second):
        for name, projection in fitted:
            cells += _cells(side, name, projection)
            progress.advance("transfer")
    cosines = principal_cosines(defence.projection, there)
    return Transfer(
        method=defence.method,
        rank=defence.projection.rank,
        first=first.given.source,
        second=given_part(second.given),
        cells=cells,
        cosines=cosines.values.tolist(),
        chance_cosine=cosines.chance,
    )


def _apart(defence: Defence, first: Side, second: Side) -> Side:
    """Two sets of one name would read as one."""
    if second.given.source not in (first.given.source, defence.fitted_on):
        return second
    return replace(second, given=replace(second.given, source=f"{second.given.source} (2)"))


def _cells(side: Side, fitted_on: str | None, projection: Projection | None) -> list[TransferCell]:
    vectors = side.prepared.embeddings.vectors
    attacked = side.attack.run(vectors if projection is None else projection.apply(vectors), Silent(), "transfer")
    plan = side.attack.plan
    measured = [attacked.worst(k, far) for k in plan.ks for far in plan.fars]
    return [
        TransferCell(
            fitted_on=fitted_on,
            tested_on=side.given.source,
            k=found.k,
            far=found.far,
            resolution=resolution_word(found.resolution),
            probe=found.probe,
            tar=tar_estimate(found, plan),
            chance=found.chance,
            times_chance=found.times_chance,
        )
        for found in measured
        if found is not None
    ]
