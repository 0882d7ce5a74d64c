"""Copy detection: whether an edited picture still finds the one it was made from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.data.embeddings import as_text
from unface.errors import UnfaceError
from unface.utility.outcome import Outcome, by_id, require_rows
from unface.utility.ranking import rank_copies

COLUMN = "copy_of"
_DEPTHS = (1, 5, 10)


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
        require_rows(self, vectors)
        ranking = rank_copies(vectors[self.queries], vectors[self.references], self.named)
        copies = self.named >= 0
        rank, groups = ranking.rank[copies], self.groups[copies]
        recalls = (
            Outcome(f"copy recall@{depth}", self.on, ((rank > 0) & (rank <= depth)).astype(np.float64), groups)
            for depth in _DEPTHS
        )
        return *recalls, Outcome("copy µAP", self.on, ranking.precision, self.groups)


def copy_task(embeddings: EmbeddingSet) -> CopyTask:
    """Rows with nothing in ``copy_of`` are references; the others are queries that name the id of a reference.

    A query that names no reference is a distractor: right is to match nothing, so it only counts against µAP.
    """
    ordered = by_id(embeddings)
    if COLUMN not in ordered.labels:
        there = ", ".join(repr(name) for name in ordered.labels) or "none"
        raise UnfaceError(f"{ordered.source}: no column {COLUMN!r} beside vectors and ids; there is {there}")
    original = as_text(ordered.labels[COLUMN], f"{ordered.source}: {COLUMN!r}")
    is_query = np.array([bool(name) for name in original])
    references, queries = np.flatnonzero(~is_query), np.flatnonzero(is_query)
    position = {row_id: number for number, row_id in enumerate(ordered.ids[references])}
    named = np.array([position.get(name, -1) for name in original[queries]], np.int64)
    copied, distractors = len(np.unique(named[named >= 0])), int(np.count_nonzero(named < 0))
    if copied < 2:
        raise UnfaceError(
            f"{ordered.source}: of {len(references)} rows with nothing in {COLUMN!r}, the other {len(queries)} name"
            f" {copied} there; copies of at least two such rows are needed"
        )
    note = f"{distractors} of {len(queries)} queries are copies of no reference; they count in µAP alone"
    groups = np.where(named < 0, len(references) + np.arange(len(named)), named)
    notes = (note,) if distractors else ()
    return CopyTask(ordered.source, notes, ordered.vectors, references, queries, named, groups)
