"""Which faces are compared: the same person elsewhere, and another person's face to put into the same place."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.attribute.canvas import Canvas
from unface.result.attribution import Step
from unface.seeds import stream

FCR_TOLERANCE = 0.02
SAME_CONTEXT = 0.9
"""Correlation of two context signatures from which on two pictures of a person count as one shoot."""

ONE_PICTURE = "the only usable picture of its identity"
NO_FCR = "no other picture of the person shows a face of the same size, within 2 %"
ONE_SHOOT = "pictures of the person with a face of the same size are all of one shoot"
NO_DONOR = "no picture of somebody else shows a face of the same size, within 2 %"


@dataclass(frozen=True)
class LeftOut:
    """A picture that could not be used for something, by its id."""

    id: str
    step: Step
    reason: str


@dataclass(frozen=True, eq=False)
class Pairing:
    """Queries with a reference each (p,); ``donors`` is −1 where nobody fits."""

    queries: NDArray[np.int64]
    references: NDArray[np.int64]
    donors: NDArray[np.int64]
    fcr_difference: NDArray[np.float64]
    """Of query and reference, as a share of the query's."""
    left_out: tuple[LeftOut, ...]


def paired(canvases: Sequence[Canvas], fcr: NDArray[np.float64], seed: int) -> Pairing:
    """Each canvas as a query, its reference and donor drawn from all that fit, by streams named after its id."""
    names = np.array([canvas.identity for canvas in canvases])
    contexts = np.stack([canvas.context for canvas in canvases])
    of_identity: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        of_identity[name].append(number)
    rows: list[tuple[int, int, int]] = []
    left_out: list[LeftOut] = []
    for query, canvas in enumerate(canvases):
        alike = np.abs(fcr - fcr[query]) <= FCR_TOLERANCE * fcr[query]
        own = np.array([other for other in of_identity[canvas.identity] if other != query], dtype=np.int64)
        matched = own[alike[own]]
        elsewhere = matched[contexts[matched] @ contexts[query] < SAME_CONTEXT]
        if not elsewhere.size:
            reason = ONE_PICTURE if not own.size else NO_FCR if not matched.size else ONE_SHOOT
            left_out.append(LeftOut(canvas.id, "pairing", reason))
            continue
        donors = np.flatnonzero(alike & (names != canvas.identity))
        if not donors.size:
            left_out.append(LeftOut(canvas.id, "swap", NO_DONOR))
        draw = stream(seed, "attribute", "pairing", canvas.id)
        reference = int(draw.choice(elsewhere))
        rows.append((query, reference, int(draw.choice(donors)) if donors.size else -1))
    queries, references, donors = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    difference = np.abs(fcr[queries] - fcr[references]) / fcr[queries]
    return Pairing(queries, references, donors, difference, tuple(left_out))
