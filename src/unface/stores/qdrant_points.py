"""Points of a Qdrant collection brought into another one, batch by batch; what is there the same is not written."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import PointStruct, Record

_BATCH = 256
Change = Callable[[list["PointStruct"]], list["PointStruct"]]


def records_of(client: "QdrantClient", name: str, *, whole: bool = True) -> Iterator[list["Record"]]:
    """All points in the order of their ids, with vectors and payload or without either."""
    offset: Any = None
    while True:
        found, offset = client.scroll(name, limit=_BATCH, offset=offset, with_vectors=whole, with_payload=whole)
        if found:
            yield found
        if offset is None:
            return


def bring_points(client: "QdrantClient", source: str, target: str, change: Change, told: Callable[[int], None]) -> None:
    """Make the target hold the source's points, changed, and no others; one that was cut off goes on."""
    from qdrant_client import models

    fresh = client.count(target, exact=True).count == 0
    for records in records_of(client, source):
        points = change([as_point(record) for record in records])
        if not fresh:
            points = _other_than_there(client, target, points)
        if points:
            client.upsert(target, points, wait=True)
        told(len(records))
    if not fresh:
        for records in records_of(client, target, whole=False):
            gone = _missing(client, source, records)
            if gone:
                client.delete(target, models.PointIdsList(points=gone), wait=True)


def points_apart(client: "QdrantClient", one: str, other: str) -> int:
    """How many ids are in only one of two collections."""
    here = sum(len(_missing(client, other, records)) for records in records_of(client, one, whole=False))
    there = sum(len(_missing(client, one, records)) for records in records_of(client, other, whole=False))
    return here + there


def as_point(record: "Record") -> "PointStruct":
    from qdrant_client import models

    vector: Any = record.vector or {}
    return models.PointStruct(id=record.id, vector=vector, payload=record.payload)


def vector_named(point: "PointStruct | Record", name: str) -> list[float] | None:
    """A point's dense vector of that name; ``""`` is the one without."""
    found: Any = point.vector.get(name) if isinstance(point.vector, dict) else point.vector if name == "" else None
    return found or None


def set_vector(point: "PointStruct", name: str, vector: list[float]) -> None:
    if isinstance(point.vector, dict):
        point.vector[name] = vector
    else:
        point.vector = vector


def _missing(client: "QdrantClient", name: str, records: list["Record"]) -> list[Any]:
    ids = [record.id for record in records]
    found = client.retrieve(name, ids, with_payload=False, with_vectors=False)
    return list(set(ids) - {record.id for record in found})


def _other_than_there(client: "QdrantClient", target: str, points: list["PointStruct"]) -> list["PointStruct"]:
    found = client.retrieve(target, [point.id for point in points], with_payload=True, with_vectors=True)
    there = {record.id: as_point(record) for record in found}
    return [point for point in points if point.id not in there or not _same(point, there[point.id])]


def _same(one: "PointStruct", other: "PointStruct") -> bool:
    return (one.payload or {}) == (other.payload or {}) and _same_vectors(one.vector, other.vector)


def _same_vectors(one: Any, other: Any) -> bool:
    from qdrant_client import models

    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same_vectors(one[name], other[name]) for name in one)
    if isinstance(one, models.SparseVector):
        return one.indices == other.indices and _same_vectors(one.values, other.values)
    here, there = np.asarray(one, np.float64), np.asarray(other, np.float64)
    # A store that scales vectors to length one may turn the last bit.
    return here.shape == there.shape and np.allclose(here, there, rtol=1e-6, atol=1e-6 * np.abs(here).max(initial=0))
