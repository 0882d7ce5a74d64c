"""A Qdrant collection: erased points go into a new collection, and the name of the raw one becomes its alias."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.stores.ports import Erase, Holding
from unface.stores.qdrant_points import bring_points, points_apart, records_of, set_vector, vector_named
from unface.stores.qdrant_settings import alike, create_like, index_payload_like, remember, remembered_by, vector_params

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import PointStruct


class QdrantStore:
    """``url_or_path``: a server, whose key is read from QDRANT_API_KEY, or the folder of the client's local mode.

    Given an alias, ``swap`` turns it, and every other alias of the raw collection, in one step. A collection's own
    name is free only once the collection is gone: it is copied, the copy compared, the collection deleted, and its
    name made an alias. Searches in between find nothing; killed there, the same call goes on from the copy.
    """

    def __init__(self, url_or_path: str, collection: str, vector_name: str = "") -> None:
        self._place, self._name, self._vector = url_or_path, collection, vector_name
        self._where = f"Qdrant collection {collection!r}" + (f", vector {vector_name!r}" if vector_name else "")
        self._copy = f"{collection}__unface_raw"

    def inspect(self) -> Holding:
        with self._client() as client:
            source = self._source(client)
            collection = client.get_collection(source)
            remembered = remembered_by(collection)
            return Holding(
                where=self._where,
                rows=self._count(client, source),
                dim=vector_params(collection, self._vector, self._where).size,
                sanitised_with=remembered.get("vectors", {}).get(self._vector),
                raw_kept=any(client.collection_exists(name) for name in remembered.get("raw", [])),
            )

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        def erased(points: list["PointStruct"]) -> list["PointStruct"]:
            raw = [(point, vector) for point in points if (vector := vector_named(point, self._vector)) is not None]
            if raw:
                vectors = erase(np.array([vector for _, vector in raw], dtype=np.float32))
                for (point, _), vector in zip(raw, vectors.tolist(), strict=True):
                    set_vector(point, self._vector, vector)
            return points

        with self._client() as client:
            source, target = self._source(client), self._target(mark)
            if self._mark_of(client, source) == mark:
                return
            if client.collection_exists(target) and not self._fits(client, source, target, mark):
                client.delete_collection(target)
            if not client.collection_exists(target):
                create_like(client, source, target, self._remembered(client, source, mark))
            for name in self._unused(client, source) - {target}:
                client.delete_collection(name)  # staged with another projection
            index_payload_like(client, source, target)
            progress.start("erase", client.count(source, exact=True).count)
            bring_points(client, source, target, erased, lambda rows: progress.advance("erase", rows))

    def staged(self) -> Iterator[NDArray[np.floating]]:
        with self._client() as client:
            name = self._staged(client)
            kept = vector_params(client.get_collection(name), self._vector, self._where).datatype
            for records in records_of(client, name):
                found = [vector for record in records if (vector := vector_named(record, self._vector)) is not None]
                if found:
                    yield np.array(found, dtype="float32" if kept is None else kept.value)

    def unmatched(self) -> int:
        with self._client() as client:
            source, target = self._source(client), self._staged(client)
            return 0 if source == target else points_apart(client, source, target)

    def swap(self, mark: str) -> None:
        with self._client() as client:
            source, target = self._source(client), self._target(mark)
            if self._mark_of(client, source) == mark:
                return
            if not client.collection_exists(target) or self._mark_of(client, target) != mark:
                raise UnfaceError(f"{self._where}: nothing is staged with this projection; run it again")
            if source == self._name:
                self._keep_copy(client)
            self._turn_aliases(client, source, target)
            if self._name in _names(client):
                client.delete_collection(self._name)
            self._turn_aliases(client, source, target, self._name)

    def purge(self) -> list[str]:
        with self._client() as client:
            source = self._source(client)
            remembered = remembered_by(client.get_collection(source))
            if self._vector not in remembered.get("vectors", {}):
                raise UnfaceError(f"{self._where}: not sanitised yet; there is nothing to purge")
            for name in set(remembered["raw"]) & _names(client):
                for snapshot in client.list_snapshots(name):
                    client.delete_snapshot(name, snapshot.name, wait=True)
                client.delete_collection(name)
                if self._is_local() and (Path(self._place) / "collection" / name).exists():
                    raise UnfaceError(f"{self._where}: the folder of {name!r} could not be removed; delete it yourself")
            # Whoever makes a collection of that name one day shall keep it.
            remember(client, source, {**remembered, "raw": []})
            full = client.list_full_snapshots()
        return [f"{len(full)} snapshots of the whole server, which may hold raw vectors"] if full else []

    def _source(self, client: "QdrantClient") -> str:
        """The collection that the name stands for, or the copy of one that ``swap`` had deleted when it was killed."""
        names, alias = _names(client), _aliases(client).get(self._name)
        if alias is not None:
            return alias
        # The local mode deletes points before it forgets the collection.
        gone = self._name not in names or client.count(self._name, exact=True).count == 0
        if gone and self._copy in names and self._unused(client):
            return self._copy
        if self._name not in names:
            there = ", ".join(map(repr, sorted(names))) or "none"
            raise UnfaceError(f"{self._where}: no such collection or alias; there is {there}")
        return self._name

    def _target(self, mark: str) -> str:
        vector = f"{self._vector}_" if self._vector else ""
        return f"{self._name}__unface_{vector}{mark[:8]}"

    def _staged(self, client: "QdrantClient") -> str:
        source = self._source(client)
        found = {source} if self._mark_of(client, source) is not None else self._unused(client, source)
        if len(found) != 1:
            raise UnfaceError(f"{self._where}: nothing is staged; run it again")
        return found.pop()

    def _unused(self, client: "QdrantClient", *used: str) -> set[str]:
        """Collections that were staged for this one and never took its place."""
        pattern = re.compile(re.escape(self._target("")) + "[0-9a-f]{8}")
        free = _names(client) - {*used, *_aliases(client).values()}
        kept = {raw for name in used for raw in remembered_by(client.get_collection(name)).get("raw", [])}
        return {name for name in free - kept if pattern.fullmatch(name)}

    def _fits(self, client: "QdrantClient", source: str, target: str, mark: str) -> bool:
        """Whether it was staged with this very projection, and from a collection that has not been made anew since."""
        same = alike(client.get_collection(source), client.get_collection(target))
        return same and self._mark_of(client, target) == mark

    def _remembered(self, client: "QdrantClient", source: str, mark: str) -> dict[str, Any]:
        """Marks of all vectors that were erased, and where raw ones lie."""
        earlier = remembered_by(client.get_collection(source))
        raw = self._copy if source == self._name else source
        return {
            "vectors": {**earlier.get("vectors", {}), self._vector: mark},
            "raw": [*earlier.get("raw", []), raw],
        }

    def _mark_of(self, client: "QdrantClient", name: str) -> str | None:
        found: str | None = remembered_by(client.get_collection(name)).get("vectors", {}).get(self._vector)
        return found

    def _keep_copy(self, client: "QdrantClient") -> None:
        if not client.collection_exists(self._copy):
            create_like(client, self._name, self._copy, {})
        bring_points(client, self._name, self._copy, lambda points: points, lambda rows: None)
        if points_apart(client, self._name, self._copy):
            raise UnfaceError(f"{self._where}: was written to while it was copied; stop writers and run it again")

    def _turn_aliases(self, client: "QdrantClient", source: str, target: str, *more: str) -> None:
        from qdrant_client import models

        found = _aliases(client)
        turned = {alias for alias, name in found.items() if name == source} | set(more)
        operations: list[models.AliasOperations] = []
        for alias in sorted(turned):
            if alias in found:
                operations.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
            create = models.CreateAlias(collection_name=target, alias_name=alias)
            operations.append(models.CreateAliasOperation(create_alias=create))
        if operations:
            client.update_collection_aliases(operations)

    def _count(self, client: "QdrantClient", name: str) -> int:
        """Points that have the vector: of several named ones, each may be missing."""
        from qdrant_client import models

        having = models.Filter(must=[models.HasVectorCondition(has_vector=self._vector)])
        return client.count(name, count_filter=having, exact=True).count

    def _is_local(self) -> bool:
        return "://" not in self._place

    @contextmanager
    def _client(self) -> Iterator["QdrantClient"]:
        """Open for one step alone (the local mode lets nobody else in); what Qdrant says, as one line."""
        try:
            from qdrant_client import QdrantClient
            from qdrant_client.http.exceptions import ApiException
        except ImportError:
            raise UnfaceError(
                "Qdrant collections need the package 'qdrant-client'; pip install 'unface[stores]'"
            ) from None
        if self._is_local() and not (Path(self._place) / "meta.json").is_file():
            raise UnfaceError(
                f"{self._where}: the folder is not one of Qdrant's local mode; give it, or a server's URL"
            )
        where: dict[str, Any] = {"path": self._place}
        if not self._is_local():
            where = {"url": self._place, "api_key": os.environ.get("QDRANT_API_KEY"), "timeout": 600}
        try:
            client = QdrantClient(**where)
            try:
                yield client
            finally:
                client.close()
        except (ApiException, OSError, ValueError, RuntimeError) as error:
            raise UnfaceError(f"{self._where}: Qdrant says: {reason(error)}") from error


def _names(client: "QdrantClient") -> set[str]:
    return {collection.name for collection in client.get_collections().collections}


def _aliases(client: "QdrantClient") -> dict[str, str]:
    return {alias.alias_name: alias.collection_name for alias in client.get_aliases().aliases}
