"""Attribute swaps in the raw and in each erased space, measured."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import resolution_word
from unface.auditing.attribute_swap import SwapInSpace
from unface.auditing.bench import Bench
from unface.auditing.protocol import Prepared, label_column
from unface.errors import UnfaceError
from unface.swap import swap_inference

_FAR = 1e-3


@dataclass(frozen=True, eq=False)
class TwoValued:
    """A column by its name, and for each row 0 or 1 for its value, −1 where there is none."""

    name: str
    codes: NDArray[np.int64]


def two_valued(prepared: Prepared, column: str) -> TwoValued:
    """Any column that has two values."""
    words = np.array(["" if value is None else str(value) for value in label_column(prepared, column).tolist()])
    unknown = np.isin(words, ("", "nan", "None"))
    values = np.unique(words[~unknown])
    if len(values) != 2:
        raise UnfaceError(
            f"{prepared.embeddings.source}: '{column}' has {len(values)} values; an attribute swap needs two"
        )
    return TwoValued(column, np.where(unknown, -1, (words == values[1]).astype(np.int64)))


def swap_in_space(space: str, vectors: NDArray[np.float32], bench: Bench, attribute: TwoValued) -> SwapInSpace:
    """Move the test vectors of one space to the other value of the attribute."""
    roles = bench.prepared.roles
    train, calibrate, test = ((role.rows, role.identities) for role in (roles.train, roles.calibrate, roles.test))
    swapped = swap_inference(vectors, train, calibrate, test, attribute.codes, far=_FAR, seed=bench.attack.plan.seed)
    return SwapInSpace(
        space=space,
        attribute=attribute.name,
        far=swapped.far,
        resolution=resolution_word(swapped.resolution),
        threshold=swapped.threshold,
        directions=swapped.directions,
        accuracy=swapped.both.read,
        majority=swapped.chance,
        trusted=swapped.trusted,
        accept=swapped.both.accept,
        flip=swapped.both.flip,
        joint=swapped.both.joint,
    )


def swap_erased(bench: Bench, attribute: TwoValued) -> list[SwapInSpace]:
    """Each eraser's space; one in which too little is left to move along is named as not measured."""
    spaces = []
    for eraser in bench.erasers:
        try:
            vectors = eraser.apply(bench.prepared.embeddings.vectors)
            spaces.append(swap_in_space(eraser.name, vectors, bench, attribute))
        except UnfaceError as error:
            bench.not_measured.append(f"attribute swap in {eraser.name}: {error}")
    return spaces
