"""A store sanitised: staged beside the raw vectors, read back, swapped, and the raw ones purged if asked."""

import numpy as np
from numpy.typing import NDArray

from unface.erase import Projection
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.scale import released_vectors
from unface.scale.receipt import Check, Receipt, Verified
from unface.scale.released import require_dim
from unface.stores.ports import Holding, Store


def sanitise_store(
    projection: Projection, store: Store, *, purge: bool = False, progress: Progress | None = None
) -> Receipt:
    """Replace every vector of a store; the same call goes on with one that was cut off, and purges one that is done.

    Nothing is swapped before all of it was read back and found erased.
    """
    held, mark = store.inspect(), projection.sha256
    if held.sanitised_with is not None:
        return _purged(projection, store, held, purge=purge)
    require_dim(projection, held.dim, held.where)

    def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        return released_vectors(projection, vectors, held.where)

    store.stage(erase, mark, progress or Silent())
    check = _read_back(projection, store)
    check.require(held.rows, held.where)
    apart = store.unmatched()
    if apart:
        raise UnfaceError(
            f"{held.where}: {apart:,} ids are only among the raw or only among the erased vectors;"
            " was it written to meanwhile? stop writers and run it again"
        )
    store.swap(mark)
    return _receipt(projection, held, check, store.purge() if purge else None)


def _purged(projection: Projection, store: Store, held: Holding, *, purge: bool) -> Receipt:
    """The raw vectors of a store that was sanitised before and kept them."""
    if held.sanitised_with != projection.sha256:
        raise UnfaceError(
            f"{held.where}: sanitised already, with the projection {str(held.sanitised_with)[:12]}…;"
            " two never go over one another, start from the raw vectors"
        )
    if not held.raw_kept:
        raise UnfaceError(f"{held.where}: sanitised with this projection already; nothing to do")
    if not purge:
        raise UnfaceError(
            f"{held.where}: sanitised with this projection already; raw vectors still lie beside, --purge removes them"
        )
    check = _read_back(projection, store)
    if check.rows:
        try:
            check.require(held.rows, held.where)
        except UnfaceError as error:
            raise UnfaceError(f"{error}; were some added since? erase those by Projection.apply, then purge") from None
    return _receipt(projection, held, check, store.purge())


def _read_back(projection: Projection, store: Store) -> Check:
    check = Check(projection)
    for vectors in store.staged():
        check.add(vectors)
    return check


def _receipt(projection: Projection, held: Holding, check: Check, purged: list[str] | None) -> Receipt:
    """``purged`` are the notes of a purge, None without one. Lossy stores cannot be read back after the swap."""
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
