"""When a moved vector still passes for the same person: the threshold that calibrate impostors set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.metrics import (
    RESOLVED_ACCEPTS,
    ImpostorTail,
    Resolution,
    allowed_accepts,
    identities_needed,
    just_above,
    resolution,
)
from unface.pairs import cosine_space, highest_impostors, open_screen, pair_up

_SPARE = 5
"""Other draws of identities reach deeper into the impostor scores than the threshold itself."""


@dataclass(frozen=True, eq=False)
class Threshold:
    """Accept a cosine of at least ``value``; the tail tells what other calibrate identities would have set."""

    value: float
    false_accepts: int
    impostors: int
    resolution: Resolution
    tail: ImpostorTail
    identities: int


def calibrated(vectors: NDArray[np.float32], identities: NDArray[np.int64], far: float) -> Threshold:
    """The smallest threshold whose false-accept rate over all impostor pairs is at most ``far``."""
    pairing = pair_up(cosine_space(vectors), identities)
    people = len(pairing.sizes)
    how = _resolution(far, pairing.impostors, people)
    allowed = allowed_accepts(far, pairing.impostors)
    tail = highest_impostors(pairing, _SPARE * allowed + 300, open_screen(pairing.space))
    # With at least three accepts allowed of fewer pairs than all, there is a score to refuse.
    refused = tail.scores[allowed]
    return Threshold(
        value=just_above(refused),
        false_accepts=int(np.searchsorted(-tail.scores, -refused)),
        impostors=pairing.impostors,
        resolution=how,
        tail=ImpostorTail(tail.scores, tail.first, tail.second, pairing.sizes[None], tail.floor),
        identities=people,
    )


def _resolution(far: float, impostors: int, people: int) -> Resolution:
    if not 0 < far < 1:
        raise UnfaceError(f"swap: a false-accept rate lies between 0 and 1, not {far:g}")
    pairs = people * (people - 1) // 2
    how = resolution(far, impostors)
    if how is Resolution.REFUSED:
        needed = identities_needed(far, impostors / pairs) if pairs else 2
        raise UnfaceError(
            f"swap: {people} calibrate identities give {impostors} impostor pairs, too few for a false-accept rate of "
            f"{far:g}; about {needed} identities are needed, or a higher rate"
        )
    # However many pictures, few people resolve nothing.
    return Resolution.COARSE if pairs < RESOLVED_ACCEPTS else how
