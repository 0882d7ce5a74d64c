"""If these fail, an eraser cannot stand in a pipeline beside a task, whose labels are not the identities."""

from collections.abc import Iterator

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.erase.people import people
from tests.refusals.table import refused
from unface.erase import ISP, LEACE, RLACE, Eraser, Keeper, LabelFreePCA, RandomSubspace

MADE = people(30, 6, 12, rank=4, between=2.0)
X, WHO = MADE.vectors, np.array(MADE.names)[MADE.identities]
# A task that has nothing to do with who someone is: where the picture was taken, in the last dimension.
RNG = np.random.default_rng(0)
TASK = RNG.integers(0, 2, len(X))
X = X + 6 * np.outer(2 * TASK - 1, np.eye(12)[11]).astype(np.float32)


@pytest.fixture(autouse=True)
def routed() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "eraser", [ISP(3), LEACE(3), RLACE(3, steps=5), LabelFreePCA(3), RandomSubspace(3)], ids=lambda one: one.kind
)
def test_identities_decide_and_the_tasks_labels_do_not(eraser: Eraser) -> None:
    alone = type(eraser)(**eraser.get_params()).fit(X, WHO).projection_.sha256
    assert eraser.fit(X, TASK, identities=WHO).projection_.sha256 == alone
    assert eraser.fit(X, identities=WHO).projection_.sha256 == alone


def test_a_pipeline_erases_identities_and_learns_the_task() -> None:
    pipeline = make_pipeline(StandardScaler(), ISP(4, normalise=False), LogisticRegression())
    pipeline.fit(X, TASK, identities=WHO)
    alone = ISP(4, normalise=False).fit(StandardScaler().fit_transform(X), WHO)
    assert pipeline[1].projection_.sha256 == alone.projection_.sha256
    assert pipeline.score(X, TASK) > 0.95


def test_a_pipeline_that_is_not_given_identities_erases_the_task_itself() -> None:
    """The mistake that routing prevents: y is taken for identities, and nothing of the task is left."""
    pipeline = make_pipeline(ISP(1, normalise=False), LogisticRegression()).fit(X, TASK)
    assert pipeline.score(X, TASK) < 0.65


def test_a_search_over_ranks_gives_each_fold_its_own_identities() -> None:
    pipeline = Pipeline([("erase", ISP(normalise=False)), ("task", LogisticRegression())])
    search = GridSearchCV(pipeline, {"erase__rank": [2, 4]}, cv=GroupKFold(3), error_score="raise")
    search.fit(X, TASK, identities=WHO, groups=WHO)
    assert search.best_estimator_["erase"].projection_.rank == search.best_params_["erase__rank"]
    assert search.best_score_ > 0.9
    # Two of three folds of nine people are learned from, and six people allow rank 5.
    few = GridSearchCV(pipeline, {"erase__rank": [8]}, cv=GroupKFold(3), error_score="raise")
    some = np.isin(WHO, np.unique(WHO)[:9])
    with refused("fit", "isp", "rank 8", "with 6", "most 5"):
        few.fit(X[some], TASK[some], identities=WHO[some], groups=WHO[some])


def test_columns_keep_their_names_in_a_frame() -> None:
    names = [f"d{number}" for number in range(12)]
    frame = pandas.DataFrame(X, columns=names)
    out = ISP(3).set_output(transform="pandas").fit_transform(frame, identities=WHO)
    assert list(out.columns) == names
    assert out.index.equals(frame.index)
    np.testing.assert_array_equal(out.to_numpy(), ISP(3).fit(X, WHO).transform(X))


def test_columns_that_are_no_longer_those_that_came_get_new_names() -> None:
    keeper = Keeper(3, nuisance=np.eye(12)).fit(X, identities=WHO)
    assert list(keeper.get_feature_names_out()) == ["keeper0", "keeper1", "keeper2"]
    out = keeper.set_output(transform="pandas").transform(X)
    assert list(out.columns) == ["keeper0", "keeper1", "keeper2"]


@pytest.mark.parametrize("call", ["fit", "transform", "partial_fit"])
def test_a_missing_value_is_reported_by_its_place_and_recommends_no_other_estimator(call: str) -> None:
    broken = X.copy()
    broken[[7, 9], 2] = np.nan
    eraser = ISP(3).fit(X, WHO)
    with refused("fit", "isp", "row 7", "column 2", "2 such rows"):
        getattr(eraser, call)(*((broken,) if call == "transform" else (broken, WHO)))
