"""If these fail, an eraser of a name is another one, or an eraser keeps what a refused fit left."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.erase.people import matrix_of, people
from tests.refusals.table import refused
from unface.erase import (
    CONTROLS,
    ERASERS,
    INLP,
    ISP,
    LEACE,
    RLACE,
    SAL,
    UTILITY_AWARE,
    Eraser,
    FairPCA,
    LabelFreePCA,
    RandomSubspace,
    UtilityLEACE,
    UtilityPCA,
    make_eraser,
    usual_rank,
)
from unface.errors import UnfaceError

KINDS: dict[str, type[Eraser]] = {
    "isp": ISP,
    "isp-whitened": ISP,
    "leace": LEACE,
    "sal": SAL,
    "inlp": INLP,
    "rlace": RLACE,
    "fair-pca": FairPCA,
    "random": RandomSubspace,
    "pca": LabelFreePCA,
    "utility-pca": UtilityPCA,
    "utility-leace": UtilityLEACE,
}
UTILITY = np.vstack([np.eye(24), -np.eye(24)]).astype(np.float32)


def test_a_keeper_by_name_keeps_what_is_not_removed_and_weighs_people_as_asked() -> None:
    found = make_eraser("keeper", 5, nuisance=np.eye(12), mu=0.7).get_params()
    assert (found["kept"], found["mu"]) == (7, 0.7)


def test_every_name_is_an_eraser_of_the_rank_that_was_asked_for() -> None:
    made = people(12)
    assert KINDS.keys() == ERASERS.keys() | CONTROLS.keys() | UTILITY_AWARE.keys()
    for name, kind in KINDS.items():
        eraser = make_eraser(name, 8, UTILITY)
        assert isinstance(eraser, kind)
        assert eraser.fit(made.vectors, made.identities).projection_.rank == 8
    whitened = make_eraser("isp-whitened", 8).fit(made.vectors, made.identities).projection_
    assert matrix_of(whitened) == pytest.approx(
        matrix_of(ISP(8, whitened=True).fit(made.vectors, made.identities).projection_)
    )
    assert make_eraser("fair-pca", 9).get_params()["unfair"] == 7


def test_a_name_that_spares_a_task_asks_for_its_vectors() -> None:
    with refused("eraser", None, "'utility-pca'", "--spare"):
        make_eraser("utility-pca", 3)
    assert make_eraser("utility-pca", 3, UTILITY).get_params()["utility"] is UTILITY


@pytest.mark.parametrize(
    ("dim", "identities", "rank"),
    [(512, 10_000, 192), (512, 193, 192), (512, 192, 191), (16, 100, 6), (1, 100, 1), (16, 1, 1)],
)
def test_the_usual_rank_is_the_paper_s_share_or_what_identities_allow(dim: int, identities: int, rank: int) -> None:
    assert usual_rank(dim, identities) == rank


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
