"""If these fail, a set that cannot carry a measure of use gives a number."""

from collections.abc import Callable

import numpy as np

from tests.refusals.table import Row, table
from tests.utility.small import at_angles, classes, copies
from unface.data import EmbeddingSet
from unface.utility import Outcome, copy_task, kept, labelled_task, neighbour_task


def task(name: str, act: Callable[[], object], *names: str, code: str = "task", where: str | None = "objects") -> Row:
    return Row(name, lambda _: act(), code, where, names)


def split_by(*words: object) -> EmbeddingSet:
    """Rows of cats and dogs in turn, with a column that says which are for tests."""
    vectors = np.random.default_rng(0).standard_normal((len(words), 4))
    names = ["cat", "dog"] * (len(words) // 2)
    ids = [f"i{row}" for row in range(len(words))]
    column = np.array(words, dtype=object)
    return EmbeddingSet.from_arrays(vectors, names, ids=ids, labels={"split": column}, source="objects")


def one_class() -> EmbeddingSet:
    made = split_by(*["train", "test"] * 4)
    return made.take(made.identities == 0)


def lonely() -> EmbeddingSet:
    return EmbeddingSet.from_arrays(np.eye(4), ["a", "a", "b", "b"], source="tiny").take(np.array([0, 1, 2]))


def made(measure: str, values: list[float], groups: list[int] | None = None) -> Outcome:
    return Outcome(measure, "objects", np.array(values, float), np.array(groups or range(len(values))))


ALONE = [("r1", [1, 1]), ("r1", [1, 2]), ("q0", [2, 1])]
WHOLE = ("train", "train", "test", "test")

test_refused = table(
    "utility",
    task("one-class", lambda: labelled_task(one_class())),
    task(
        "class-without-test-rows",
        lambda: labelled_task(split_by("train", "train", "test", "train"), k=1),
        "'dog'",
        "test",
        "1 of 2",
    ),
    task(
        "class-without-train-rows",
        lambda: labelled_task(split_by("test", "train", "test", "test"), k=1),
        "'cat'",
        "train",
        "1 of 2",
    ),
    task("class-of-one-row", lambda: labelled_task(lonely(), k=1), "'b'", "test", where="tiny"),
    task(
        "word",
        lambda: labelled_task(split_by("train", "train", "test", "fit")),
        "'i3'",
        "'fit'",
        "train, test, val, validation",
    ),
    task("no-word", lambda: labelled_task(split_by("train", "train", "test", None)), "'i3'", "None"),
    task("numbers-for-words", lambda: labelled_task(split_by(0.5, 0.5, 1.5, 1.5)), "'split'", "float", code="vectors"),
    task("too-many-neighbours", lambda: labelled_task(split_by(*WHOLE), k=3), "k is 3", "1 to 2"),
    task("no-neighbours", lambda: labelled_task(split_by(*WHOLE), k=0), "k is 0", "1 to 2"),
    task("as-many-neighbours-as-rows", lambda: neighbour_task(split_by(*["train"] * 6), k=6), "k is 6", "1 to 3"),
    task("no-column", lambda: copy_task(split_by(*["train"] * 4)), "'copy_of'", "'split'"),
    task("no-queries", lambda: copy_task(copies(at_angles(0, 9, 40), [])), "3 rows", "0 name 0", where="copies"),
    task("copies-of-one-row", lambda: copy_task(copies(at_angles(0, 9), ALONE)), "2 rows", "3 name 1", where="copies"),
    task(
        "other-vectors",
        lambda: labelled_task(classes(), k=1).outcomes(np.ones((3, 16), np.float32)),
        "(3, 16)",
        "240",
        where="synthetic",
    ),
    task("two-measures", lambda: kept(made("knn", [1, 0]), made("linear", [1, 0])), "knn", "linear", where="kept"),
    task("nothing-to-retain", lambda: kept(made("knn", [0, 0]), made("knn", [0, 0])), "2 queries", "knn"),
    task(
        "one-group",
        lambda: kept(made("overlap@2", [1, 1], [3, 3]), made("overlap@2", [1, 1], [3, 3])),
        "2 queries",
        "overlap@2",
    ),
)
