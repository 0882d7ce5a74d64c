"""Sanitise a store: stage erased vectors beside the raw ones, read them back, swap, and purge the raw ones if asked.

``plan_store`` does nothing of it: the same refusals, the steps in words, and how long they will take.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data.arrow import matrix_of
from unface.data.embeddings import Columns
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.result.words import count
from unface.scale import released_vectors
from unface.scale.receipt import Check, Receipt, Verified
from unface.scale.released import require_dim
from unface.scale.stream import NO_IDS
from unface.stores.ports import Exclusive, Foreseeable, Holding, Indexed, Readable, Rejecting, Store, Watched

_LOOKS = 20
"""How often to look for rows that arrived raw before giving up."""


def sanitise_store(
    projection: Projection, store: Store, *, purge: bool = False, progress: Progress | None = None
) -> Receipt:
    """Replace every vector of a store; the same call continues an interrupted run, and purges a finished one.

    Nothing is swapped before all vectors were read back and found erased.
    """
    with store.exclusive() if isinstance(store, Exclusive) else nullcontext():
        return _sanitise(projection, store, purge=purge, progress=progress or Silent())


def _sanitise(projection: Projection, store: Store, *, purge: bool, progress: Progress) -> Receipt:
    held, mark = store.inspect(), projection.sha256
    if held.sanitised_with is not None:
        return _continue_sanitised(projection, store, held, purge=purge)
    require_erasable(projection, held)

    def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        return released_vectors(projection, vectors, held.where)

    before = store.recall() if isinstance(store, Indexed) and not held.swapped else None
    store.stage(erase, mark, progress)
    arrived = 0
    if held.swapped:
        arrived = _erase_arrivals(projection, store, held)
        held = store.inspect()
    check = _read_back(projection, store)
    check.require(held.rows, held.where)
    unmatched = store.unmatched()
    if unmatched:
        raise UnfaceError(
            f"{held.where}: {unmatched:,} ids have only a raw or only an erased vector;"
            " was it written to during the run? stop writers and run it again"
        )
    store.swap(mark)
    receipt = _finish(projection, store, held, check, arrived, purge=purge)
    if before is None or not isinstance(store, Indexed):
        return receipt
    return receipt.model_copy(update={"recall_before": before, "recall_after": store.recall()})


def require_erasable(projection: Projection, held: Holding) -> None:
    """Refuse vectors of another dimension, and a store that cannot hold the shorter ones that would be released."""
    if not held.swapped:  # then its vectors may already be shorter
        require_dim(projection, held.dim, held.where)
    if projection.released_dim != held.dim and not held.resizable:
        raise UnfaceError(
            f"{held.where}: cannot hold vectors of {projection.released_dim} dimensions in place of {held.dim};"
            " pass --keep-dimension, which releases the same cosines in as many dimensions"
        )


def require_continuable(projection: Projection, held: Holding) -> None:
    """Refuse a store that another projection has erased."""
    if held.sanitised_with != projection.sha256:
        raise UnfaceError(
            f"{held.where}: already sanitised with another projection ({str(held.sanitised_with)[:12]}…);"
            " projections cannot be applied on top of each other, start from the raw vectors"
        )


def _continue_sanitised(projection: Projection, store: Store, held: Holding, *, purge: bool) -> Receipt:
    """Finish what an earlier run left: rows that arrived raw, and with ``purge`` the raw vectors that it kept."""
    require_continuable(projection, held)
    if isinstance(store, Rejecting):
        store.reject_raw(Check(projection))
    arrived = _erase_arrivals(projection, store, held)
    if not arrived and not held.raw_kept:
        raise UnfaceError(f"{held.where}: already sanitised with this projection; nothing to do")
    if not arrived and not purge:
        raise UnfaceError(
            f"{held.where}: already sanitised with this projection; raw vectors are still kept, --purge removes them"
        )
    held, check = store.inspect(), _read_back(projection, store)
    if check.rows:
        try:
            check.require(held.rows, held.where)
        except UnfaceError as error:
            raise UnfaceError(f"{error}; were rows added since? erase them with Projection.apply, then purge") from None
    return _finish(projection, store, held, check, arrived, purge=purge)


def _finish(projection: Projection, store: Store, held: Holding, check: Check, arrived: int, *, purge: bool) -> Receipt:
    """Purge if asked, and erase what others wrote raw meanwhile, until a look finds nothing.

    Without a purge one look that finds nothing is enough. A purge may lock the store too, so it is looked at again.
    """
    if isinstance(store, Rejecting):
        store.reject_raw(Check(projection))
    arrived += _erase_arrivals(projection, store, held, arrived)
    purged = store.purge() if purge else None
    while purge and (more := _erase_arrivals(projection, store, held, arrived)):
        arrived, purged = arrived + more, store.purge()
    return _receipt(projection, held, check, arrived, purged)


def _erase_arrivals(projection: Projection, store: Store, held: Holding, before: int = 0) -> int:
    """How many rows, after ``before`` of them; refuses if there is no end to them."""
    # Where vectors have become shorter, a raw one does not fit in any more.
    if not isinstance(store, Watched) or projection.released_dim != projection.dim:
        return 0
    arrived, erased = 0, Check(projection)
    for _ in range(_LOOKS):
        more = store.erase_arrivals(lambda raw: released_vectors(projection, raw, held.where), erased.is_erased)
        if not more:
            return arrived
        arrived += more
    raise UnfaceError(
        f"{held.where}: sanitised, but rows with raw vectors keep arriving ({before + arrived:,} were erased);"
        " stop whoever writes raw vectors, then give the same command with --purge"
    )


def _read_back(projection: Projection, store: Store) -> Check:
    check = Check(projection)
    for vectors in store.staged():
        check.add(vectors)
    return check


def _receipt(projection: Projection, held: Holding, check: Check, arrived: int, purged: list[str] | None) -> Receipt:
    """``purged``: the notes of a purge, None without one. Lossy stores cannot be read back after the swap."""
    notes = purged or []
    if arrived:
        notes = [
            f"{count(arrived, 'row')} arrived with raw vectors since the swap began, erased after it;"
            " erase vectors before they are written from now on",
            *notes,
        ]
    return Receipt.of(
        projection,
        held.where,
        rows=held.rows,
        degenerate=check.degenerate,
        not_faces=None if projection.gate is None or not check.rows else check.not_faces,
        named_space=False,
        arrived=arrived,
        raw_purged=purged is not None,
        verified=Verified.by(check) if check.rows or not held.rows else None,
        notes=notes,
    )


_SAMPLED = 10_000


@dataclass(frozen=True)
class StorePlan:
    """Of a run that was not made."""

    projection: Projection
    held: Holding
    steps: tuple[str, ...]
    sampled: int = 0
    seconds: float = 0.0
    """To read, erase and check so many vectors."""

    def lines(self) -> Iterator[str]:
        """For the terminal."""
        held, projection = self.held, self.projection
        yield "Dry run: nothing is changed."
        removed = f"{projection.rank} of {projection.dim} dimensions removed ({projection.kind})"
        released = f"they keep {held.dim} dimensions"
        if projection.released_dim != projection.dim:
            released = f"{held.dim} dimensions become {projection.released_dim}"
        yield f"{held.where}: {held.rows:,} vectors, {removed}; {released}"
        for number, step in enumerate(self.steps, 1):
            yield f"{number}. {step}"
        if self.sampled:
            whole = self.seconds * held.rows / self.sampled
            rest = "writing them and building indexes comes on top"
            yield f"Time: about {_duration(whole)} to read, erase and check, from {self.sampled:,} vectors; {rest}"
        yield "The store does not record its encoder: make sure that the projection was fitted on the same one."


def plan_store(projection: Projection, store: Store, *, purge: bool = False) -> StorePlan:
    """What ``sanitise_store`` would do with the same arguments; refuses what that would refuse at its start."""
    held = store.inspect()
    if held.sanitised_with is not None:
        require_continuable(projection, held)
        if not held.raw_kept or not purge:
            kept = "raw vectors are still kept, --purge removes them" if held.raw_kept else "nothing to do"
            raise UnfaceError(f"{held.where}: already sanitised with this projection; {kept}")
        return StorePlan(projection, held, ("Purge: the raw vectors that an earlier run kept are removed.",))
    require_erasable(projection, held)
    steps = store.foresee(projection.released_dim, purge=purge) if isinstance(store, Foreseeable) else []
    if not isinstance(store, Readable) or held.swapped:
        return StorePlan(projection, held, tuple(steps))
    return StorePlan(projection, held, tuple(steps), *_timed(projection, store, held))


def _timed(projection: Projection, store: Readable, held: Holding) -> tuple[int, float]:
    """Of the first vectors: how many, and the seconds they take."""
    started, rows, check = perf_counter(), 0, Check(projection)
    with store.reading(Columns(identity=None)) as collection:
        for batch in collection.batches(None):
            column = batch.slice(0, _SAMPLED - rows).column(collection.columns.vector)
            vectors, nulls = matrix_of(pa.chunked_array([column]), NO_IDS, held.where, "vector")
            erased = released_vectors(projection, vectors if nulls is None else vectors[~nulls], held.where)
            check.add(erased)
            rows += len(erased)
            if rows >= _SAMPLED:
                break
    return rows, perf_counter() - started


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
