"""A Qdrant collection made like another one: vectors, index, quantisation, sharding and payload indices."""

from typing import TYPE_CHECKING, Any

from unface.errors import UnfaceError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import CollectionInfo, VectorParams

_KEY = "unface"


def create_like(client: "QdrantClient", source: str, name: str, remembered: dict[str, Any]) -> None:
    """An empty collection with the settings of another; ``remembered`` is added to its metadata.

    Quantised codes and graphs are the server's to make, from the vectors that come in.
    """
    from qdrant_client import models

    config = client.get_collection(source).config
    params = config.params
    asked: dict[str, Any] = {
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
        asked["wal_config"] = models.WalConfigDiff(**config.wal_config.model_dump(exclude_none=True))
    if config.strict_mode_config is not None:
        asked["strict_mode_config"] = models.StrictModeConfig(**config.strict_mode_config.model_dump(exclude_none=True))
    client.create_collection(
        name,
        vectors_config=params.vectors,
        sparse_vectors_config=params.sparse_vectors,
        metadata={**(config.metadata or {}), _KEY: remembered},
        **{key: value for key, value in asked.items() if value is not None},
    )
    if remembered_by(client.get_collection(name)) != remembered:
        client.delete_collection(name)
        raise UnfaceError(f"{source}: this Qdrant does not keep metadata of a collection; update the server")


def index_payload_like(client: "QdrantClient", source: str, name: str) -> None:
    """Payload indices that the other has and this one has not."""
    there = client.get_collection(name).payload_schema
    for field, index in client.get_collection(source).payload_schema.items():
        if field not in there:
            client.create_payload_index(name, field, field_schema=index.params or index.data_type)


def remembered_by(collection: "CollectionInfo") -> dict[str, Any]:
    """What was written there by ``create_like``."""
    found: dict[str, Any] = (collection.config.metadata or {}).get(_KEY, {})
    return found


def remember(client: "QdrantClient", name: str, remembered: dict[str, Any]) -> None:
    """In the place of what was remembered before."""
    metadata = client.get_collection(name).config.metadata or {}
    client.update_collection(name, metadata={**metadata, _KEY: remembered})


def alike(one: "CollectionInfo", other: "CollectionInfo") -> bool:
    """Whether points of one fit into the other."""
    here, there = one.config.params, other.config.params
    return (here.vectors, here.sparse_vectors) == (there.vectors, there.sparse_vectors)


def vector_params(collection: "CollectionInfo", name: str, where: str) -> "VectorParams":
    """Settings of the vector to be erased; refuses what is not one vector of floats for a point."""
    from qdrant_client import models

    params = collection.config.params
    named = params.vectors if isinstance(params.vectors, dict) else {"": params.vectors}
    found = named.get(name)
    if found is None:
        there = ", ".join(repr(known) for known in named if named[known] is not None)
        raise UnfaceError(f"{where}: no vector {name!r}; there is {there or 'none'}")
    if found.multivector_config is not None:
        raise UnfaceError(f"{where}: several vectors for one point (multivector) cannot be erased")
    if found.datatype not in (None, models.Datatype.FLOAT32, models.Datatype.FLOAT16):
        raise UnfaceError(f"{where}: vectors of {found.datatype.value}; expected float32 or float16")
    if params.sharding_method == models.ShardingMethod.CUSTOM:
        raise UnfaceError(f"{where}: shards chosen by key cannot be made again from outside; copy it to one without")
    return found
