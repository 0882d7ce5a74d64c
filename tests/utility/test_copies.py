"""If these fail, recall or µAP is not that of the copy-detection literature, or its interval is of something else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from tests.utility.small import at_angles, copies, noisy_copies, shuffled
from unface import threads
from unface.utility import CopyTask, Outcome, copy_task, kept
from unface.utility import ranking as module
from unface.utility.ranking import rank_copies


def measured(task: CopyTask, vectors: NDArray[np.float32] | None = None) -> dict[str, Outcome]:
    return {outcome.measure: outcome for outcome in task.outcomes(task.vectors if vectors is None else vectors)}


def hand_worked() -> CopyTask:
    """Queries at 2°, 31° and 61°, copies of references at 0°, 60° and 90°.

    In falling order of cosine, by angle between: q2-r1 1° false, q0-r0 2° true, q1-r1 29° true, q2-r2 29° true and
    q1-r0 31° false, and so on. Precisions at the copies: 1/2; then both at 29°, 3/4 each.
    """
    return copy_task(copies(at_angles(0, 60, 90), list(zip(["r0", "r1", "r2"], at_angles(2, 31, 61), strict=True))))


def test_recall_and_micro_precision_by_hand() -> None:
    found = measured(hand_worked())
    assert found["copy recall@1"].per_query.tolist() == [1, 1, 0]
    assert found["copy recall@5"].value == 1
    assert found["copy µAP"].value == pytest.approx((1 / 2 + 3 / 4 + 3 / 4) / 3)


def test_a_distractor_costs_precision_and_no_recall() -> None:
    """At 0.5° from r0 it comes before every copy: precisions 1/3, then 3/5 twice."""
    rows = [*zip(["r0", "r1", "r2"], at_angles(2, 31, 61), strict=True), ("gone", at_angles(-0.5)[0])]
    task = copy_task(copies(at_angles(0, 60, 90), rows))
    found = measured(task)
    assert found["copy recall@1"].per_query.tolist() == [1, 1, 0]
    assert found["copy µAP"].value == pytest.approx((1 / 3 + 3 / 5 + 3 / 5) / 3)
    assert len(found["copy µAP"].per_query) == 4
    assert task.notes == ("1 of 4 queries are copies of no reference; they count in µAP alone",)
    assert hand_worked().notes == ()


def peer(
    task: CopyTask, weights: NDArray[np.float64] | None = None, vectors: NDArray[np.float32] | None = None
) -> float:
    vectors = task.vectors if vectors is None else vectors
    exact = vectors.astype(np.float64)
    scores = (exact[task.queries] @ exact[task.references].T).astype(np.float32)
    truth = task.named[:, None] == np.arange(len(task.references))
    each = None if weights is None else np.repeat(weights, len(task.references))
    return float(average_precision_score(truth.ravel(), scores.ravel(), sample_weight=each))


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.floats(0.05, 2), st.integers(0, 9))
def test_micro_precision_is_that_of_scikit_learn(seed: int, noise: float, distractors: int) -> None:
    task = copy_task(noisy_copies(noise=noise, distractors=distractors, seed=seed))
    assert measured(task)["copy µAP"].value == pytest.approx(peer(task), abs=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.floats(0.3, 1))
def test_pseudo_values_are_what_each_query_adds(seed: int, noise: float) -> None:
    """The slope of scikit-learn's weighted value in each query's weight."""
    task = copy_task(noisy_copies(20, 12, 4, noise=noise, distractors=3, seed=seed))
    found = measured(task)["copy µAP"]
    step = 1e-5
    for row in range(15):
        weights = np.ones(15)
        weights[row] += step
        more = peer(task, weights)
        weights[row] -= 2 * step
        slope = (more - peer(task, weights)) / (2 * step)
        assert (found.per_query[row] - found.value) / 15 == pytest.approx(slope, abs=1e-7)


def test_the_reference_of_a_copy_is_ranked_behind_better_ones_and_equal_ones_with_a_smaller_id() -> None:
    """r1, r2 and r3 are one picture: a copy of r1 finds it first, one of r3 third; r0 lies across."""
    references = at_angles(90, 10, 10, 10)
    queries = [(f"r{number}", at_angles(12)[0]) for number in range(4)]
    task = copy_task(copies(references, queries))
    ranks = rank_copies(task.vectors[task.queries], task.vectors[task.references], task.named).rank
    assert ranks.tolist() == [4, 1, 2, 3]
    found = measured(task)
    assert found["copy recall@1"].per_query.tolist() == [0, 1, 0, 0]
    assert found["copy recall@5"].value == 1


def test_pairs_of_equal_score_are_accepted_together() -> None:
    """The same four queries: twelve pairs at 2°, three of them true, then all sixteen with the fourth."""
    queries = [(f"r{number}", at_angles(12)[0]) for number in range(4)]
    found = measured(copy_task(copies(at_angles(90, 10, 10, 10), queries)))
    assert found["copy µAP"].value == pytest.approx((3 * 3 / 12 + 4 / 16) / 4)


def test_recall_counts_references_within_its_depth() -> None:
    """Twelve references fan out from the queries, which name the 1st, 5th, 6th, 10th and 11th nearest."""
    queries = [(f"r{number:d}", at_angles(0)[0]) for number in (0, 4, 5, 9, 10)]
    found = measured(copy_task(copies(at_angles(*range(1, 13)), queries)))
    assert found["copy recall@1"].per_query.tolist() == [1, 0, 0, 0, 0]
    assert found["copy recall@5"].per_query.tolist() == [1, 1, 0, 0, 0]
    assert found["copy recall@10"].per_query.tolist() == [1, 1, 1, 1, 0]


def test_what_vanished_is_never_found_and_stands_in_nobodys_way() -> None:
    task = copy_task(noisy_copies(noise=0.01))
    assert {outcome.value for outcome in task.outcomes(task.vectors)} == {1.0}
    lost_query, lost_reference = task.vectors.copy(), task.vectors.copy()
    lost_query[task.queries[:6]] = 0
    reference = task.named[0]
    lost_reference[task.references[reference]] = 0
    copied = int(np.count_nonzero(task.named == reference))
    for vectors, lost in [(lost_query, 6), (lost_reference, copied)]:
        for outcome in task.outcomes(vectors):
            assert outcome.value == pytest.approx(1 - lost / 30)
    for outcome in task.outcomes(np.zeros_like(task.vectors)):
        assert not outcome.per_query.any()


def test_identity_retains_exactly_one() -> None:
    task = copy_task(noisy_copies(noise=2.0, distractors=5))
    for raw, same in zip(task.outcomes(task.vectors), task.outcomes(task.vectors.copy()), strict=True):
        assert 0 < raw.value < 1
        assert kept(raw, same).retained.value == 1


def test_copies_of_one_reference_are_one_group_and_distractors_are_their_own() -> None:
    rows = list(zip(["r1", "r0", "r1", "x", "x"], at_angles(1, 2, 3, 4, 5), strict=True))
    found = measured(copy_task(copies(at_angles(0, 60), rows)))
    groups = found["copy µAP"].groups
    assert groups[0] == groups[2]
    assert len(set(groups.tolist())) == 4
    assert found["copy recall@1"].groups.tolist() == groups[:3].tolist()


def test_intervals_of_micro_precision_cover_the_truth() -> None:
    """Redraws of 60 copies and 15 distractors for the same references; truth from many; erased: three of eight axes."""
    rng = np.random.default_rng(0)
    references = rng.standard_normal((40, 8))
    keep = np.array([1, 1, 1, 1, 1, 0, 0, 0])

    def drawn(count: int) -> tuple[Outcome, Outcome]:
        named = np.concatenate([rng.integers(40, size=4 * count), np.full(count, -1)])
        queries = np.where(named[:, None] < 0, 0, references[named]) + 0.8 * rng.standard_normal((5 * count, 8))
        pairs = (((queries * axes).astype(np.float32), (references * axes).astype(np.float32)) for axes in (1, keep))
        raw, erased = (Outcome("copy µAP", "copies", rank_copies(*pair, named).precision, named) for pair in pairs)
        return raw, erased

    raw, erased = drawn(700)
    truths = (raw.value, erased.value, erased.value / raw.value)
    assert 0.3 < truths[1] < truths[0] < 0.95
    covered = np.zeros(3)
    for _ in range(300):
        before, after = drawn(15)
        alone = np.arange(75)
        found = kept(replace(before, groups=alone), replace(after, groups=alone))
        shares = zip((found.raw, found.erased, found.retained), truths, strict=True)
        covered += [share.low <= truth <= share.high for share, truth in shares]
    assert (covered / 300 > 0.9).all()
    assert (covered / 300 < 0.99).all()


@pytest.mark.parametrize("cores", [1, 3])
def test_blocks_threads_and_order_of_rows_do_not_matter(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = noisy_copies(90, 70, distractors=5)
    expected = measured(copy_task(made))
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    task = copy_task(shuffled(made, 1))
    assert [outcome.per_query.tolist() for outcome in task.outcomes(task.vectors)] == [
        outcome.per_query.tolist() for outcome in expected.values()
    ]
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 7)
    monkeypatch.setattr(module, "_REFERENCES_AT_ONCE", 11)
    for outcome in task.outcomes(task.vectors):
        assert outcome.per_query == pytest.approx(expected[outcome.measure].per_query, abs=1e-12)
