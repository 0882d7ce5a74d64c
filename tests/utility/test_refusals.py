"""If these fail, a set that cannot carry a measure gives a number, or a sentence that does not help."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.utility.small import at_angles, classes, copies, noisy_copies
from unface.data import EmbeddingSet
from unface.errors import UnfaceError
from unface.utility import (
    CopyTask,
    LabelledTask,
    Outcome,
    copy_task,
    kept,
    labelled_task,
    neighbour_task,
    utility_tasks,
)


def split_by(words: list[object]) -> EmbeddingSet:
    vectors = np.random.default_rng(0).standard_normal((len(words), 4))
    names = ["cat", "dog"] * (len(words) // 2)
    ids = [f"i{row}" for row in range(len(words))]
    column = np.array(words, dtype=object)
    return EmbeddingSet.from_arrays(vectors, names, ids=ids, labels={"split": column}, source="objects")


def one_class() -> EmbeddingSet:
    made = split_by(["train", "test"] * 4)
    return made.take(made.identities == 0)


def lonely() -> EmbeddingSet:
    return EmbeddingSet.from_arrays(np.eye(4), ["a", "a", "b", "b"], source="tiny").take(np.array([0, 1, 2]))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "one class": (
        lambda: labelled_task(one_class()),
        "objects: all rows are of one class; at least two are needed",
    ),
    "a class without test rows": (
        lambda: labelled_task(split_by(["train", "train", "test", "train"]), k=1),
        "objects: class 'dog' has no test row (1 of 2 classes have none); give each one or leave those classes out",
    ),
    "a class without train rows": (
        lambda: labelled_task(split_by(["test", "train", "test", "test"]), k=1),
        "objects: class 'cat' has no train row (1 of 2 classes have none); give each one or leave those classes out",
    ),
    "a class of one row": (
        lambda: labelled_task(lonely(), k=1),
        "tiny: class 'b' has no test row (1 of 2 classes have none); give each one or leave those classes out",
    ),
    "another word": (
        lambda: labelled_task(split_by(["train", "train", "test", "fit"])),
        "objects: id 'i3' has 'fit' in 'split'; expected one of train, test, val, validation",
    ),
    "no word": (
        lambda: labelled_task(split_by(["train", "train", "test", None])),
        "objects: id 'i3' has None in 'split'; expected one of train, test, val, validation",
    ),
    "numbers for words": (
        lambda: labelled_task(split_by([0.5, 0.5, 1.5, 1.5])),
        "objects: 'split' holds a value of type float; expected text or integers",
    ),
    "too many neighbours": (
        lambda: labelled_task(split_by(["train", "train", "test", "test"]), k=3),
        "objects: k is 3 with 2 train rows; expected 1 to 2",
    ),
    "no neighbours": (
        lambda: labelled_task(split_by(["train", "train", "test", "test"]), k=0),
        "objects: k is 0 with 2 train rows; expected 1 to 2",
    ),
    "as many neighbours as rows": (
        lambda: neighbour_task(split_by(["train"] * 6), k=6),
        "objects: k is 6 with 6 rows; expected 1 to 5 neighbours",
    ),
    "no column": (
        lambda: copy_task(split_by(["train"] * 4)),
        "objects: no column 'copy_of' beside vectors and ids; there is 'split'",
    ),
    "no queries": (
        lambda: copy_task(copies(at_angles(0, 9, 40), [])),
        "copies: of 3 rows with nothing in 'copy_of', the other 0 name 0 there;"
        " copies of at least two such rows are needed",
    ),
    "copies of one row alone": (
        lambda: copy_task(copies(at_angles(0, 9), [("r1", [1, 1]), ("r1", [1, 2]), ("q0", [2, 1])])),
        "copies: of 2 rows with nothing in 'copy_of', the other 3 name 1 there;"
        " copies of at least two such rows are needed",
    ),
    "vectors of another set": (
        lambda: labelled_task(classes(), k=1).outcomes(np.ones((3, 16), np.float32)),
        "synthetic: vectors of shape (3, 16); expected 240 rows, erased or not",
    ),
    "two measures": (
        lambda: kept(made("knn", [1, 0]), made("linear", [1, 0])),
        "kept: knn on objects with 2 queries cannot be compared with linear on objects with 2; take both from one task",
    ),
    "nothing to retain": (
        lambda: kept(made("knn", [0, 0]), made("knn", [0, 0])),
        "objects: the raw vectors get none of 2 queries of knn right, so nothing can be retained;"
        " check its labels or leave it out",
    ),
    "one group": (
        lambda: kept(made("overlap@2", [1, 1], [3, 3]), made("overlap@2", [1, 1], [3, 3])),
        "objects: all 2 queries of overlap@2 are of one identity, or copies of one picture;"
        " an interval needs at least two",
    ),
}


def made(measure: str, values: list[float], groups: list[int] | None = None) -> Outcome:
    return Outcome(measure, "objects", np.array(values, float), np.array(groups or range(len(values))))


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_measured_is_refused_in_one_sentence(case: str) -> None:
    attempt, sentence = REFUSED[case]
    with pytest.raises(UnfaceError, match=f"^{re.escape(sentence)}$"):
        attempt()


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
