"""Attribute swaps in the raw and in each erased space, as audit.json says them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.auditing.inputs import Prepared, label_column
from unface.auditing.points import resolution_word
from unface.auditing.schema import AttributeSwap
from unface.errors import UnfaceError
from unface.swap import swap_inference

_FAR = 1e-3


@dataclass(frozen=True, eq=False)
class TwoValued:
    """A column by its name, and for each row 0 or 1 for its value, −1 where there is none."""

    name: str
    codes: NDArray[np.int64]


def two_valued(prepared: Prepared, attribute: str) -> TwoValued:
    """Any column that has two values."""
    words = np.array(["" if value is None else str(value) for value in label_column(prepared, attribute).tolist()])
    unknown = np.isin(words, ("", "nan", "None"))
    values = np.unique(words[~unknown])
    if len(values) != 2:
        raise UnfaceError(
            f"{prepared.embeddings.source}: '{attribute}' has {len(values)} values; an attribute swap needs two"
        )
    return TwoValued(attribute, np.where(unknown, -1, (words == values[1]).astype(np.int64)))


def swap_part(
    space: str, vectors: NDArray[np.float32], prepared: Prepared, attribute: TwoValued, seed: int
) -> AttributeSwap:
    """Move the test vectors of one space to the other value of the attribute."""
    roles = prepared.roles
    train, calibrate, test = ((role.rows, role.identities) for role in (roles.train, roles.calibrate, roles.test))
    swap = swap_inference(vectors, train, calibrate, test, attribute.codes, far=_FAR, seed=seed)
    return AttributeSwap(
        space=space,
        attribute=attribute.name,
        far=swap.far,
        resolution=resolution_word(swap.resolution),
        threshold=swap.threshold,
        directions=swap.directions,
        accuracy=swap.both.read,
        majority=swap.chance,
        trusted=swap.trusted,
        accept=swap.both.accept,
        flip=swap.both.flip,
        joint=swap.both.joint,
    )
