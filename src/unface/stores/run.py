"""Sanitise a store: stage erased vectors beside the raw ones, read them back, swap, and purge the raw ones if asked."""

from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from unface.erase import Projection
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.scale import released_vectors
from unface.scale.receipt import Check, Receipt, Verified
from unface.scale.released import require_dim
from unface.stores.ports import Exclusive, Holding, Indexed, Rejecting, Store, Watched

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
            f"{arrived:,} rows were written with raw vectors since the swap began and were erased after it;"
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
