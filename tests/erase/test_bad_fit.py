"""If these fail, a fit that cannot mean anything goes through, or ends in a traceback instead of a sentence."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.erase.people import people
from tests.refusals.table import refused
from unface.erase import INLP, ISP, LEACE, RLACE, SAL, FairPCA, LabelFreePCA, RandomSubspace
from unface.errors import UnfaceError

MADE = people(12, 4, 6)
X, Y = MADE.vectors, MADE.identities
WITH_NAN = np.where(np.arange(X.size).reshape(X.shape) == 9, np.nan, X)


def test_the_largest_rank_there_is_can_be_fitted() -> None:
    for eraser in (
        ISP(6),
        SAL(6),
        LEACE(6),
        INLP(6),
        LabelFreePCA(6),
        RandomSubspace(6),
        FairPCA(6),
        RLACE(6, steps=3),
    ):
        assert eraser.fit(X, Y).projection_.rank == 6


@pytest.mark.parametrize(("vectors", "identities"), [(WITH_NAN, Y), (X, Y[:-1])], ids=["NaN", "identities lacking"])
@pytest.mark.parametrize("asked", [True, False])
def test_after_a_refused_fit_nothing_is_fitted(vectors: Any, identities: Any, asked: bool) -> None:
    """Not what an earlier fit had learned either, whether it was asked for or not."""
    eraser = ISP(2).fit(X, Y) if asked else ISP(2).partial_fit(X, Y)
    with pytest.raises(UnfaceError):
        eraser.fit(vectors, identities)
    with pytest.raises(NotFittedError, match="ISP is not fitted yet"):
        eraser.transform(X)


def test_a_batch_with_a_value_that_is_no_number_is_refused_and_does_not_count() -> None:
    eraser = ISP(2).partial_fit(X, Y)
    with refused("fit", "isp", "row 1", "column 3"):
        eraser.partial_fit(WITH_NAN, Y)
    assert eraser.projection_.sha256 == ISP(2).fit(X, Y).projection_.sha256


def test_two_vectors_of_two_people_are_enough_and_one_person_is_not() -> None:
    assert ISP(1).fit(X[:2], [0, 1]).projection_.rank == 1
    with refused("fit", "isp"):
        ISP(1).fit(X[:2], [0, 0])
    # Who they are does not matter where nobody looks at it.
    assert LabelFreePCA(1).fit(X[:2], [0, 0]).projection_.rank == 1
    with refused("fit", "pca", "1 sample"):
        LabelFreePCA(1).fit(X[:1])
