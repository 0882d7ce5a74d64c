"""If these fail, an eraser cannot be used where scikit-learn expects a transformer (pipelines, clone, search)."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.erase.people import people
from unface.erase import (
    INLP,
    ISP,
    LEACE,
    RLACE,
    SAL,
    Eraser,
    FairPCA,
    Keeper,
    LabelFreePCA,
    RandomSubspace,
    UtilityLEACE,
    UtilityPCA,
)


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
]
ERASERS = [*EACH_PATH, *SAME_PATH]
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
    made = people(12)
    pipeline = make_pipeline(StandardScaler(), LEACE(5))
    erased = clone(pipeline).fit(made.vectors, made.identities).transform(made.vectors)
    assert erased.shape == made.vectors.shape
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


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_what_comes_out_has_length_one_unless_told_otherwise(eraser: Eraser, normalise: bool) -> None:
    made = people(12)
    erased = clone(eraser).set_params(normalise=normalise).fit_transform(made.vectors, made.identities)
    assert erased.dtype == np.float32
    assert np.allclose(np.linalg.norm(erased, axis=1), 1, atol=1e-6) is normalise


def test_without_identities_nobody_can_be_told_apart_and_controls_need_none() -> None:
    tags = {eraser.kind: get_tags(eraser) for eraser in ERASERS}
    needed = {kind for kind, found in tags.items() if found.target_tags.required}
    assert needed == {"isp", "sal", "leace", "inlp", "fair_pca", "rlace", "keeper"}
    assert all(found.transformer_tags.preserves_dtype == ["float32"] for found in tags.values())


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_names_and_numbers_are_the_same_people(eraser: Eraser) -> None:
    made = people(12)
    names = np.array(made.names)[made.identities]
    by_name, by_list, by_code = (
        clone(eraser).fit(made.vectors, y).projection_.sha256 for y in (names, names.tolist(), made.identities)
    )
    assert by_name == by_list == by_code
