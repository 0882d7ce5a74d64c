"""FAISS index files for the contract: exact kinds, with ids of their own where the index has them."""

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.contract import DIM, Maker, StoreCase, Vectors
from unface.stores.faiss_index import FaissStore


def make(factory: str, folder: Path) -> StoreCase:
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    path = folder / "faces.index"
    metric = faiss.METRIC_INNER_PRODUCT

    def fill(vectors: Vectors) -> list[int]:
        index = faiss.index_factory(DIM, factory, metric)
        if len(vectors) > 10:
            index.train(np.nan_to_num(vectors))
        numbered = factory.startswith(("IDMap", "IVF"))
        ids = [1_000_000_007 * (row + 1) for row in range(len(vectors))] if numbered else list(range(len(vectors)))
        if len(vectors):
            index.add_with_ids(vectors, np.array(ids)) if numbered else index.add(vectors)
        faiss.write_index(index, str(path))
        return ids

    def read() -> dict[Hashable, NDArray[np.floating]]:
        index = faiss.read_index(str(path))
        ids = ids_in(index)
        if factory.startswith("IDMap,"):
            return dict(zip(ids, faiss.downcast_index(index.index).reconstruct_n(0, len(ids)), strict=True))
        if factory.startswith("IVF"):
            index.set_direct_map_type(faiss.DirectMap.Hashtable)
        return {one: index.reconstruct(one) for one in ids}

    def ids_in(index: Any) -> list[int]:
        if factory.startswith("IDMap"):
            return list(map(int, faiss.vector_to_array(index.id_map)))
        if factory.startswith("IVF"):
            lists = index.invlists
            return [
                int(one)
                for number in range(index.nlist)
                for one in faiss.rev_swig_ptr(lists.get_ids(number), lists.list_size(number))
            ]
        return list(range(index.ntotal))

    def search(vector: Vectors) -> int:
        return int(faiss.read_index(str(path)).search(vector[None], 1)[1][0, 0])

    # Lists drop a vector with NaN by themselves.
    return StoreCase(
        fill,
        lambda: FaissStore(path),
        read,
        search,
        lambda: list(folder.iterdir()),
        holds_nan=not factory.startswith("IVF"),
    )


MAKERS: dict[str, Maker] = {
    f"faiss {factory}": partial(make, factory)
    for factory in ("Flat", "IDMap,Flat", "IDMap2,HNSW16", "IVF4,Flat", "HNSW16")
}
