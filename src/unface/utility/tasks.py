"""What vectors are used for: telling classes, finding copies, keeping neighbours. A task gives one number a query.

A task is built once and asked for its outcomes in every space, so that before and after rest on the same queries.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.data.embeddings import as_text
from unface.errors import UnfaceError
from unface.linear import RidgeFit
from unface.moments import ClassMoments, MomentStream
from unface.seeds import stream
from unface.threads import one_blas_thread, parallel_map
from unface.utility.ranking import nearest, rank_copies

_COPY_COLUMN = "copy_of"
_GROUP_COLUMN = "group"
_COPY_DEPTHS = (1, 5, 10)
_PARTS = {"train": False, "test": True, "val": True, "validation": True}
_ASIDE = 0.2
_MOST_QUERIES = 1000


@dataclass(frozen=True, eq=False)
class Outcome:
    """One measure in one space; its value is the mean over queries.

    ``per_query`` (q,) says how well each query went, from 0 to 1. A measure that is no mean, such as µAP, gives
    pseudo-values: their mean is the measure, and each differs from it by what its query adds, to first order.
    Queries that share a number in ``groups`` (q,) are not independent.
    """

    measure: str
    on: str
    per_query: NDArray[np.float64]
    groups: NDArray[np.int64]

    @property
    def value(self) -> float:
        """The measure."""
        return float(self.per_query.mean())


class Task(Protocol):
    """Something vectors are good for. Built once; asked for its outcomes in every space."""

    @property
    def on(self) -> str:
        """The name of the data."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know of the data."""
        ...

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit vectors (n, d) of the raw space, in the task's own order of rows: by id, whatever order they came in."""
        ...

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """What these vectors achieve: the task's own, or what an eraser made of them; zeros are near to nothing."""
        ...


def utility_tasks(embeddings: EmbeddingSet, seed: int = 0) -> tuple[Task, ...]:
    """Copy detection where rows say in ``copy_of`` what they are copies of; else telling identities as classes."""
    if _COPY_COLUMN in embeddings.labels:
        return (copy_task(embeddings),)
    return (labelled_task(embeddings, seed=seed),)


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """Train rows vote for and are fitted to the classes of test rows.

    Its intervals are for these classes: other classes may keep more or less.
    """

    on: str
    notes: tuple[str, ...]
    vectors: NDArray[np.float32]
    classes: NDArray[np.int64]
    groups: NDArray[np.int64]  # rows that share a number are not independent
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    held: NDArray[np.bool_]  # of the train rows, those on which the linear probe chooses its α
    k: int

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``knn`` and ``linear``: whether each test row's class is predicted; never where the row is zero."""
        _require_rows(self, vectors)
        train, test = vectors[self.train], vectors[self.test]
        voters = nearest(test, train, self.k)
        voted = majority(np.where(voters < 0, -1, self.classes[self.train][voters]))
        fitted = predict_classes(train, self.classes[self.train], self.held, test)
        return self._outcome("knn", voted), self._outcome("linear", np.where(test.any(axis=1), fitted, -1))

    def _outcome(self, measure: str, predicted: NDArray[np.int64]) -> Outcome:
        right = (predicted == self.classes[self.test]).astype(np.float64)
        return Outcome(measure, self.on, right, self.groups[self.test])


def labelled_task(embeddings: EmbeddingSet, *, k: int = 10, seed: int = 0, split_column: str = "split") -> LabelledTask:
    """Split by the column of words if it is there (train; test, val or validation), else at random in each class.

    Rows with the same word in a column ``group`` (a burst, a video) are drawn together, and count as one in intervals.
    """
    ordered = _by_id(embeddings)
    if len(ordered.names) < 2:
        raise UnfaceError(f"{ordered.source}: all rows are of one class; at least two are needed")
    notes: tuple[str, ...] = ()
    groups = None
    if _GROUP_COLUMN in ordered.labels:
        words = as_text(ordered.labels[_GROUP_COLUMN], f"{ordered.source}: {_GROUP_COLUMN!r}")
        groups = np.unique(words, return_inverse=True)[1].astype(np.int64)
    if split_column in ordered.labels:
        in_test = _given_split(ordered, split_column)
    else:
        in_test = set_aside(ordered.identities, stream(seed, "utility", "split"), groups)
        notes = (f"no column {split_column!r}: {in_test.sum()} of {len(in_test)} rows were drawn for the test",)
    _require_both(ordered, in_test)
    train, test = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    if not 1 <= k <= len(train):
        raise UnfaceError(f"{ordered.source}: k is {k} with {len(train)} train rows; expected 1 to {len(train)}")
    held = set_aside(
        ordered.identities[train], stream(seed, "utility", "held"), None if groups is None else groups[train]
    )
    apart = np.arange(len(ordered)) if groups is None else groups
    return LabelledTask(ordered.source, notes, ordered.vectors, ordered.identities, apart, train, test, held, k)


def majority(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most frequent class among k neighbours, nearest first; of equally frequent ones that of the nearest.

    −1 is no neighbour and has no vote; −1 comes back where nobody has one.
    """
    votes = (classes[:, :, None] == classes[:, None, :]).sum(axis=2)
    winner = np.where(classes < 0, 0, votes).argmax(axis=1)
    return np.asarray(classes[np.arange(len(classes)), winner])


def set_aside(
    classes: NDArray[np.int64], rng: np.random.Generator, groups: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """A fifth of the rows of each class, drawn at random: at least one, but none of a class that has only one.

    Groups are drawn whole, while their classes want more rows and keep some to learn from.
    """
    chosen = np.zeros(len(classes), bool)
    # Shuffled, then sorted by class: each class's rows come in an order of their own.
    shuffled = rng.permutation(len(classes))
    rows = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sizes = np.bincount(classes)
    wanted = np.where(sizes < 2, 0, np.maximum(1, np.rint(_ASIDE * sizes)))
    if groups is None or len(np.unique(groups)) == len(groups):
        rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen[rows[rank < np.repeat(wanted, sizes)]] = True
        return chosen
    numbers, counts = np.unique(groups, return_counts=True)
    parts = np.split(np.argsort(groups, kind="stable"), np.cumsum(counts)[:-1])
    members = dict(zip(numbers.tolist(), parts, strict=True))
    left = sizes.copy()
    for group in dict.fromkeys(groups[rows].tolist()):
        within, taken = np.unique(classes[members[group]], return_counts=True)
        if (wanted[within] > 0).all() and (taken < left[within]).all():
            chosen[members[group]] = True
            left[within] -= taken
            wanted[within] -= taken
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


@dataclass(frozen=True, eq=False)
class NeighbourTask:
    """Rows that are asked for their neighbours among the pictures of other people, and those of the raw space.

    Pictures of the same person are near because they show the same person, which is what erasure is to remove.
    """

    on: str
    notes: tuple[str, ...]
    vectors: NDArray[np.float32]
    people: NDArray[np.int64]  # (n,) of every row
    queries: NDArray[np.int64]
    neighbours: NDArray[np.int64]  # (q, k) of other people in the raw space

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``neighbour overlap@k``: the share of each query's neighbours of other people kept; all in the raw space.

        ``neighbours of the same person@k``: how many of all its neighbours show its own person.
        """
        _require_rows(self, vectors)
        k, own = self.neighbours.shape[1], self.people[self.queries]
        others = nearest(vectors[self.queries], vectors, k, apart=(own, self.people))
        kept = ((self.neighbours[:, :, None] == others[:, None, :]) & (others >= 0)[:, None, :]).any(axis=2)
        found = nearest(vectors[self.queries], vectors, k, apart=(self.queries, np.arange(len(vectors))))
        same = (self.people[found] == own[:, None]) & (found >= 0)
        return (
            Outcome(f"neighbour overlap@{k}", self.on, kept.mean(axis=1), own),
            Outcome(f"neighbours of the same person@{k}", self.on, same.mean(axis=1), own),
        )


def neighbour_task(embeddings: EmbeddingSet, *, k: int = 10, seed: int = 0) -> NeighbourTask:
    """Every row is a query against all others, or a thousand rows drawn at random where there are more."""
    ordered = _by_id(embeddings)
    count = len(ordered)
    others = count - int(np.bincount(ordered.identities).max())
    if not 1 <= k <= others:
        raise UnfaceError(
            f"{ordered.source}: k is {k} with {count} rows; expected 1 to {others} neighbours of other people"
        )
    queries = np.arange(count)
    notes: tuple[str, ...] = ()
    if count > _MOST_QUERIES:
        queries = np.sort(stream(seed, "utility", "queries").choice(count, _MOST_QUERIES, replace=False))
        notes = (f"{_MOST_QUERIES} of {count} rows were drawn as queries",)
    apart = ordered.identities[queries], ordered.identities
    neighbours = nearest(ordered.vectors[queries], ordered.vectors, k, apart=apart)
    return NeighbourTask(ordered.source, notes, ordered.vectors, ordered.identities, queries, neighbours)


@dataclass(frozen=True, eq=False)
class CopyTask:
    """Queries, each a copy of one reference or, as a distractor, of none (−1 in ``named``)."""

    on: str
    notes: tuple[str, ...]
    vectors: NDArray[np.float32]
    references: NDArray[np.int64]
    queries: NDArray[np.int64]
    named: NDArray[np.int64]  # (q,) position among the references
    groups: NDArray[np.int64]  # (q,) copies of one reference are not independent

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``copy recall@k`` over copies, and ``copy µAP`` over all pairs of a query and a reference."""
        _require_rows(self, vectors)
        ranking = rank_copies(vectors[self.queries], vectors[self.references], self.named)
        copies = self.named >= 0
        rank, groups = ranking.rank[copies], self.groups[copies]
        recalls = (
            Outcome(f"copy recall@{depth}", self.on, ((rank > 0) & (rank <= depth)).astype(np.float64), groups)
            for depth in _COPY_DEPTHS
        )
        return *recalls, Outcome("copy µAP", self.on, ranking.precision, self.groups)


def copy_task(embeddings: EmbeddingSet) -> CopyTask:
    """Rows with nothing in ``copy_of`` are references; the others are queries that name the id of a reference.

    A query that names no reference is a distractor: right is to match nothing, so it only counts against µAP.
    """
    ordered = _by_id(embeddings)
    if _COPY_COLUMN not in ordered.labels:
        there = ", ".join(repr(name) for name in ordered.labels) or "none"
        raise UnfaceError(f"{ordered.source}: no column {_COPY_COLUMN!r} beside vectors and ids; there is {there}")
    original = as_text(ordered.labels[_COPY_COLUMN], f"{ordered.source}: {_COPY_COLUMN!r}")
    is_query = np.array([bool(name) for name in original])
    references, queries = np.flatnonzero(~is_query), np.flatnonzero(is_query)
    position = {row_id: number for number, row_id in enumerate(ordered.ids[references])}
    named = np.array([position.get(name, -1) for name in original[queries]], np.int64)
    copied, distractors = len(np.unique(named[named >= 0])), int(np.count_nonzero(named < 0))
    if copied < 2:
        raise UnfaceError(
            f"{ordered.source}: of {len(references)} rows with nothing in {_COPY_COLUMN!r}, the other {len(queries)}"
            f" name {copied} there; copies of at least two such rows are needed"
        )
    note = f"{distractors} of {len(queries)} queries are copies of no reference; they count in µAP alone"
    groups = np.where(named < 0, len(references) + np.arange(len(named)), named)
    notes = (note,) if distractors else ()
    return CopyTask(ordered.source, notes, ordered.vectors, references, queries, named, groups)


def _by_id(embeddings: EmbeddingSet) -> EmbeddingSet:
    """Unit vectors in the order of their ids, so that no result depends on the order of rows and ties go to an id."""
    return embeddings.take(np.argsort(embeddings.ids, kind="stable")).unit()


def _require_rows(task: Task, vectors: NDArray[np.float32]) -> None:
    """Refuse vectors that cannot be the task's own after erasure."""
    rows = len(task.vectors)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise UnfaceError(f"{task.on}: vectors of shape {vectors.shape}; expected {rows} rows, erased or not")


STRENGTHS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""What α may be, in units of the centred scatter's mean over dimensions; of equally good ones the strongest wins."""

_ROWS_AT_ONCE = 1024


def predict_classes(
    train: NDArray[np.float32], classes: NDArray[np.int64], held: NDArray[np.bool_], test: NDArray[np.float32]
) -> NDArray[np.int64]:
    """The class of each test row; α is chosen on the held train rows, then all train rows are fitted.

    Classes are 0 … m − 1, each with a row that is not held.
    """
    # Class by class, because a stream numbers classes as they appear.
    order = np.argsort(classes, kind="stable")
    fitted, kept = order[~held[order]], order[held[order]]
    seen = MomentStream(train.shape[1], scatter=True)
    seen.add(train[fitted], classes[fitted])
    right = fit_ridge(seen.moments()).predict(train[kept], STRENGTHS) == classes[kept]
    strength = STRENGTHS[int(np.argmax(np.count_nonzero(right, axis=1)))]
    seen.add(train[kept], classes[kept])
    predicted: NDArray[np.int64] = fit_ridge(seen.moments()).predict(test, (strength,))[0]
    return predicted


@dataclass(frozen=True, eq=False)
class Ridge:
    """Scores are (x − mean) W + prior with W = (S + αI)⁻¹ XᵀY: S, the centred scatter, decomposed for every α."""

    mean: NDArray[np.float64]  # (d,)
    fit: RidgeFit
    prior: NDArray[np.float64]  # (m,)
    scale: float

    def predict(self, vectors: NDArray[np.float32], strengths: tuple[float, ...]) -> NDArray[np.int64]:
        """(strengths, n) classes of the vectors; of equal scores the first class."""
        work = partial(self._predict_block, vectors, strengths)
        parts = parallel_map(work, range(0, len(vectors), _ROWS_AT_ONCE))
        return np.concatenate([np.empty((len(strengths), 0), np.int64), *parts], axis=1)

    def _predict_block(
        self, vectors: NDArray[np.float32], strengths: tuple[float, ...], start: int
    ) -> NDArray[np.int64]:
        along = (vectors[start : start + _ROWS_AT_ONCE] - self.mean) @ self.fit.basis
        scores = (along @ self.fit.weights(strength * self.scale) + self.prior for strength in strengths)
        return np.array([score.argmax(axis=1) for score in scores])


def fit_ridge(moments: ClassMoments) -> Ridge:
    """From moments alone: XᵀY of centred vectors and one-hot classes is made of class sums."""
    count, mean = float(moments.counts.sum()), moments.mean()
    with one_blas_thread():
        fit = RidgeFit.of(
            moments.scatter - count * np.outer(mean, mean), (moments.sums - moments.counts[:, None] * mean).T
        )
    # Where all vectors are the same there is no scatter, and nothing for α to weigh against.
    scale = float(fit.energy.mean()) or 1.0
    return Ridge(mean, fit, moments.counts / count, scale)
