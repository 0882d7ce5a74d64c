"""An empty FAISS index like another one, for vectors of another dimension."""

from contextlib import suppress
from typing import Any, TypeAlias

from unface.errors import UnfaceError

with suppress(ImportError):  # FaissStore says what to install
    import faiss

# The stubs of FAISS leave out most attributes of the kinds of indexes.
Index: TypeAlias = Any


def resized(index: Index, dim: int, where: str) -> Index:
    """With the same kind, metric and settings, of those kinds that ``FaissStore`` accepts; untrained."""
    name, metric = type(index).__name__, index.metric_type
    kinds: Any = faiss
    made: Index
    match name:
        case "IndexIDMap" | "IndexIDMap2":
            made = type(index)(resized(faiss.downcast_index(index.index), dim, where))
        case "IndexRefineFlat":
            made = faiss.IndexRefineFlat(resized(faiss.downcast_index(index.base_index), dim, where))
            made.k_factor = index.k_factor
        case "IndexFlat" | "IndexFlatL2" | "IndexFlatIP":
            made = faiss.IndexFlat(dim, metric)
        case "IndexHNSWFlat":
            made = faiss.IndexHNSWFlat(dim, index.hnsw.nb_neighbors(1), metric)
        case "IndexHNSWSQ":
            storage: Index = faiss.downcast_index(index.storage)
            made = faiss.IndexHNSWSQ(dim, storage.sq.qtype, index.hnsw.nb_neighbors(1), metric)
        case "IndexHNSWPQ":
            inner: Index = faiss.downcast_index(index.storage)
            codes = inner.pq
            made = kinds.IndexHNSWPQ(dim, _parts(codes, dim, where), index.hnsw.nb_neighbors(1), codes.nbits, metric)
        case "IndexScalarQuantizer":
            made = faiss.IndexScalarQuantizer(dim, index.sq.qtype, metric)
        case "IndexPQ":
            made = faiss.IndexPQ(dim, _parts(index.pq, dim, where), index.pq.nbits, metric)
        case "IndexLSH":
            # Without a rotation there is one bit for a coordinate, and no more bits than coordinates.
            bits = index.nbits if index.rotate_data else min(index.nbits, dim)
            made = faiss.IndexLSH(dim, bits, index.rotate_data, index.train_thresholds)
        case "IndexIVFFlat" | "IndexIVFScalarQuantizer" | "IndexIVFPQ":
            made = _lists(index, dim, where)
        case _:
            raise UnfaceError(f"{where}: {name} cannot be built for {dim} dimensions; pass --keep-dimension")
    made.metric_arg = index.metric_arg
    if name.startswith("IndexHNSW"):
        made.hnsw.efConstruction, made.hnsw.efSearch = index.hnsw.efConstruction, index.hnsw.efSearch
    return made


def _lists(index: Index, dim: int, where: str) -> Index:
    coarse = resized(faiss.downcast_index(index.quantizer), dim, where)
    metric = index.metric_type
    made: Index
    match type(index).__name__:
        case "IndexIVFFlat":
            made = faiss.IndexIVFFlat(coarse, dim, index.nlist, metric)
        case "IndexIVFScalarQuantizer":
            made = faiss.IndexIVFScalarQuantizer(coarse, dim, index.nlist, index.sq.qtype, metric, index.by_residual)
        case _:
            made = faiss.IndexIVFPQ(coarse, dim, index.nlist, _parts(index.pq, dim, where), index.pq.nbits, metric)
            made.by_residual = index.by_residual
    made.nprobe = index.nprobe
    made.set_direct_map_type(index.direct_map.type)
    return made


def _parts(codes: Index, dim: int, where: str) -> int:
    """Of a product quantiser, which cuts vectors into parts of equal length."""
    parts = int(codes.M)
    if dim % parts:
        raise UnfaceError(
            f"{where}: its codes are of {parts} equal parts of a vector, which {dim} dimensions do not have;"
            " pass --keep-dimension"
        )
    return parts
