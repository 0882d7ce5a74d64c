"""If these fail, vectors that were read back raw pass for erased ones."""

import numpy as np
import pytest

from tests.stores.contract import DIM, raw_vectors
from unface import Projection, UnfaceError
from unface.data import Space
from unface.scale.receipt import Check

RAW = raw_vectors()


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("normalise", [True, False])
def test_raw_vectors_do_not_pass_where_erased_ones_keep_the_mean(rank: int, normalise: bool) -> None:
    """Of a single direction all that is left is the mean's part, and whether a vector has just that must be seen."""
    directions = np.eye(DIM)[:, :rank]
    by = Projection(
        "leace",
        directions,
        np.ones(rank),
        Space(None, None, DIM, normalised=True),
        readers=directions.copy(),
        mean=np.full(DIM, 0.1),
        normalise=normalise,
    )
    erased, raw = Check(by), Check(by)
    erased.add(by.apply(RAW))
    erased.require(len(RAW), "here")
    assert erased.largest_left < 1e-6
    raw.add(RAW)
    with pytest.raises(UnfaceError, match="left along a removed direction"):
        raw.require(len(RAW), "here")
