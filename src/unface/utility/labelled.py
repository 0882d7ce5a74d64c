"""How well classes can still be told: k-NN and linear-probe top-1 on a set whose identities are its classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.data.embeddings import as_text
from unface.errors import UnfaceError
from unface.seeds import stream
from unface.utility.linear import predict_classes
from unface.utility.nearest import nearest
from unface.utility.outcome import Outcome, by_id, require_rows

_PARTS = {"train": False, "test": True, "val": True, "validation": True}
_ASIDE = 0.2


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """Train rows vote for and are fitted to the classes of test rows; each test row is a query of its own."""

    on: str
    notes: tuple[str, ...]
    vectors: NDArray[np.float32]
    classes: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    held: NDArray[np.bool_]  # of the train rows, those on which the linear probe chooses its α
    k: int

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``knn`` and ``linear``: whether each test row's class is told; never where the row is zero."""
        require_rows(self, vectors)
        train, test = vectors[self.train], vectors[self.test]
        voters = nearest(test, train, self.k)
        voted = majority(np.where(voters < 0, -1, self.classes[self.train][voters]))
        fitted = predict_classes(train, self.classes[self.train], self.held, test)
        return self._outcome("knn", voted), self._outcome("linear", np.where(test.any(axis=1), fitted, -1))

    def _outcome(self, measure: str, predicted: NDArray[np.int64]) -> Outcome:
        right = (predicted == self.classes[self.test]).astype(np.float64)
        return Outcome(measure, self.on, right, np.arange(len(right)))


def labelled_task(embeddings: EmbeddingSet, *, k: int = 10, seed: int = 0, split_column: str = "split") -> LabelledTask:
    """Split by the column of words if it is there (train; test, val or validation), else at random in each class."""
    ordered = by_id(embeddings)
    if len(ordered.names) < 2:
        raise UnfaceError(f"{ordered.source}: all rows are of one class; at least two are needed to tell apart")
    notes: tuple[str, ...] = ()
    if split_column in ordered.labels:
        in_test = _given_split(ordered, split_column)
    else:
        in_test = set_aside(ordered.identities, stream(seed, "utility", "split"))
        notes = (f"no column {split_column!r}: {in_test.sum()} of {len(in_test)} rows were drawn for the test",)
    _require_both(ordered, in_test)
    train, test = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    if not 1 <= k <= len(train):
        raise UnfaceError(f"{ordered.source}: k is {k} with {len(train)} train rows; expected 1 to {len(train)}")
    held = set_aside(ordered.identities[train], stream(seed, "utility", "held"))
    return LabelledTask(ordered.source, notes, ordered.vectors, ordered.identities, train, test, held, k)


def majority(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most frequent class among k neighbours, nearest first; of equally frequent ones that of the nearest.

    −1 is no neighbour and has no vote; −1 comes back where nobody has one.
    """
    votes = (classes[:, :, None] == classes[:, None, :]).sum(axis=2)
    winner = np.where(classes < 0, 0, votes).argmax(axis=1)
    return np.asarray(classes[np.arange(len(classes)), winner])


def set_aside(classes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """A fifth of the rows of each class, drawn at random: at least one, but none of a class that has only one."""
    chosen = np.zeros(len(classes), bool)
    # Shuffled, then sorted by class: each class's rows come in an order of their own.
    shuffled = rng.permutation(len(classes))
    rows = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sizes = np.bincount(classes)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    wanted = np.where(sizes < 2, 0, np.maximum(1, np.rint(_ASIDE * sizes)))
    chosen[rows[rank < np.repeat(wanted, sizes)]] = True
    return chosen


def _given_split(ordered: EmbeddingSet, column: str) -> NDArray[np.bool_]:
    words = as_text(ordered.labels[column], f"{ordered.source}: {column!r}").tolist()
    for word, row_id in zip(words, ordered.ids, strict=True):
        if word not in _PARTS:
            raise UnfaceError(
                f"{ordered.source}: id {row_id!r} has {word!r} in {column!r}; expected one of {', '.join(_PARTS)}"
            )
    return np.array([_PARTS[word] for word in words])


def _require_both(ordered: EmbeddingSet, in_test: NDArray[np.bool_]) -> None:
    for part, rows in (("train", ~in_test), ("test", in_test)):
        absent = np.flatnonzero(np.bincount(ordered.identities[rows], minlength=len(ordered.names)) == 0)
        if len(absent):
            raise UnfaceError(
                f"{ordered.source}: class {ordered.names[absent[0]]!r} has no {part} row ({len(absent)} of"
                f" {len(ordered.names)} classes have none); give each one or leave those classes out"
            )
