"""Which FAISS indexes can be rebuilt, how their vectors are read, and how others are put in with the same settings."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.seeds import stream

# Its stubs leave out most of what kinds of indexes have.
Index: TypeAlias = Any
Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]

_FLAT = {"IndexFlat", "IndexFlatL2", "IndexFlatIP"}
_EXACT = {*_FLAT, "IndexHNSWFlat", "IndexIVFFlat"}
_LOSSY = {"IndexScalarQuantizer", "IndexPQ", "IndexLSH", "IndexHNSWSQ", "IndexHNSWPQ"}
_LOSSY_LISTS = {"IndexIVFScalarQuantizer", "IndexIVFPQ"}
_LISTS = {"IndexIVFFlat", *_LOSSY_LISTS}
_NUMBERED = {"IndexIDMap", "IndexIDMap2"}
_BATCH_BYTES = 1 << 24
# FAISS's own bounds: more points for each centroid or for a code book of 256 would be left out.
_POINTS_EACH, _POINTS_CODES = 256, 1 << 16


def is_exact(index: Index, where: str) -> bool:
    """Whether vectors are kept as they were given, rather than as codes; refuses what cannot be rebuilt."""
    name = type(index).__name__
    if name in _NUMBERED:
        inner = faiss.downcast_index(index.index)
        exact = is_exact(inner, where)
        if ids_of(inner).max(initial=-1) >= index.id_map.size():
            raise UnfaceError(f"{where}: its ids and its vectors do not match, as after removals; build it anew")
        return exact
    if name == "IndexRefineFlat":
        # The first index is made anew from the vectors that the second one keeps whole.
        is_exact(faiss.downcast_index(index.base_index), where)
        return is_exact(faiss.downcast_index(index.refine_index), where)
    if name == "IndexPreTransform":
        raise UnfaceError(
            f"{where}: its vectors lie behind a transform, which was learned on raw ones or changes queries alone, and"
            " projecting only queries protects nobody; build an index without it, sanitise that"
        )
    if name not in _EXACT | _LOSSY | _LOSSY_LISTS:
        raise UnfaceError(f"{where}: {name} cannot be rebuilt from its own vectors; build it anew from erased ones")
    if name not in _EXACT and index.is_trained and index.ntotal == 0:
        raise UnfaceError(f"{where}: holds no vectors, only what was learned from raw ones; make it anew")
    if name in _LISTS:
        _require_lists(index, where)
    return name in _EXACT


def _require_lists(index: Index, where: str) -> None:
    lists = type(faiss.downcast_InvertedLists(index.invlists)).__name__
    if lists != "ArrayInvertedLists":
        raise UnfaceError(f"{where}: its inverted lists are {lists}, in files of their own; build it anew in one file")
    kept = sum(index.invlists.list_size(number) for number in range(index.nlist))
    if kept != index.ntotal:
        raise UnfaceError(
            f"{where}: counts {index.ntotal:,} vectors and keeps {kept:,}; FAISS loses those with NaN, build it anew"
        )
    coarse = type(faiss.downcast_index(index.quantizer)).__name__
    if coarse not in _FLAT | {"IndexHNSWFlat"}:
        raise UnfaceError(f"{where}: its lists are chosen by {coarse}, which cannot be trained again; build it anew")


def ids_of(index: Index) -> Ids:
    """In no order that means anything."""
    name = type(index).__name__
    if name in _NUMBERED:
        return np.array(faiss.vector_to_array(index.id_map), np.int64)
    if name in _LISTS:
        return np.concatenate([np.empty(0, np.int64), *(_list_ids(index, number) for number in range(index.nlist))])
    return np.arange(index.ntotal, dtype=np.int64)


def batches(index: Index) -> Iterator[tuple[Ids, Vectors]]:
    """(ids, vectors) in the order in which the index keeps them."""
    name = type(index).__name__
    if name in _NUMBERED:
        outer = ids_of(index)
        for ids, vectors in batches(faiss.downcast_index(index.index)):
            yield outer[ids], vectors
    elif name == "IndexRefineFlat":
        yield from batches(faiss.downcast_index(index.refine_index))
    elif name in _LISTS:
        yield from _list_batches(index)
    else:
        step = _rows_at_once(index)
        for start in range(0, index.ntotal, step):
            count = min(step, index.ntotal - start)
            yield np.arange(start, start + count), index.reconstruct_n(start, count)


def _list_batches(index: Index) -> Iterator[tuple[Ids, Vectors]]:
    """Several lists at a time: there may be a hundred thousand of a few vectors each."""
    lists, step = index.invlists, _rows_at_once(index)
    ids: list[Ids] = []
    codes: list[NDArray[np.uint8]] = []
    for number in range(index.nlist):
        size = lists.list_size(number)
        if size:
            ids.append(_list_ids(index, number))
            kept = faiss.rev_swig_ptr(lists.get_codes(number), size * index.code_size).reshape(size, -1)
            # A code that stands alone begins with its list's number.
            head = np.frombuffer(number.to_bytes(8, "little"), np.uint8)[: index.coarse_code_size()]
            codes.append(np.hstack([np.broadcast_to(head, (size, len(head))), kept]))
        if sum(map(len, codes)) >= step:
            yield np.concatenate(ids), index.sa_decode(np.concatenate(codes))
            ids, codes = [], []
    if codes:
        yield np.concatenate(ids), index.sa_decode(np.concatenate(codes))


def _list_ids(index: Index, number: int) -> Ids:
    found: Ids = faiss.rev_swig_ptr(index.invlists.get_ids(number), index.invlists.list_size(number)).copy()
    return found


def _rows_at_once(index: Index) -> int:
    return max(1, _BATCH_BYTES // (4 * max(1, int(index.d))))


def refill(index: Index, ids: Ids, vectors: Vectors) -> None:
    """Others in place of an index's vectors; whatever it learned from the old ones is learned again from these.

    ``vectors`` may be a memory map. With none there is nothing to learn from, and lists are left untrained.
    """
    lists = _lists_of(index)
    by_id = None if lists is None else lists.direct_map.type
    index.reset()
    if lists is not None:
        _forget_lists(lists)
    if len(vectors):
        index.train(_sample(vectors, 0 if lists is None else lists.nlist))
    elif lists is not None:
        index.is_trained = False
    add(index, ids, vectors)
    if lists is not None and by_id != lists.direct_map.NoMap:
        lists.set_direct_map_type(by_id)


def add(index: Index, ids: Ids, vectors: Vectors) -> None:
    """Where an index only counts, the order is the ids."""
    numbered = type(index).__name__ in _NUMBERED | _LISTS
    step = _rows_at_once(index)
    for start in range(0, len(vectors), step):
        rows = slice(start, start + step)
        if numbered:
            index.add_with_ids(np.ascontiguousarray(vectors[rows]), ids[rows])
        else:
            index.add(np.ascontiguousarray(vectors[rows]))


def _lists_of(index: Index) -> Index | None:
    name = type(index).__name__
    if name in _NUMBERED:
        return _lists_of(faiss.downcast_index(index.index))
    if name == "IndexRefineFlat":
        return _lists_of(faiss.downcast_index(index.base_index))
    return index if name in _LISTS else None


def _forget_lists(lists: Index) -> None:
    """Centroids are means of raw vectors; those of a reset quantiser are learned anew."""
    lists.quantizer.reset()
    lists.is_trained = False
    # The file does not say how they were learned: as FAISS does by default.
    lists.cp.spherical = lists.metric_type == faiss.METRIC_INNER_PRODUCT
    lists.cp.min_points_per_centroid = 1
    # A map from ids to places cannot be kept up while rows come with ids of their own.
    lists.set_direct_map_type(lists.direct_map.NoMap)


def _sample(vectors: Vectors, centroids: int) -> Vectors:
    """As many as training looks at; fewer than there are centroids are repeated."""
    enough = max(_POINTS_EACH * centroids, _POINTS_CODES)
    if len(vectors) > enough:
        rows = np.sort(stream(0, "faiss training").choice(len(vectors), enough, replace=False))
        return np.ascontiguousarray(vectors[rows])
    return np.resize(vectors, (max(len(vectors), centroids), vectors.shape[1]))
