"""If these fail, a set that cannot carry a measure gives a number, or a sentence that does not help."""

import numpy as np

from tests.utility.small import at_angles, classes, copies, noisy_copies
from unface.data import EmbeddingSet
from unface.utility import (
    CopyTask,
    LabelledTask,
    copy_task,
    labelled_task,
    utility_tasks,
)


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
