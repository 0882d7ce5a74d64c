"""LanceDB tables for the contract, filled, read and searched as a user of lancedb does."""

from collections.abc import Hashable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.stores.contract import Maker, StoreCase, Vectors
from unface.stores.lance import LanceStore

TABLE = "faces"


def make(dtype: str, index: str | None, folder: Path) -> StoreCase:
    pytest.importorskip("lance")
    lancedb = pytest.importorskip("lancedb")
    kept = np.dtype(dtype)

    def fill(vectors: Vectors) -> list[Hashable]:
        ids: list[Hashable] = [f"id {row}" for row in range(len(vectors))]
        rows = table_of(vectors.astype(kept), ids)
        half = len(vectors) // 2
        table = lancedb.connect(folder).create_table(TABLE, rows[:half])
        if len(vectors):
            table.add(rows[half:])  # a second fragment
            if index is not None:
                table.create_index("vector", config=getattr(lancedb.index, index)(distance_type="cosine"))
        return ids

    def read() -> dict[Hashable, NDArray[np.floating]]:
        rows = lancedb.connect(folder).open_table(TABLE).to_arrow()
        found = rows.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return dict(
            zip(rows.column("id").to_pylist(), found.reshape(-1, rows.field("vector").type.list_size), strict=True)
        )

    def search(vector: Vectors) -> Hashable:
        table = lancedb.connect(folder).open_table(TABLE)
        found: Hashable = table.search(vector).distance_type("cosine").limit(1).to_list()[0]["id"]
        return found

    def patterns(vector: Vectors) -> list[bytes]:
        return [vector.astype(kept).tobytes()]

    def files() -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file()]

    return StoreCase(
        fill,
        lambda: LanceStore(str(folder), TABLE),
        read,
        search,
        files,
        patterns,
        dtype=kept.name,
        holds_nan=False,
    )


def table_of(vectors: NDArray[np.floating], ids: list[Hashable]) -> pa.Table:
    """The vectors stand between other columns."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"id": pa.array(ids, pa.string()), "vector": lists, "row": pa.array(range(len(ids)), pa.int64())})


MAKERS: dict[str, Maker] = {
    "LanceDB": partial(make, "<f4", None),
    "LanceDB float16": partial(make, "<f2", None),
    "LanceDB with an index": partial(make, "<f4", "IvfFlat"),
}
