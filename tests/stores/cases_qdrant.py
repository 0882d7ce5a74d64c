"""Qdrant collections in the client's local mode for the contract, filled, read and searched as a user does."""

import struct
import uuid
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.contract import DIM, Maker, StoreCase, Vectors
from unface.stores.qdrant import QdrantStore

NAME = "faces"


@cache
def without_waiting_for_the_disk() -> None:
    """The local mode writes each point through to the disk; that takes minutes and guards against power cuts alone."""
    from qdrant_client.local.persistence import CollectionPersistence

    begin = CollectionPersistence._ensure_table

    def quick(self: CollectionPersistence) -> None:
        self.storage.execute("PRAGMA synchronous = OFF")
        begin(self)

    CollectionPersistence._ensure_table = quick  # type: ignore[method-assign]


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    client = pytest.importorskip("qdrant_client").QdrantClient(path=str(folder))
    try:
        yield client
    finally:
        client.close()


def make(distance: str, aliased: bool, folder: Path) -> StoreCase:
    models = pytest.importorskip("qdrant_client").models
    without_waiting_for_the_disk()

    def fill(vectors: Vectors) -> list[Hashable]:
        # Qdrant's ids are numbers or UUIDs.
        ids: list[Hashable] = [row if row % 2 else str(uuid.UUID(int=row)) for row in range(len(vectors))]
        real = f"{NAME} of 2026" if aliased else NAME
        with opened(folder) as client:
            client.create_collection(real, models.VectorParams(size=DIM, distance=models.Distance(distance)))
            if len(vectors):
                points = zip(ids, vectors.tolist(), strict=True)
                client.upsert(
                    real,
                    [models.PointStruct(id=key, vector=vector, payload={"key": key}) for key, vector in points],
                )
            if aliased:
                alias = models.CreateAlias(collection_name=real, alias_name=NAME)
                client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        return ids

    def read() -> dict[Hashable, NDArray[np.floating]]:
        with opened(folder) as client:
            found, _ = client.scroll(NAME, limit=10_000, with_vectors=True)
        assert all(record.payload == {"key": record.id} for record in found)
        return {record.id: np.array(record.vector, dtype=np.float32) for record in found}

    def search(vector: Vectors) -> Hashable:
        with opened(folder) as client:
            found: Hashable = client.query_points(NAME, query=vector.tolist(), limit=1).points[0].id
        return found

    def files() -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file()]

    return StoreCase(fill, lambda: QdrantStore(str(folder), NAME), read, search, files, as_pickled, holds_nan=False)


def as_pickled(vector: Vectors) -> list[bytes]:
    """The local mode pickles Python's own floats: a letter and eight bytes each, big-endian.

    Four in a row, since SQLite breaks what is long into pages.
    """
    numbers = [b"G" + struct.pack(">d", number) for number in vector.tolist()]
    return [b"".join(numbers[start : start + 4]) for start in range(0, len(numbers), 4)]


MAKERS: dict[str, Maker] = {
    "Qdrant": partial(make, "Dot", False),
    "Qdrant by an alias": partial(make, "Cosine", True),
}
