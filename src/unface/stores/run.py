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
from unface.stores.ports import Exclusive, Holding, Store


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
        return _purge_sanitised(projection, store, held, purge=purge)
    require_dim(projection, held.dim, held.where)

    def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        return released_vectors(projection, vectors, held.where)

    store.stage(erase, mark, progress)
    check = _read_back(projection, store)
    check.require(held.rows, held.where)
    unmatched = store.unmatched()
    if unmatched:
        raise UnfaceError(
            f"{held.where}: {unmatched:,} ids have only a raw or only an erased vector;"
            " was it written to during the run? stop writers and run it again"
        )
    store.swap(mark)
    return _receipt(projection, held, check, store.purge() if purge else None)


def _purge_sanitised(projection: Projection, store: Store, held: Holding, *, purge: bool) -> Receipt:
    """Purge the raw vectors that an earlier run kept."""
    if held.sanitised_with != projection.sha256:
        raise UnfaceError(
            f"{held.where}: already sanitised with another projection ({str(held.sanitised_with)[:12]}…);"
            " projections cannot be applied on top of each other, start from the raw vectors"
        )
    if not held.raw_kept:
        raise UnfaceError(f"{held.where}: already sanitised with this projection; nothing to do")
    if not purge:
        raise UnfaceError(
            f"{held.where}: already sanitised with this projection; raw vectors are still kept, --purge removes them"
        )
    check = _read_back(projection, store)
    if check.rows:
        try:
            check.require(held.rows, held.where)
        except UnfaceError as error:
            raise UnfaceError(f"{error}; were rows added since? erase them with Projection.apply, then purge") from None
    return _receipt(projection, held, check, store.purge())


def _read_back(projection: Projection, store: Store) -> Check:
    check = Check(projection)
    for vectors in store.staged():
        check.add(vectors)
    return check


def _receipt(projection: Projection, held: Holding, check: Check, purged: list[str] | None) -> Receipt:
    """``purged``: the notes of a purge, None without one. Lossy stores cannot be read back after the swap."""
    return Receipt.of(
        projection,
        held.where,
        rows=held.rows,
        degenerate=check.degenerate,
        named_space=False,
        raw_purged=purged is not None,
        verified=Verified.by(check) if check.rows or not held.rows else None,
        notes=purged or [],
    )
