"""A Qdrant collection: erased points go into a new collection, and the name of the raw one becomes its alias."""

import os
import pickle
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from unface.data.collection import Collection, Counts, People, of_people
from unface.data.embeddings import Columns
from unface.errors import UnfaceError, reason
from unface.progress import Progress
from unface.stores.ports import Erase, Holding, released_dim
from unface.stores.qdrant_folder import copy_of_folder, open_folder

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import CollectionInfo, PointStruct, Record, VectorParams

# Key in a collection's metadata. Its value: {"vectors": {vector name: mark}, "raw": [collections of raw vectors]}.
_STATE = "unface"
_BATCH = 256


class QdrantStore:
    """``url_or_path``: a server, whose key is read from QDRANT_API_KEY, or the folder of the client's local mode.

    Given an alias, ``swap`` moves it, and every other alias of the raw collection, in one step. A collection's own
    name is free only once the collection is gone: it is copied, the copy compared, the collection deleted, and its
    name made an alias. Searches in between find nothing; killed there, the same call continues from the copy.
    """

    def __init__(self, url_or_path: str, collection: str, vector_name: str = "") -> None:
        self._place, self._name, self._vector = url_or_path, collection, vector_name
        self._where = f"Qdrant collection {collection!r}" + (f", vector {vector_name!r}" if vector_name else "")
        self._copy = f"{collection}__unface_raw"

    @contextmanager
    def reading(self, columns: Columns) -> Iterator[Collection]:
        """Identities and labels are payload; of it, texts, numbers and truth values are read, all as text.

        The local mode lets one client in and writes on closing, so a copy of the collection's folder is read.
        """
        with ExitStack() as stack:
            place = self
            if self._is_local():
                copied = copy_of_folder(Path(self._place), stack.enter_context(TemporaryDirectory()), self._where)
                place = QdrantStore(str(copied), self._name, self._vector)
            client = stack.enter_context(place._client())
            source = place._source(client)
            described = client.get_collection(source)
            dim = _vector_params(described, self._vector, self._where).size
            columns = replace(columns, vector=self._vector or "vector")
            identity = columns.identity
            if identity is not None:
                _require_payload(client, source, identity, self._where)

            def people() -> Iterator[Counts]:
                for records in _scroll(client, source, payload=[str(identity)], vectors=False):
                    names = (_text((record.payload or {}).get(str(identity))) for record in records)
                    yield Counter(name for name in names if name)

            def batches(chosen: People | None) -> Iterator[pa.RecordBatch]:
                for records in _scroll(client, source, vectors=[self._vector] if self._vector else True):
                    batch = _arrow(records, columns, self._vector, dim)
                    yield batch if chosen is None else of_people(batch, str(identity), chosen, self._where)

            mark = place._mark_of(client, source)
            yield Collection(self._where, columns, client.count(source).count, dim, people, batches, mark)

    def inspect(self) -> Holding:
        with self._client() as client:
            from qdrant_client import models

            source = self._source(client)
            collection = client.get_collection(source)
            state = _state_of(collection)
            # Of several named vectors, each point may lack some.
            having = models.Filter(must=[models.HasVectorCondition(has_vector=self._vector)])
            return Holding(
                where=self._where,
                rows=client.count(source, count_filter=having, exact=True).count,
                dim=_vector_params(collection, self._vector, self._where).size,
                sanitised_with=state.get("vectors", {}).get(self._vector),
                raw_kept=any(client.collection_exists(name) for name in state.get("raw", [])),
                resizable=True,
            )

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        with self._client() as client:
            source = self._source(client)
            swap = f"Swap: every alias of {source!r} moves to the new collection in one step."
            raw = source
            if source == self._name:
                swap = (
                    f"Swap: {source!r} is copied to {self._copy!r} and deleted, and its name becomes an alias of the"
                    " new collection; for a moment the name does not exist."
                )
                raw = self._copy
            indices = len(client.get_collection(source).payload_schema)
        return [
            f"Stage: a new collection {self._target('')}… of {released_dim} dimensions with the same settings and"
            f" {indices} payload indices; Qdrant builds its graph from erased vectors.",
            "Read back: every erased vector is checked, and ids are compared.",
            swap,
            f"Raw vectors: {raw!r} {'and its snapshots are deleted' if purge else 'is kept until --purge'}.",
        ]

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        def erased(points: list["PointStruct"]) -> list["PointStruct"]:
            raw = [(point, vector) for point in points if (vector := _vector_of(point, self._vector)) is not None]
            if raw:
                vectors = erase(np.array([vector for _, vector in raw], dtype=np.float32))
                for (point, _), vector in zip(raw, vectors.tolist(), strict=True):
                    if isinstance(point.vector, dict):
                        point.vector[self._vector] = vector
                    else:
                        point.vector = vector
            return points

        with self._client() as client:
            source, target = self._source(client), self._target(mark)
            if self._mark_of(client, source) == mark:
                return
            before = _vector_params(client.get_collection(source), self._vector, self._where).size
            sizes = {self._vector: released_dim(erase, before)}
            if client.collection_exists(target) and not self._fits(client, source, target, mark, sizes):
                client.delete_collection(target)
            if not client.collection_exists(target):
                earlier = _state_of(client.get_collection(source))
                raw = self._copy if source == self._name else source
                state = {
                    "vectors": {**earlier.get("vectors", {}), self._vector: mark},
                    "raw": [*earlier.get("raw", []), raw],
                }
                _create_like(client, source, target, state, sizes)
            for name in self._unused(client, source) - {target}:
                client.delete_collection(name)  # staged with another projection
            indexed = client.get_collection(target).payload_schema
            for field, index in client.get_collection(source).payload_schema.items():
                if field not in indexed:
                    client.create_payload_index(target, field, field_schema=index.params or index.data_type)
            progress.start("erase", client.count(source, exact=True).count)
            _copy_points(client, source, target, erased, lambda rows: progress.advance("erase", rows))

    def staged(self) -> Iterator[NDArray[np.floating]]:
        with self._client() as client:
            name = self._staged(client)
            datatype = _vector_params(client.get_collection(name), self._vector, self._where).datatype
            for records in _scroll(client, name):
                vectors = [vector for record in records if (vector := _vector_of(record, self._vector)) is not None]
                if vectors:
                    yield np.array(vectors, dtype="float32" if datatype is None else datatype.value)

    def unmatched(self) -> int:
        with self._client() as client:
            source, target = self._source(client), self._staged(client)
            return 0 if source == target else _count_unmatched(client, source, target)

    def swap(self, mark: str) -> None:
        with self._client() as client:
            source, target = self._source(client), self._target(mark)
            if self._mark_of(client, source) == mark:
                return
            if not client.collection_exists(target) or self._mark_of(client, target) != mark:
                raise UnfaceError(f"{self._where}: nothing is staged with this projection; run it again")
            if source == self._name:
                self._copy_raw_collection(client)
            self._move_aliases(client, source, target)
            if self._name in _names(client):
                client.delete_collection(self._name)
            self._move_aliases(client, source, target, self._name)

    def purge(self) -> list[str]:
        with self._client() as client:
            source = self._source(client)
            collection = client.get_collection(source)
            metadata, state = collection.config.metadata or {}, _state_of(collection)
            if self._vector not in state.get("vectors", {}):
                raise UnfaceError(f"{self._where}: not sanitised yet; there is nothing to purge")
            for name in set(state["raw"]) & _names(client):
                for snapshot in client.list_snapshots(name):
                    client.delete_snapshot(name, snapshot.name, wait=True)
                client.delete_collection(name)
                if self._is_local() and (Path(self._place) / "collection" / name).exists():
                    raise UnfaceError(f"{self._where}: the folder of {name!r} could not be removed; delete it yourself")
            # A later collection that happens to have that name must not be purged.
            client.update_collection(source, metadata={**metadata, _STATE: {**state, "raw": []}})
            full = client.list_full_snapshots()
        return [f"{len(full)} snapshots of the whole server, which may hold raw vectors"] if full else []

    def _source(self, client: "QdrantClient") -> str:
        """The collection that the name refers to, or the copy of one that a killed ``swap`` had already deleted."""
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
        names = {source} if self._mark_of(client, source) is not None else self._unused(client, source)
        if len(names) != 1:
            raise UnfaceError(f"{self._where}: nothing is staged; run it again")
        return names.pop()

    def _unused(self, client: "QdrantClient", *used: str) -> set[str]:
        """Collections that were staged for this one and have not been swapped in."""
        pattern = re.compile(re.escape(self._target("")) + "[0-9a-f]{8}")
        free = _names(client) - {*used, *_aliases(client).values()}
        kept = {raw for name in used for raw in _state_of(client.get_collection(name)).get("raw", [])}
        return {name for name in free - kept if pattern.fullmatch(name)}

    def _fits(self, client: "QdrantClient", source: str, target: str, mark: str, sizes: dict[str, int]) -> bool:
        """Whether it was staged with this very projection, and the source was not created again with other vectors."""
        raw, staged = (client.get_collection(name).config.params for name in (source, target))
        same = (_resized(raw.vectors, sizes), raw.sparse_vectors) == (staged.vectors, staged.sparse_vectors)
        return same and self._mark_of(client, target) == mark

    def _mark_of(self, client: "QdrantClient", name: str) -> str | None:
        mark: str | None = _state_of(client.get_collection(name)).get("vectors", {}).get(self._vector)
        return mark

    def _copy_raw_collection(self, client: "QdrantClient") -> None:
        if not client.collection_exists(self._copy):
            _create_like(client, self._name, self._copy, {})
        _copy_points(client, self._name, self._copy, lambda points: points, lambda rows: None)
        if _count_unmatched(client, self._name, self._copy):
            raise UnfaceError(f"{self._where}: was written to while it was copied; stop writers and run it again")

    def _move_aliases(self, client: "QdrantClient", source: str, target: str, *more: str) -> None:
        """All aliases of the source, and ``more``, in one step."""
        from qdrant_client import models

        aliases = _aliases(client)
        moved = {alias for alias, name in aliases.items() if name == source} | set(more)
        operations: list[models.AliasOperations] = []
        for alias in sorted(moved):
            if alias in aliases:
                operations.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
            create = models.CreateAlias(collection_name=target, alias_name=alias)
            operations.append(models.CreateAliasOperation(create_alias=create))
        if operations:
            client.update_collection_aliases(operations)

    def _is_local(self) -> bool:
        return "://" not in self._place

    @contextmanager
    def _client(self) -> Iterator["QdrantClient"]:
        """Open for one step only (the local mode lets nobody else in); errors of Qdrant become one line."""
        try:
            from qdrant_client import QdrantClient
            from qdrant_client.http.exceptions import ApiException
        except ImportError:
            raise UnfaceError(
                "Qdrant collections need the package 'qdrant-client'; pip install 'unface[stores]'"
            ) from None
        try:
            if self._is_local():
                client = open_folder(Path(self._place), self._where)
            else:
                client = QdrantClient(url=self._place, api_key=os.environ.get("QDRANT_API_KEY"), timeout=600)
            try:
                yield client
            finally:
                client.close()
        except (ApiException, sqlite3.Error, pickle.UnpicklingError, OSError, ValueError, RuntimeError) as error:
            raise UnfaceError(f"{self._where}: Qdrant reported: {reason(error)}") from error


def _names(client: "QdrantClient") -> set[str]:
    return {collection.name for collection in client.get_collections().collections}


def _aliases(client: "QdrantClient") -> dict[str, str]:
    return {alias.alias_name: alias.collection_name for alias in client.get_aliases().aliases}


def _state_of(collection: "CollectionInfo") -> dict[str, Any]:
    state: dict[str, Any] = (collection.config.metadata or {}).get(_STATE, {})
    try:
        _State.model_validate(state, strict=True)
    except ValidationError:
        raise UnfaceError(
            f"the metadata of a Qdrant collection has a key {_STATE!r} that unface did not write; remove it"
        ) from None
    return state


class _State(BaseModel):
    model_config = ConfigDict(extra="forbid")

    vectors: dict[str, str] = {}
    raw: list[str] = []


def _vector_params(collection: "CollectionInfo", name: str, where: str) -> "VectorParams":
    """Settings of the vector to be erased; refuses all but one vector of floats for each point."""
    from qdrant_client import models

    params = collection.config.params
    named = params.vectors if isinstance(params.vectors, dict) else {"": params.vectors}
    vector = named.get(name)
    if vector is None:
        there = ", ".join(repr(known) for known in named if named[known] is not None)
        raise UnfaceError(f"{where}: no vector {name!r}; there is {there or 'none'}")
    if vector.multivector_config is not None:
        raise UnfaceError(f"{where}: several vectors for one point (multivector) cannot be erased")
    if vector.datatype not in (None, models.Datatype.FLOAT32, models.Datatype.FLOAT16):
        raise UnfaceError(f"{where}: vectors of {vector.datatype.value}; expected float32 or float16")
    if params.sharding_method == models.ShardingMethod.CUSTOM:
        raise UnfaceError(
            f"{where}: shards chosen by key cannot be recreated from outside; copy it to a collection without them"
        )
    return vector


def _resized(vectors: Any, sizes: dict[str, int]) -> Any:
    """Settings of all vectors, some with another dimension; ``""`` is the unnamed one."""
    if isinstance(vectors, dict):
        return {name: _resized(one, {"": sizes[name]} if name in sizes else {}) for name, one in vectors.items()}
    return vectors.model_copy(update={"size": sizes[""]}) if "" in sizes and vectors is not None else vectors


def _create_like(
    client: "QdrantClient", source: str, name: str, state: dict[str, Any], sizes: dict[str, int] | None = None
) -> None:
    """An empty collection with the settings of another one but ``sizes`` of vectors, and ``state`` in its metadata.

    The server builds quantised codes and graphs from the vectors that it receives.
    """
    from qdrant_client import models

    config = client.get_collection(source).config
    params = config.params
    settings: dict[str, Any] = {
        "shard_number": params.shard_number,
        "replication_factor": params.replication_factor,
        "write_consistency_factor": params.write_consistency_factor,
        "on_disk_payload": params.on_disk_payload,
        "payload": params.payload,
        "id_tracker": params.id_tracker,
        "hnsw_config": models.HnswConfigDiff(**config.hnsw_config.model_dump(exclude_none=True)),
        "optimizers_config": models.OptimizersConfigDiff(**config.optimizer_config.model_dump(exclude_none=True)),
        "quantization_config": config.quantization_config,
    }
    if config.wal_config is not None:
        settings["wal_config"] = models.WalConfigDiff(**config.wal_config.model_dump(exclude_none=True))
    if config.strict_mode_config is not None:
        strict = config.strict_mode_config.model_dump(exclude_none=True)
        settings["strict_mode_config"] = models.StrictModeConfig(**strict)
    client.create_collection(
        name,
        vectors_config=_resized(params.vectors, sizes or {}),
        sparse_vectors_config=params.sparse_vectors,
        metadata={**(config.metadata or {}), _STATE: state},
        **{key: value for key, value in settings.items() if value is not None},
    )
    if _state_of(client.get_collection(name)) != state:
        client.delete_collection(name)
        raise UnfaceError(f"{source}: this Qdrant does not keep metadata of a collection; update the server")


def _copy_points(
    client: "QdrantClient",
    source: str,
    target: str,
    change: Callable[[list["PointStruct"]], list["PointStruct"]],
    advance: Callable[[int], None],
) -> None:
    """Make the target hold the changed points of the source and no others; equal ones are not written again."""
    from qdrant_client import models

    fresh = client.count(target, exact=True).count == 0
    for records in _scroll(client, source):
        points = change([_as_point(record) for record in records])
        if not fresh:
            present = client.retrieve(target, [point.id for point in points], with_payload=True, with_vectors=True)
            there = {record.id: _as_point(record) for record in present}
            points = [point for point in points if point.id not in there or not _same(point, there[point.id])]
        if points:
            client.upsert(target, points, wait=True)
        advance(len(records))
    if not fresh:
        for records in _scroll(client, target, whole=False):
            gone = _missing(client, source, records)
            if gone:
                client.delete(target, models.PointIdsList(points=gone), wait=True)


def _count_unmatched(client: "QdrantClient", one: str, other: str) -> int:
    """How many ids are in only one of two collections."""
    here = sum(len(_missing(client, other, records)) for records in _scroll(client, one, whole=False))
    there = sum(len(_missing(client, one, records)) for records in _scroll(client, other, whole=False))
    return here + there


def _missing(client: "QdrantClient", name: str, records: list["Record"]) -> list[Any]:
    """Ids of the records that a collection does not have."""
    ids = [record.id for record in records]
    present = client.retrieve(name, ids, with_payload=False, with_vectors=False)
    return list(set(ids) - {record.id for record in present})


def _scroll(
    client: "QdrantClient",
    name: str,
    *,
    whole: bool = True,
    payload: list[str] | None = None,
    vectors: bool | list[str] | None = None,
) -> Iterator[list["Record"]]:
    """All points in the order of their ids, with both vectors and payload or with neither, or with what is named."""
    offset: Any = None
    fields = whole if payload is None else payload
    while True:
        records, offset = client.scroll(
            name,
            limit=_BATCH,
            offset=offset,
            with_vectors=whole if vectors is None else vectors,
            with_payload=fields,
        )
        if records:
            yield records
        if offset is None:
            return


def _require_payload(client: "QdrantClient", source: str, identity: str, where: str) -> None:
    """Refuse a name that none of the first points has."""
    records, _ = client.scroll(source, limit=_BATCH, with_payload=True, with_vectors=False)
    known = sorted({name for record in records for name in record.payload or {}})
    if records and identity not in known:
        there = ", ".join(map(repr, known)) or "none"
        raise UnfaceError(f"{where}: no payload field {identity!r}; there is {there}: name it by --identity-column")


def _arrow(records: list["Record"], columns: Columns, vector: str, dim: int) -> pa.RecordBatch:
    """Points that have the vector, with their ids and payload."""
    found = [(record, numbers) for record in records if (numbers := _vector_of(record, vector)) is not None]
    flat = np.array([numbers for _, numbers in found], dtype=np.float32).reshape(-1)
    arrays = {columns.vector: pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), dim)}
    payloads = [{name: _text(value) for name, value in (record.payload or {}).items()} for record, _ in found]
    fields = dict.fromkeys(name for payload in payloads for name, value in payload.items() if value is not None)
    for name in dict.fromkeys([*([] if columns.identity is None else [columns.identity]), *fields]):
        if name not in arrays:
            arrays[name] = pa.array([payload.get(name) for payload in payloads], pa.string())
    if columns.id == Columns.id:
        arrays[columns.id] = pa.array([str(record.id) for record, _ in found], pa.string())
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def _text(value: object) -> str | None:
    """A payload's value, if it is one text, number or truth value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _as_point(record: "Record") -> "PointStruct":
    from qdrant_client import models

    vector: Any = record.vector or {}
    return models.PointStruct(id=record.id, vector=vector, payload=record.payload)


def _vector_of(point: "PointStruct | Record", name: str) -> list[float] | None:
    """A point's dense vector of that name; ``""`` is the unnamed one."""
    vector: Any = point.vector.get(name) if isinstance(point.vector, dict) else point.vector if name == "" else None
    return vector or None


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
    # A store that scales vectors to length one may change the last bit.
    return here.shape == there.shape and np.allclose(here, there, rtol=1e-6, atol=1e-6 * np.abs(here).max(initial=0))
