"""If these fail, an eraser removes other than it says, or cannot be used where scikit-learn expects a transformer."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from tests.erase.people import matrix_of, people
from unface import UnfaceError
from unface.data import Space
from unface.erase import (
    CONTROLS,
    ERASERS,
    INLP,
    ISP,
    KEEPER,
    LEACE,
    RLACE,
    SAL,
    UTILITY_AWARE,
    Eraser,
    FairPCA,
    Keeper,
    LabelFreePCA,
    Projection,
    RandomSubspace,
    UtilityLEACE,
    UtilityPCA,
    make_eraser,
)

RANK, DIM = 5, 24
MADE = people(12, dim=DIM)
TASK = people(12, dim=DIM, seed=7).vectors
NAMES = [*ERASERS, *UTILITY_AWARE, KEEPER, *CONTROLS, "toy"]
each = pytest.mark.parametrize("name", NAMES)


class FirstAxes(TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """An eraser as another package would bring it: it removes the first coordinates, whoever is there."""

    kind: ClassVar[str] = "axes"

    def __init__(self, rank: int = 1, *, normalise: bool = True) -> None:
        self.rank, self.normalise = rank, normalise

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        dim = validate_data(self, X, dtype=np.float64).shape[1]
        if self.rank > dim:
            raise ValueError(f"rank {self.rank} of {dim} dimensions")
        space = Space(None, None, dim, normalised=False)
        axes = np.ascontiguousarray(np.eye(dim)[:, : self.rank])
        self.projection_ = Projection(self.kind, axes, np.ones(self.rank), space, normalise=self.normalise)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self)
        return self.projection_.apply(validate_data(self, X, dtype=[np.float32, np.float64], reset=False))


def made(name: str, rank: int = RANK) -> Eraser:
    """As commands get it; the game of rlace is played for a few steps alone."""
    eraser = make_eraser(name, rank, TASK, nuisance=np.diag(np.linspace(0.5, 2, DIM)))
    return eraser.set_params(steps=5) if name == "rlace" else eraser


def fitted(name: str) -> Eraser:
    return made(name).fit(MADE.vectors, MADE.identities)


@each
def test_as_many_dimensions_go_as_were_asked_for(name: str) -> None:
    projection = fitted(name).projection_
    assert projection.rank == RANK
    left = projection.apply_linear(people(40, dim=DIM, seed=3).vectors).astype(np.float64)
    assert np.linalg.matrix_rank(left - left.mean(axis=0), tol=1e-3) == DIM - RANK


@each
def test_fit_learns_and_transform_applies_and_what_was_given_stays_as_it_was(name: str) -> None:
    vectors, identities = MADE.vectors.copy(), MADE.identities.copy()
    vectors.setflags(write=False)
    identities.setflags(write=False)
    eraser = made(name)
    before = repr(eraser.get_params())
    assert eraser.fit(vectors, identities) is eraser
    assert repr(eraser.get_params()) == before
    erased = eraser.transform(vectors)
    assert erased.dtype == np.float32
    assert erased.shape == (len(vectors), eraser.projection_.released_dim)
    assert np.array_equal(erased, eraser.projection_.apply(vectors))
    assert erased[3] == pytest.approx(eraser.transform(vectors[3:4])[0], abs=1e-6)


@each
@pytest.mark.parametrize("normalise", [True, False])
def test_what_comes_out_has_length_one_unless_told_otherwise(name: str, normalise: bool) -> None:
    for vectors in (MADE.vectors, MADE.unit().vectors):
        erased = made(name).set_params(normalise=normalise).fit_transform(vectors, MADE.identities)
        assert np.allclose(np.linalg.norm(erased, axis=1), 1, atol=1e-6) is normalise


@each
def test_the_same_people_give_the_same_projection_by_name_by_number_and_by_keyword(name: str) -> None:
    names = np.array(MADE.names)[MADE.identities]
    found = {
        made(name).fit(MADE.vectors, names).projection_.sha256,
        made(name).fit(MADE.vectors, names.tolist()).projection_.sha256,
        made(name).fit(MADE.vectors, MADE.identities).projection_.sha256,
        made(name).fit(MADE.vectors, identities=MADE.identities).projection_.sha256,
        clone(fitted(name)).fit(MADE.vectors, MADE.identities).projection_.sha256,
    }
    assert len(found) == 1
    if "seed" in made(name).get_params():
        found.add(made(name).set_params(seed=1).fit(MADE.vectors, MADE.identities).projection_.sha256)
        assert len(found) == 2


@each
def test_batches_where_they_are_taken_give_what_the_whole_gives(name: str) -> None:
    whole = fitted(name)
    batched = made(name)
    if not hasattr(batched, "partial_fit"):
        assert name in {"rlace", "random", KEEPER, "toy"}
        return
    for rows in np.array_split(np.arange(len(MADE)), 7):
        batched.partial_fit(MADE.vectors[rows], MADE.identities[rows])
    assert matrix_of(batched.projection_) == pytest.approx(matrix_of(whole.projection_), abs=1e-9)


@each
def test_a_projection_is_read_back_from_its_file_in_every_bit(name: str, tmp_path: Path) -> None:
    saved = fitted(name).projection_
    saved.save(tmp_path / "p.safetensors")
    read = Projection.load(tmp_path / "p.safetensors")
    assert (read.kind, read.sha256, read.rank, read.dim, read.released_dim) == (
        saved.kind,
        saved.sha256,
        saved.rank,
        saved.dim,
        saved.released_dim,
    )
    assert np.array_equal(read.apply(MADE.vectors), saved.apply(MADE.vectors))


@each
def test_until_it_is_fitted_it_says_so_and_what_means_nothing_is_refused(name: str) -> None:
    eraser = clone(fitted(name))
    assert not hasattr(eraser, "projection_")
    with pytest.raises(NotFittedError, match=f"{type(eraser).__name__} is not fitted yet|not fitted yet"):
        eraser.transform(MADE.vectors)
    with_nan = MADE.vectors.copy()
    with_nan[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        eraser.fit(with_nan, MADE.identities)
    assert not hasattr(eraser, "projection_")
    with pytest.raises(ValueError, match=f"{DIM - 1}.*{DIM}"):
        fitted(name).transform(MADE.vectors[:, 1:])
    if name != KEEPER:  # whose argument is how many dimensions stay
        with pytest.raises(ValueError, match=f"{DIM + 1}"):
            made(name, DIM + 1).fit(MADE.vectors, MADE.identities)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnfaceError) as caught:
        make_eraser("nobodys", RANK)
    assert set(str(caught.value).partition("choose from ")[2].split(", ")) == set(NAMES)


class KeeperOfAnyWidth(Keeper):
    """These checks fit vectors of several widths, and copies are vectors of one."""

    def _shrunk_nuisance(self, dim: int) -> NDArray[np.float64]:
        return np.eye(dim)


# One eraser for each way that X and y take through fit and transform; it is held to all of scikit-learn's checks.
EACH_PATH = [
    ISP(1),  # fit: sums of each class; transform: an orthogonal projection
    LEACE(1),  # fit: sums and scatter; transform: an oblique projection around a mean
    LabelFreePCA(1),  # fit: sums without identities
    RLACE(1, steps=5),  # fit: the samples themselves
    RandomSubspace(1),  # fit: neither samples nor identities
    KeeperOfAnyWidth(1),  # transform: fewer dimensions
]
# The others differ in what they compute between fit and transform, where only these checks can see them.
SAME_PATH = [
    ISP(1, weighted=True),  # as ISP(1)
    ISP(None, energy=0.9),  # as ISP(1)
    SAL(1),  # as ISP(1)
    ISP(1, whitened=True),  # as LEACE(1), without a mean
    LEACE(),  # as LEACE(1)
    INLP(1),  # fit as LEACE(1), transform as ISP(1)
    FairPCA(1, unfair=1),  # fit as LEACE(1), transform as ISP(1)
    FirstAxes(1),  # of another package
]
OF_EACH = {
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_dict_unchanged",
    "check_estimators_dtypes",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_transformer_general",
    "check_methods_sample_order_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_fit_idempotent",
}


@parametrize_with_checks(EACH_PATH)  # type: ignore[untyped-decorator] # scikit-learn has no types
def test_scikit_learns_own_checks(estimator: Eraser, check: Callable[[Eraser], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("eraser", SAME_PATH, ids=repr)
def test_scikit_learns_checks_of_what_an_eraser_computes(eraser: Eraser) -> None:
    checks = [check for _, check in estimator_checks_generator(eraser) if check.func.__name__ in OF_EACH]
    assert {check.func.__name__ for check in checks} == OF_EACH
    for check in checks:
        check(eraser)


def test_it_works_in_a_pipeline_and_can_be_cloned() -> None:
    pipeline = make_pipeline(StandardScaler(), LEACE(5))
    erased = clone(pipeline).fit(MADE.vectors, MADE.identities).transform(MADE.vectors)
    assert erased.shape == MADE.vectors.shape
    assert not hasattr(pipeline[-1], "projection_")


def test_without_options_they_are_what_the_paper_used() -> None:
    """192 of 512 dimensions, and unit vectors released; whoever changes a default changes what commands fit."""
    plain = {"rank": 192, "normalise": True}
    assert ISP().get_params() == {**plain, "energy": None, "weighted": False, "whitened": False}
    assert SAL().get_params() == {**plain, "energy": None}
    assert LEACE().get_params() == {"rank": None, "energy": None, "normalise": True}
    assert INLP().get_params() == {**plain, "per_round": 16, "ridge": 1e-3}
    assert RLACE().get_params() == {**plain, "steps": 200, "seed": 0}
    assert FairPCA().get_params() == {**plain, "unfair": None}
    assert RandomSubspace().get_params() == {**plain, "seed": 0}
    assert LabelFreePCA().get_params() == plain
    assert Keeper().get_params() == {"kept": 64, "mu": 0.3, "nuisance": None, "normalise": True}
    assert UtilityPCA().get_params() == {**plain, "utility": None}
    assert UtilityLEACE().get_params() == {**plain, "utility": None, "energy": None}


def test_without_identities_nobody_can_be_told_apart_and_controls_need_none() -> None:
    tags = {name: get_tags(made(name)) for name in NAMES if name != "toy"}
    needless = {name for name, found in tags.items() if not found.target_tags.required}
    assert needless == {*CONTROLS, "utility-pca"}
    assert all(found.transformer_tags.preserves_dtype == ["float32"] for found in tags.values())
