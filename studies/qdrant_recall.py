"""How well Qdrant's own HNSW graph finds neighbours, over raw vectors and over the fewer dimensions a keeper releases.

    python -m studies.qdrant_recall EMBEDDINGS [--encoder sscd-int8]

EMBEDDINGS is that of ``studies.frontier``. The graph is that of Qdrant's engine in this process (``pip install
qdrant-edge-py``), with the settings a server starts from. Replaces docs/measured/qdrant_recall.json.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeVectorParams,
    HnswIndexConfig,
    Point,
    Query,
    QueryRequest,
    SearchParams,
    UpdateOperation,
)

from studies.frontier import RAW, projection, setup
from studies.measured import Cell, Table, write_findings
from unface.stores.recall import index_recall

_M, _CONSTRUCT = 16, 100  # a server's own defaults
_AT_ONCE = 1000


def recalls(vectors: NDArray[np.float32], efs: list[int]) -> list[float]:
    """Recall@10 beside an exact search, at each breadth of the search."""
    ids = np.arange(len(vectors))
    with TemporaryDirectory() as folder:
        shard = EdgeShard.create(
            folder,
            EdgeConfig(
                vectors=EdgeVectorParams(size=vectors.shape[1], distance=Distance.Cosine),
                hnsw_config=HnswIndexConfig(_M, _CONSTRUCT, full_scan_threshold=1, max_indexing_threads=1),
                optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
            ),
        )
        for start in range(0, len(ids), _AT_ONCE):
            rows = ids[start : start + _AT_ONCE]
            shard.update(UpdateOperation.upsert_points([Point(int(row), vectors[row].tolist()) for row in rows]))
        shard.optimize()
        indexed = shard.info().indexed_vectors_count
        assert indexed >= len(ids), f"{indexed} of {len(ids)} vectors are in a graph"

        def found(queries: NDArray[np.float32], k: int, ef: int) -> NDArray[np.int64]:
            params = SearchParams(hnsw_ef=ef)
            asked = [QueryRequest(k, query=Query.Nearest(one.tolist()), params=params) for one in queries]
            return np.array([[point.id for point in shard.query(one)] for one in asked], np.int64)

        made = []
        for ef in efs:
            share = index_recall(
                lambda: iter([(ids, vectors)]),
                len(ids),
                lambda queries, k, ef=ef: found(queries, k, ef),  # type: ignore[misc]
                l2=False,
            )
            assert share is not None
            made.append(share)
        shard.close()
    return made


def main() -> None:
    """Raw, and after each keeper."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("--encoder", default="sscd-int8")
    given.add_argument("--people", type=int, default=3000)
    asked = given.parse_args()
    there = setup(asked.embeddings, asked.encoder, asked.people, ["hardcopies"])
    efs, rows = [32, 128], []
    for space in (RAW, "keeper 64, μ 0.3"):
        made = projection(there, space)
        vectors = there.faces.vectors if made is None else made.apply(there.faces.vectors)
        row: list[Cell] = [space, vectors.shape[1], *recalls(vectors, efs)]
        print(row, flush=True)
        rows.append(row)
    columns = {"vectors": "", "dimensions": ",", **{f"recall@10, ef {ef}": ".1%" for ef in efs}}
    write_findings(
        "qdrant_recall",
        command="python -m studies.qdrant_recall EMBEDDINGS",
        where="one core",
        tables={"recall": Table(columns=columns, rows=rows)},
        figures={"vectors": len(there.faces.vectors)},
    )


if __name__ == "__main__":
    main()
