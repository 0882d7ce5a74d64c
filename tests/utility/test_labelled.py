"""If these fail, usefulness is measured on other rows, or said to be kept where it is not."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from tests.utility.small import at_angles, classes, copies, noisy_copies, shuffled, without_classes
from unface import threads
from unface.data import EmbeddingSet
from unface.metrics import wilson
from unface.moments import class_moments
from unface.utility import (
    CopyTask,
    LabelledTask,
    Outcome,
    copy_task,
    kept,
    labelled_task,
    utility_tasks,
)
from unface.utility.tasks import STRENGTHS, fit_ridge, majority, predict_classes, set_aside


def measured(task: LabelledTask) -> dict[str, Outcome]:
    return {outcome.measure: outcome for outcome in task.outcomes(task.vectors)}


@pytest.mark.parametrize(("count", "k"), [(8, 1), (2, 9)])
def test_knn_predicts_what_scikit_learn_does_where_no_vote_can_tie(count: int, k: int) -> None:
    task = labelled_task(classes(count, between=0.6), k=k)
    peer = KNeighborsClassifier(k).fit(task.vectors[task.train], task.classes[task.train])
    right = peer.predict(task.vectors[task.test]) == task.classes[task.test]
    assert 0.3 < right.mean() < 0.95
    np.testing.assert_array_equal(measured(task)["knn"].per_query, right)


def test_a_tied_vote_goes_to_the_nearest() -> None:
    votes = np.array([[3, 1, 1, 3, 0], [1, 3, 3, 1, 0], [0, 1, 2, 3, 4], [5, 2, 2, -1, -1], [-1, -1, -1, -1, -1]])
    assert majority(votes).tolist() == [3, 1, 0, 2, -1]


def test_missing_neighbours_do_not_win_the_vote() -> None:
    assert majority(np.array([[7, -1, -1, -1]])).tolist() == [7]


@pytest.mark.parametrize("count", [2, 5, 40])
def test_ridge_predicts_what_scikit_learn_does_at_the_same_alpha(count: int) -> None:
    made = classes(count, 12, between=0.5).unit()
    ridge = fit_ridge(class_moments(made.vectors, made.identities))
    assert ridge.scale == pytest.approx(len(made) * made.vectors.var(axis=0, dtype=np.float64).mean(), rel=1e-9)
    unseen = classes(count, 12, between=0.5, seed=1).unit().vectors
    for strength in STRENGTHS:
        peer = RidgeClassifier(alpha=strength * ridge.scale).fit(made.vectors.astype(np.float64), made.identities)
        np.testing.assert_array_equal(ridge.predict(unseen, (strength,))[0], peer.predict(unseen.astype(np.float64)))


def test_alpha_is_in_units_of_the_variance() -> None:
    """The same vectors a million times larger are classified alike."""
    made = classes(6, between=0.5)
    held = set_aside(made.identities, np.random.default_rng(0))
    sizes = [np.float32(size) for size in (1e-6, 1, 1e6)]
    small, plain, large = (
        predict_classes(made.vectors * size, made.identities, held, made.vectors * size) for size in sizes
    )
    np.testing.assert_array_equal(plain, small)
    np.testing.assert_array_equal(plain, large)


def test_alpha_is_chosen_on_rows_that_were_held_back() -> None:
    """With more dimensions than rows the weakest α fits anything it has seen; held rows say that it should not."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 10)
    centres = 2.0 * np.eye(4, 60)
    train, test = ((centres[codes] + rng.standard_normal((40, 60))).astype(np.float32) for _ in range(2))
    held = set_aside(codes, rng)
    assert np.bincount(codes[held]).tolist() == [2, 2, 2, 2]
    order = np.flatnonzero(~held)
    part = fit_ridge(class_moments(train[order], codes[order])).predict(train[held], STRENGTHS)
    best = STRENGTHS[int(np.argmax((part == codes[held]).sum(axis=1)))]
    expected = fit_ridge(class_moments(train, codes)).predict(test, STRENGTHS)
    np.testing.assert_array_equal(predict_classes(train, codes, held, test), expected[STRENGTHS.index(best)])
    assert len(np.unique(expected, axis=0)) > 1


@pytest.mark.parametrize("row", [[0, 0, 0], [1, 1, 1], [0.1, 0.7, -0.3], [1e-30, 2e-30, -1e-30]])
def test_vectors_that_do_not_differ_get_the_most_frequent_class(row: list[float]) -> None:
    vectors = np.tile(np.array(row, np.float32), (23, 1))
    codes = np.repeat([0, 1], [9, 14])
    assert predict_classes(vectors, codes, np.zeros(23, bool), vectors).tolist() == [1] * 23


def test_without_the_class_subspace_both_measures_fall_to_chance() -> None:
    task = labelled_task(classes(6, 100, 24, rank=5, between=5.0))
    before, after = task.outcomes(task.vectors), task.outcomes(without_classes(task.vectors, 5))
    for raw, erased in zip(before, after, strict=True):
        found = kept(raw, erased)
        assert found.raw.low > 0.9
        assert found.erased.low < 1 / 6 < found.erased.high
        assert found.erased.high < 0.3


def test_what_the_identity_map_retains_is_exactly_one() -> None:
    task = labelled_task(classes(between=0.5))
    for raw, same in zip(task.outcomes(task.vectors), task.outcomes(task.vectors.copy()), strict=True):
        found = kept(raw, same)
        assert 0.3 < found.raw.value < 1
        assert found.retained.value == 1
        assert found.erased == found.raw


def test_a_test_row_that_vanished_counts_as_wrong() -> None:
    task = labelled_task(classes(4, 20, between=9.0))
    assert [outcome.value for outcome in task.outcomes(task.vectors)] == [1, 1]
    erased = task.vectors.copy()
    erased[task.test[:3]] = 0
    for outcome in task.outcomes(erased):
        assert outcome.per_query[:3].tolist() == [0, 0, 0]
        assert outcome.per_query[3:].all()


def test_when_everything_vanished_nothing_is_right() -> None:
    task = labelled_task(classes())
    assert [outcome.value for outcome in task.outcomes(np.zeros_like(task.vectors))] == [0, 0]


def test_vanished_train_rows_do_not_vote() -> None:
    """Nine in ten train rows are gone; the others still tell classes apart, however few they are."""
    task = labelled_task(classes(4, 60, between=9.0), k=10)
    erased = task.vectors.copy()
    seen = np.isin(np.arange(len(task.train)), [np.flatnonzero(task.classes[task.train] == c)[0] for c in range(4)])
    erased[task.train[~seen]] = 0
    knn, _ = task.outcomes(erased)
    assert knn.value == 1


def test_a_split_column_decides_and_val_and_validation_are_test() -> None:
    made = classes(3, 4)
    place = np.argsort(np.argsort(made.ids))
    words, others = (np.array(["train", "test", "val", "validation"])[(place + shift) % 4] for shift in (0, 1))
    given = EmbeddingSet.from_arrays(
        made.vectors, made.identities, ids=made.ids.tolist(), labels={"split": words, "side": others}
    )
    ids = np.sort(made.ids)
    task, other = labelled_task(given, k=2), labelled_task(given, k=2, split_column="side")
    assert ids[task.train].tolist() == sorted(made.ids[words == "train"])
    assert ids[task.test].tolist() == sorted(made.ids[words != "train"])
    assert ids[other.train].tolist() == sorted(made.ids[others == "train"])
    assert task.notes == ()


def test_without_a_split_a_fifth_of_each_class_is_drawn_for_the_test() -> None:
    task = labelled_task(classes(6, 20), seed=3)
    assert np.bincount(task.classes[task.test]).tolist() == [4] * 6
    assert len(np.intersect1d(task.train, task.test)) == 0
    assert task.notes == ("no column 'split': 24 of 120 rows were drawn for the test",)
    assert task.test.tolist() != labelled_task(classes(6, 20), seed=4).test.tolist()


def test_small_classes_keep_a_row_on_either_side() -> None:
    codes = np.repeat(np.arange(4), [1, 2, 3, 13])
    assert np.bincount(codes[set_aside(codes, np.random.default_rng(0))], minlength=4).tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_order_of_rows_and_number_of_threads_do_not_matter(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = classes(20, 70, between=0.6)
    expected = labelled_task(made, seed=1)
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    found = labelled_task(shuffled(made, cores), seed=1)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    for ours, theirs in zip(found.outcomes(found.vectors), expected.outcomes(expected.vectors), strict=True):
        np.testing.assert_array_equal(ours.per_query, theirs.per_query)


def outcome(per_query: ArrayLike, groups: Sequence[int] | None = None, measure: str = "knn") -> Outcome:
    values = np.asarray(per_query, np.float64)
    return Outcome(measure, "objects", values, np.arange(len(values)) if groups is None else np.array(groups))


def hits(right: int, of: int) -> Outcome:
    return outcome(np.arange(of) < right)


def test_values_of_independent_queries_have_wilsons_interval() -> None:
    found = kept(hits(80, 100), hits(60, 100))
    for share, right in ((found.raw, 80), (found.erased, 60)):
        expected = wilson(right, 100)
        assert share.value == right / 100
        assert (share.low, share.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_queries_that_come_in_fives_are_worth_a_fifth() -> None:
    """The corrections for 20 groups and for 100 queries leave a little less than 20 trials of the 100."""
    groups = np.repeat(np.arange(20), 5).tolist()
    right = outcome(np.repeat(np.arange(20) < 12, 5), groups)
    found = kept(right, right)
    trials = 20 * (19 / 20) * (100 / 99)
    expected = wilson(0.6 * trials, trials)
    assert (found.raw.low, found.raw.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_the_retained_share_and_its_interval_by_hand() -> None:
    """Ten queries: eight right before, six after, of these five the same: kept 0.75.

    after − 0.75 before is 1/4 five times, 1 once, −3/4 three times, 0 once: squares sum to 5/16 + 1 + 27/16 = 3.
    """
    before = outcome([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    after = outcome([1, 1, 1, 1, 1, 0, 0, 0, 1, 0])
    found = kept(before, after).retained
    half = float(ndtri(0.975)) * math.sqrt(3) / 10 / 0.8
    assert found.value == pytest.approx(0.75)
    assert (found.low, found.high) == pytest.approx((0.75 - half, 0.75 + half))
    wider = kept(before, after, level=0.99)
    assert (wider.retained.level, wider.retained.low < found.low) == (0.99, True)


def test_what_both_spaces_share_cancels() -> None:
    """The same losses on the same queries: unpaired, the interval would be some four times as wide."""
    before = hits(500, 1000)
    paired = kept(before, hits(490, 1000)).retained
    apart = kept(before, outcome(np.arange(1000) >= 510)).retained
    assert paired.value == apart.value
    assert (apart.high - apart.low) > 4 * (paired.high - paired.low)


def test_more_may_be_retained_than_there_was() -> None:
    found = kept(hits(50, 100), hits(75, 100)).retained
    assert found.value == 1.5
    assert found.low > 1


def test_where_no_query_changed_the_next_still_may() -> None:
    """None of 100 changed: at most 3 in 100 would, beside the half that were right."""
    found = kept(hits(50, 100), hits(50, 100)).retained
    room = (1 - 0.05 ** (1 / 100)) / 0.5
    assert found.value == 1
    assert (found.low, found.high) == pytest.approx((1 - room, 1 + room))


def test_where_nothing_is_left_the_upper_end_is_above_zero() -> None:
    found = kept(hits(50, 100), hits(0, 100))
    assert (found.retained.value, found.retained.low) == (0, 0)
    assert found.retained.high == pytest.approx((1 - 0.05 ** (1 / 100)) / 0.5)
    assert found.erased.low == 0 < found.erased.high


def test_shares_that_are_all_the_same_up_to_rounding_do_not_count_as_certain() -> None:
    found = kept(outcome(np.ones(30)), outcome(np.full(30, 0.3)))
    assert found.erased.high - found.erased.low > 0.2
    assert found.retained.high - found.retained.low > 0.1


def test_shares_that_hardly_vary_are_known_better_than_hits_and_misses() -> None:
    shares = outcome(np.tile([0.4, 0.6], 50))
    found = kept(outcome(np.ones(100)), shares)
    assert found.erased.high - found.erased.low < 0.05
    assert kept(outcome(np.ones(100)), hits(50, 100)).erased.high > 0.59


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("left", "level"), [(0.9, 0.95), (0.5, 0.95), (0.8, 0.9)])
def test_intervals_cover_the_truth_as_often_as_they_say(size: int, left: float, level: float) -> None:
    """Redraws of 100 groups; in a group queries are right together. Truth: 0.8 before, 0.8 × left + 0.2 × 0.1 after."""
    rng = np.random.default_rng([size, int(100 * left), int(100 * level)])
    truth, redraws = (0.8 * left + 0.02) / 0.8, 600
    covered = np.zeros(3)
    for _ in range(redraws):
        easy, lucky = rng.random(100) < 0.8, rng.random(100)
        # Within a group three in four queries follow it, the rest go their own way.
        follow = rng.random((100, size)) < 0.75
        right = np.where(follow, easy[:, None], rng.random((100, size)) < 0.8)
        luck = np.where(follow, lucky[:, None], rng.random((100, size)))
        still = np.where(right, luck < left, luck < 0.1)
        groups = np.repeat(np.arange(100), size).tolist()
        found = kept(outcome(right.ravel(), groups), outcome(still.ravel(), groups), level)
        shares = ((found.raw, 0.8), (found.erased, 0.8 * truth), (found.retained, truth))
        covered += [share.low <= true <= share.high for share, true in shares]
    assert covered / redraws == pytest.approx(level, abs=0.04)


def test_missing_and_empty_both_mean_a_reference() -> None:
    rows = [("r0", [1.0, 0.1]), ("r1", [0.1, 1.0]), ("", [1.0, 1.0]), (None, [-1.0, 1.0])]
    task = copy_task(copies(at_angles(0, 90), rows))
    assert (len(task.references), len(task.queries)) == (4, 2)


def test_integers_name_ids_too() -> None:
    named = np.array([None, None, 0, 1], dtype=object)
    vectors = at_angles(0, 90, 1, 91)
    task = copy_task(EmbeddingSet.from_arrays(vectors, list("abcd"), labels={"copy_of": named}))
    assert task.named.tolist() == [0, 1]


def test_a_copy_column_makes_a_copy_task_and_nothing_else_a_labelled_one() -> None:
    (found,) = utility_tasks(noisy_copies())
    assert isinstance(found, CopyTask)
    (found,) = utility_tasks(classes(), seed=3)
    assert isinstance(found, LabelledTask)
    assert (
        found.test.tolist() == labelled_task(classes(), seed=3).test.tolist() != labelled_task(classes()).test.tolist()
    )


def in_bursts(times: int, seed: int = 3) -> EmbeddingSet:
    """Rows of six classes that overlap, each of them ``times`` times, with the burst that it belongs to."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(6), 30)
    rows = rng.standard_normal((6, 8))[codes] + 1.5 * rng.standard_normal((len(codes), 8))
    # The same fifth of the bursts is tested, however often each is repeated.
    split = np.where(np.arange(len(codes)) % 5 == 0, "test", "train")
    repeated = np.repeat(np.arange(len(codes)), times)
    labels = {"group": np.array([f"burst {row}" for row in repeated]), "split": split[repeated]}
    ids = [f"{row:03d}-{number}" for number, row in enumerate(repeated)]
    vectors = rows[repeated].astype(np.float32)
    names = [f"c{code}" for code in codes[repeated]]
    return EmbeddingSet.from_arrays(vectors, names, ids=ids, labels=labels, source="b")


def test_a_burst_of_one_scene_counts_as_one_row() -> None:
    """Every row five times tells nothing new: intervals stay; without the column they shrink to less than a half."""
    alone, five = (labelled_task(in_bursts(times), k=1) for times in (1, 5))
    before, after = (measured(task)["knn"] for task in (alone, five))
    assert len(after.per_query) == 5 * len(before.per_query)
    one, many = kept(before, before).raw, kept(after, after).raw
    assert (many.value, many.low, many.high) == pytest.approx((one.value, one.low, one.high), abs=0.01)
    unknown = Outcome("knn", "b", after.per_query, np.arange(len(after.per_query)))
    short = kept(unknown, unknown).raw
    assert short.high - short.low < (one.high - one.low) / 2


def test_a_burst_is_never_both_learned_from_and_asked() -> None:
    made = in_bursts(5)
    drawn = replace(made, labels={"group": made.labels["group"]})
    task = labelled_task(drawn)
    groups, tested = task.groups, np.zeros(len(task.groups), bool)
    tested[task.test] = True
    assert not set(groups[tested]) & set(groups[~tested])
    assert not set(groups[task.train][task.held]) & set(groups[task.train][~task.held])
    assert np.bincount(task.classes[tested]).tolist() == [30] * 6, "a fifth of each class"
