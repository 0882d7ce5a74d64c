"""A Qdrant collection in the client's local mode to be sanitised, and what a user finds in it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.cases_qdrant import opened, without_waiting_for_the_disk
from tests.stores.contract import DIM, projection, raw_vectors
from unface.scale import released_vectors
from unface.stores.qdrant import QdrantStore

qdrant_client = pytest.importorskip("qdrant_client")
models = qdrant_client.models
PROJECTION, OTHER = projection(), projection(seed=1)
MARK = PROJECTION.sha256
ROWS = 40


def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    return released_vectors(PROJECTION, vectors, "here")


def collection_in(folder: Path) -> Path:
    """Two dense vectors and a sparse one; the first point has no face, the second nothing else."""
    without_waiting_for_the_disk()
    dense = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    with opened(folder) as client:
        client.create_collection(
            "faces",
            {"face": dense, "scene": dense},
            sparse_vectors_config={"words": models.SparseVectorParams()},
            metadata={"made by": "somebody"},
        )
        client.upsert("faces", [point(row) for row in range(ROWS)])
    return folder


def point(row: int) -> Any:
    face, scene = raw_vectors(ROWS)[row].tolist(), raw_vectors(ROWS, seed=1)[row].tolist()
    whole = {"face": face, "scene": scene, "words": models.SparseVector(indices=[row, 99], values=[0.5, 2.0])}
    some = {0: ["scene"], 1: ["face"]}.get(row, list(whole))
    return models.PointStruct(id=row, vector={name: whole[name] for name in some}, payload={"n": {"row": [row]}})


def store(folder: Path, vector: str = "face") -> QdrantStore:
    return QdrantStore(str(folder), "faces", vector)


def points(folder: Path, name: str = "faces") -> dict[int, Any]:
    with opened(folder) as client:
        return {record.id: record for record in client.scroll(name, limit=1000, with_vectors=True)[0]}


def faces(folder: Path, name: str = "faces") -> NDArray[np.float32]:
    """Of all points but the first, which has none."""
    found = points(folder, name)
    return np.array([found[row].vector["face"] for row in sorted(found) if row], dtype=np.float32)


def names(folder: Path) -> tuple[set[str], dict[str, str]]:
    """Collections, and aliases."""
    with opened(folder) as client:
        real = {collection.name for collection in client.get_collections().collections}
        return real, {alias.alias_name: alias.collection_name for alias in client.get_aliases().aliases}
