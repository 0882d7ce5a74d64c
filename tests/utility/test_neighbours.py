"""If these fail, neighbour overlap counts something else than neighbours kept."""

import numpy as np
import pytest

from tests.utility.small import at_angles, classes, shuffled
from unface.data import EmbeddingSet
from unface.utility import kept, neighbour_task
from unface.utility import tasks as module


def test_in_the_raw_space_every_neighbour_is_kept() -> None:
    task = neighbour_task(classes())
    before, _ = task.outcomes(task.vectors)
    assert before.measure == "neighbour overlap@10"
    assert (before.per_query == 1).all()
    found = kept(before, before)
    assert (found.raw.value, found.erased.value, found.retained.value) == (1, 1, 1)
    assert found.erased.low < 1


def test_overlap_by_hand() -> None:
    """Two people at 0°, 10°, 25° and at 30°, 62°, 80°; then the picture at 10° goes to 100°.

    Two nearest of the other person before: d e for a, b and c; c b for d, e and f. After: d e, f e, d e; c a, c b, b c.
    """
    made = EmbeddingSet.from_arrays(at_angles(0, 10, 25, 30, 62, 80), [*"ppp", *"qqq"], ids=list("abcdef"))
    task = neighbour_task(made, k=2)
    assert task.neighbours.tolist() == [[3, 4], [3, 4], [3, 4], [2, 1], [2, 1], [2, 1]]
    after, same = task.outcomes(np.array(at_angles(0, 100, 25, 30, 62, 80), np.float32))
    assert after.per_query.tolist() == [1, 0.5, 1, 0.5, 1, 1]
    assert after.groups.tolist() == [0, 0, 0, 1, 1, 1]
    # Two nearest of all: a: c d, b: f e, c: d a, d: c a, e: f d, f: e b
    assert same.measure == "neighbours of the same person@2"
    assert same.per_query.tolist() == [0.5, 0, 0.5, 0, 1, 0.5]


def test_removing_the_person_alone_keeps_every_neighbour_of_other_people() -> None:
    """Pictures are a scene and, far stronger, the face of one of 30 people in coordinates of its own."""
    rng = np.random.default_rng(3)
    scenes = rng.standard_normal((120, 8)).astype(np.float32)
    scenes /= np.linalg.norm(scenes, axis=1, keepdims=True)
    faces = np.zeros((120, 30), np.float32)
    faces[np.arange(120), np.arange(120) // 4] = 5
    both = np.hstack([scenes, faces])
    task = neighbour_task(EmbeddingSet.from_arrays(both, np.arange(120) // 4, ids=np.arange(120) + 1000))
    erased = task.vectors.copy()
    erased[:, 8:] = 0
    (overlap, same), (_, before) = task.outcomes(erased), task.outcomes(task.vectors)
    assert overlap.value > 0.999
    assert before.value == pytest.approx(0.3)
    assert same.value < 0.1


def test_neighbours_do_not_mind_a_rotation_and_do_mind_new_vectors() -> None:
    made = classes(20, 10, 16)
    task = neighbour_task(made, k=5)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))[0]
    turned, _ = task.outcomes((task.vectors @ turn).astype(np.float32))
    assert turned.value > 0.99
    other, _ = task.outcomes(np.random.default_rng(1).standard_normal((200, 16)).astype(np.float32))
    # Five of 190 pictures of other people at random.
    assert other.value == pytest.approx(5 / 190, abs=0.02)


def test_rows_that_vanish_keep_no_neighbours_and_are_none() -> None:
    made = EmbeddingSet.from_arrays(at_angles(0, 1, 90, 91), ["p", "p", "q", "q"], ids=list("abcd"))
    task = neighbour_task(made, k=1)
    erased = task.vectors.copy()
    erased[1] = 0
    after, _ = task.outcomes(erased)
    assert after.per_query.tolist() == [1, 0, 0, 0]
    nothing, same = task.outcomes(np.zeros_like(erased))
    assert not nothing.per_query.any()
    assert not same.per_query.any()


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
