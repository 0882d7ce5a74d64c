"""If these fail, neighbour overlap counts something else than neighbours kept."""

import numpy as np
import pytest

from tests.utility.small import at_angles, classes, shuffled
from unface.data import EmbeddingSet
from unface.utility import kept, neighbour_task
from unface.utility import tasks as module


def test_in_the_raw_space_every_neighbour_is_kept() -> None:
    task = neighbour_task(classes())
    (before,) = task.outcomes(task.vectors)
    assert before.measure == "neighbour overlap@10"
    assert (before.per_query == 1).all()
    found = kept(before, before)
    assert (found.raw.value, found.erased.value, found.retained.value) == (1, 1, 1)
    assert found.erased.low < 1


def test_overlap_by_hand() -> None:
    """a, b, c, d at 0°, 10°, 25°, 60°; then b goes to 100°, across d.

    Two nearest before: a: b c, b: a c, c: b a, d: c b. After: a: c d, b: d c, c: a d, d: c b.
    """
    made = EmbeddingSet.from_arrays(at_angles(0, 10, 25, 60), ["p", "p", "q", "q"], ids=list("abcd"))
    task = neighbour_task(made, k=2)
    assert task.neighbours.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    (after,) = task.outcomes(np.array(at_angles(0, 100, 25, 60), np.float32))
    assert after.per_query.tolist() == [0.5, 0.5, 0.5, 1]
    assert after.groups.tolist() == [0, 0, 1, 1]


def test_neighbours_do_not_mind_a_rotation_and_do_mind_new_vectors() -> None:
    made = classes(20, 10, 16)
    task = neighbour_task(made, k=5)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))[0]
    (turned,) = task.outcomes((task.vectors @ turn).astype(np.float32))
    assert turned.value > 0.99
    (other,) = task.outcomes(np.random.default_rng(1).standard_normal((200, 16)).astype(np.float32))
    # Five of 199 at random: one in forty is kept.
    assert other.value == pytest.approx(5 / 199, abs=0.02)


def test_rows_that_vanish_keep_no_neighbours_and_are_none() -> None:
    made = EmbeddingSet.from_arrays(at_angles(0, 1, 90, 91), ["p", "p", "q", "q"], ids=list("abcd"))
    task = neighbour_task(made, k=1)
    erased = task.vectors.copy()
    erased[0] = 0
    (after,) = task.outcomes(erased)
    assert after.per_query.tolist() == [0, 0, 1, 1]
    (nothing,) = task.outcomes(np.zeros_like(erased))
    assert not nothing.per_query.any()


def test_large_sets_are_sampled_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_QUERIES", 50)
    made = classes()
    task = neighbour_task(made, seed=1)
    assert task.notes == ("50 of 240 rows were drawn as queries",)
    assert len(set(task.queries.tolist())) == 50
    assert task.vectors.shape == made.vectors.shape
    np.testing.assert_array_equal(task.queries, neighbour_task(shuffled(made, 5), seed=1).queries)
    assert task.queries.tolist() != neighbour_task(made, seed=2).queries.tolist()
    monkeypatch.undo()
    everyone = neighbour_task(made)
    np.testing.assert_array_equal(everyone.neighbours[task.queries], task.neighbours)
    assert everyone.notes == ()


def test_the_order_of_rows_does_not_matter() -> None:
    made = classes()
    erased = [
        task.outcomes((task.vectors * np.geomspace(1, 9, 16)).astype(np.float32))[0].per_query
        for task in (neighbour_task(made), neighbour_task(shuffled(made, 7)))
    ]
    assert 0.1 < erased[0].mean() < 0.9
    np.testing.assert_array_equal(erased[0], erased[1])
