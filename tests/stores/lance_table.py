"""A LanceDB table to be sanitised, and what a user finds in it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.stores.cases_lance import TABLE, table_of
from tests.stores.contract import DIM, projection, raw_vectors
from unface.scale import released_vectors

lance = pytest.importorskip("lance")
lancedb = pytest.importorskip("lancedb")
PROJECTION = projection()
MARK = PROJECTION.sha256
ROWS = 600


def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    return released_vectors(PROJECTION, vectors, "here")


def table_in(folder: Path) -> Path:
    """A table of two fragments with an index on a column that is not the vectors'."""
    table = lancedb.connect(folder).create_table(TABLE, rows(0, ROWS // 2))
    table.add(rows(ROWS // 2, ROWS))
    table.create_index("row", config=lancedb.index.BTree())
    return folder


def rows(start: int, stop: int) -> pa.Table:
    made = table_of(raw_vectors(ROWS)[start:stop], [f"id {row}" for row in range(start, stop)])
    return made.set_column(2, "row", pa.array(range(start, stop), pa.int64()))


def opened(folder: Path) -> Any:
    return lancedb.connect(folder).open_table(TABLE)


def vectors(folder: Path) -> NDArray[np.float32]:
    found = opened(folder).to_arrow().sort_by("row").column("vector").combine_chunks()
    numbers: NDArray[np.float32] = found.flatten().to_numpy()
    return numbers.reshape(-1, DIM)


def holding(folder: Path, vector: NDArray[np.float32]) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if vector.tobytes() in path.read_bytes()]


def told(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Of each index: which one it is, its type, its settings, and how many rows it covers."""
    data = lance.dataset(folder / f"{TABLE}.lance")
    found = {}
    for index in opened(folder).list_indices():
        first = data.stats.index_stats(index.name)["indices"][0]
        inner = first.get("sub_index", {})
        settings = [first.get("metric_type"), first.get("num_partitions"), inner.get("params")]
        settings += [inner.get(key) for key in ("nbits", "num_bits", "num_sub_vectors")]
        found[index.name] = (index.index_uuid, index.index_type, index.columns, settings, index.num_indexed_rows)
    return dict(sorted(found.items()))


def path(folder: Path) -> Path:
    return folder / f"{TABLE}.lance"
