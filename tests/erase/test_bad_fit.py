"""If these fail, a fit that cannot mean anything goes through, or ends in a traceback instead of a sentence."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.erase.people import people
from unface.erase import INLP, ISP, LEACE, RLACE, SAL, Eraser, FairPCA, LabelFreePCA, RandomSubspace
from unface.errors import UnfaceError

MADE = people(12, 4, 6)
X, Y = MADE.vectors, MADE.identities
WITH_NAN = np.where(np.arange(X.size).reshape(X.shape) == 9, np.nan, X)


@pytest.mark.parametrize(
    ("eraser", "vectors", "identities", "said"),
    [
        (ISP(7), X, Y, "isp: rank 7 with 6 dimensions; expected 0 to 6"),
        (ISP(), X, Y, "isp: rank 192 with 6 dimensions; expected 0 to 6"),
        (ISP(4), X[Y < 3], Y[Y < 3], "isp: rank 4 with 3 identities; expected at most 2"),
        (SAL(4), X[Y < 3], Y[Y < 3], "sal: rank 4 with 3 identities; expected at most 2"),
        (LEACE(4), X[Y < 3], Y[Y < 3], "leace: rank 4 with 3 identities; expected at most 2"),
        (RLACE(4), X[Y < 3], Y[Y < 3], "rlace: rank 4 with 3 identities; expected at most 2"),
        (LabelFreePCA(7), X, Y, "pca: rank 7 with 6 dimensions"),
        (RandomSubspace(7), X, Y, "random: rank 7 with 6 dimensions"),
        (INLP(7), X, Y, "inlp: rank 7 with 6 dimensions"),
        (RLACE(7), X, Y, "rlace: rank 7 with 6 dimensions"),
        (FairPCA(7), X, Y, "fair_pca: rank 7 with 6 dimensions"),
        (FairPCA(4), X, Y, "fair_pca: 6 directions of class-mean differences with rank 4; expected at most 4"),
        (FairPCA(4, unfair=5), X, Y, "fair_pca: 5 directions"),
        (ISP(-1), X, Y, "isp: rank -1"),
        (ISP(2.5), X, Y, "isp: rank 2.5; expected a whole number"),  # type: ignore[arg-type]  # no whole number is what is tested
        (ISP(True), X, Y, "isp: rank True; expected a whole number"),
        (ISP(energy=1.5), X, Y, "isp: energy 1.5; expected a share"),
        (ISP(energy=float("nan")), X, Y, "isp: energy nan; expected a share"),
        (INLP(2, per_round=0), X, Y, "inlp: per_round 0"),
        (INLP(2, ridge=0), X, Y, "ridge 0; expected"),
        (RLACE(2, steps=0), X, Y, "rlace: 0 steps"),
        (ISP(2), X, np.zeros(len(X)), "isp: one identity"),
        (RLACE(2), X, np.zeros(len(X)), "rlace: one identity"),
        (ISP(2), WITH_NAN, Y, "isp: row 1 of X has NaN in column 3; drop or repair such rows"),
        (
            LEACE(2),
            np.where(np.isnan(WITH_NAN), np.inf, X),
            Y,
            "leace: row 1 of X has infinity in column 3",
        ),
        (ISP(2), X, [None, *Y[1:]], "an identity is missing"),
        (ISP(2), X, np.array([np.nan, *Y[1:]]), "isp: Input y contains NaN"),
        (ISP(2), X, Y[:-1], "isp: Found input variables with inconsistent numbers of samples"),
        (ISP(2), X[:, :, None], Y, "isp: Found array with dim 3"),
        (ISP(2), X, None, "isp: .*requires y to be passed.*; give identities="),
        (ISP(1), X[:1], Y[:1], "isp: 1 sample; at least two are needed"),
        (ISP(1), np.ones_like(X), Y, "class means differ in 0 directions only"),
        (ISP(4), X * [1, 1, 0, 0, 0, 0], Y, "class means differ in 2 directions only"),
        (LabelFreePCA(4), X * [1, 1, 0, 0, 0, 0], Y, "vary in 2 directions only"),
        (INLP(4), X * [1, 1, 0, 0, 0, 0], Y, "class means differ in 2 directions only"),
        (LEACE(), np.ones_like(X), Y, "leace: all vectors are the same"),
        (INLP(1), np.ones_like(X), Y, "inlp: all vectors are the same"),
        (RLACE(1), np.ones_like(X), Y, "rlace: all vectors are the same"),
        (ISP(1, whitened=True), X[:5], np.arange(5), "every identity has one image; whitened=True needs two"),
        (ISP(1, whitened=True), np.repeat(X[:4], 2, axis=0), np.repeat(np.arange(4), 2), "are all the same"),
    ],
)
def test_a_fit_that_cannot_be_is_refused_in_one_line(eraser: Eraser, vectors: Any, identities: Any, said: str) -> None:
    with pytest.raises(UnfaceError, match=said) as caught:
        eraser.fit(vectors, identities)
    assert len(str(caught.value).splitlines()) == 1
    assert isinstance(caught.value, ValueError)


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


def test_an_eraser_that_was_not_fitted_says_so() -> None:
    for eraser in (ISP(2), RandomSubspace(2)):
        assert not hasattr(eraser, "projection_")
        with pytest.raises(AttributeError, match=f"{type(eraser).__name__} is not fitted yet; call fit first"):
            eraser.transform(X)


def test_other_dimensions_than_those_fitted_are_refused() -> None:
    with pytest.raises(UnfaceError, match="X has 5 features, but ISP is expecting 6"):
        ISP(2).fit(X, Y).transform(X[:, :5])
    with pytest.raises(UnfaceError, match="X has 5 features, but ISP is expecting 6"):
        ISP(2).partial_fit(X, Y).partial_fit(X[:, :5], Y)


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
    with pytest.raises(UnfaceError, match="isp: row 1 of X has NaN in column 3"):
        eraser.partial_fit(WITH_NAN, Y)
    assert eraser.projection_.sha256 == ISP(2).fit(X, Y).projection_.sha256


def test_vectors_that_are_finite_but_too_large_to_add_up_are_refused() -> None:
    with pytest.raises(UnfaceError, match="sal: values too large to be summed; scale the vectors"):
        SAL(2).fit(np.full((4, 3), 1e308), [0, 0, 1, 1])


def test_two_vectors_of_two_people_are_enough_and_one_person_is_not() -> None:
    assert ISP(1).fit(X[:2], [0, 1]).projection_.rank == 1
    with pytest.raises(UnfaceError, match=r"one identity \(1 class\) only; at least two are needed"):
        ISP(1).fit(X[:2], [0, 0])
    # Who they are does not matter where nobody looks at it.
    assert LabelFreePCA(1).fit(X[:2], [0, 0]).projection_.rank == 1
    with pytest.raises(UnfaceError, match="pca: 1 sample; at least two are needed"):
        LabelFreePCA(1).fit(X[:1])
