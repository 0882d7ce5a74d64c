"""What a reader found, before anything was checked: the one form that every source is brought to."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data.space import Space


@dataclass(frozen=True)
class Columns:
    """What the columns are called where they came from, so that errors speak the user's names."""

    vector: str = "vector"
    identity: str = "identity"
    id: str = "id"
    context: str | None = None
    """A second column of vectors, kept as a label: what surrounds the face."""


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows of any numeric type, possibly bad; only lengths and text types are settled."""

    source: str
    columns: Columns
    vectors: NDArray[np.generic]  # (n, d)
    identities: NDArray[np.object_]  # (n,) of str, or None where missing
    ids: NDArray[np.object_]  # (n,) of str, or None where missing
    labels: Mapping[str, NDArray[np.generic]]
    nulls: NDArray[np.bool_] | None = None  # (n,) rows whose vector is null or holds one
    space: Space | None = None
    notes: tuple[str, ...] = ()
