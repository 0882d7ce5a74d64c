"""If these fail, an eraser cannot be used where scikit-learn expects a transformer (pipelines, clone, search)."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.erase.people import people
from unface.erase import INLP, ISP, LEACE, RLACE, SAL, Eraser, FairPCA, LabelFreePCA, RandomSubspace

ERASERS = [
    ISP(1),
    ISP(1, weighted=True),
    ISP(None, energy=0.9),
    ISP(1, whitened=True),
    SAL(1),
    LEACE(1),
    LEACE(),
    INLP(1),
    FairPCA(1, unfair=1),
    RLACE(1, steps=5),
    RandomSubspace(1),
    LabelFreePCA(1),
]


@parametrize_with_checks(ERASERS)  # type: ignore[untyped-decorator] # scikit-learn has no types
def test_scikit_learns_own_checks(estimator: Eraser, check: Callable[[Eraser], None]) -> None:
    check(estimator)


def test_it_works_in_a_pipeline_and_can_be_cloned() -> None:
    made = people(12)
    pipeline = make_pipeline(StandardScaler(), LEACE(5))
    erased = clone(pipeline).fit(made.vectors, made.identities).transform(made.vectors)
    assert erased.shape == made.vectors.shape
    assert not hasattr(pipeline[-1], "projection_")


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_names_and_numbers_are_the_same_people(eraser: Eraser) -> None:
    made = people(12)
    names = np.array(made.names)[made.identities]
    by_name, by_list, by_code = (
        clone(eraser).fit(made.vectors, y).projection_.sha256 for y in (names, names.tolist(), made.identities)
    )
    assert by_name == by_list == by_code
