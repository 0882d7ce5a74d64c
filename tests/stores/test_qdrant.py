"""If these fail, sanitising a Qdrant collection, killed or not, loses points, payload or other vectors, or its name
leads to raw ones.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.stores.cases_qdrant import opened, without_waiting_for_the_disk
from tests.stores.contract import DIM, projection, raw_vectors
from tests.stores.killed import killing
from unface.progress import Silent
from unface.scale import released_vectors
from unface.stores import sanitise_store
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return collection_in(tmp_path)


def test_one_vector_is_replaced_and_payload_other_vectors_and_metadata_stay(folder: Path) -> None:
    before = points(folder)
    receipt = sanitise_store(PROJECTION, store(folder), purge=True)
    assert receipt.rows == ROWS - 1
    assert faces(folder) == pytest.approx(erase(raw_vectors(ROWS)[1:]), abs=1e-6)
    after = points(folder)
    assert after.keys() == before.keys()
    for key in before:
        assert after[key].payload == before[key].payload
        assert after[key].vector.keys() == before[key].vector.keys()
        for other in {"scene", "words"} & before[key].vector.keys():
            assert after[key].vector[other] == before[key].vector[other]
    with opened(folder) as client:
        config = client.get_collection("faces").config
        assert config.metadata["made by"] == "somebody"
        assert config.params.vectors["scene"].size == DIM


def test_two_vectors_of_one_collection_are_erased_one_after_the_other_and_purged_together(folder: Path) -> None:
    sanitise_store(PROJECTION, store(folder))
    held = store(folder, "scene").inspect()
    assert (held.sanitised_with, held.rows) == (None, ROWS - 1)
    sanitise_store(PROJECTION, store(folder, "scene"), purge=True)
    assert store(folder).inspect().sanitised_with == MARK
    assert faces(folder) == pytest.approx(erase(raw_vectors(ROWS)[1:]), abs=1e-6)
    scene = points(folder)[5].vector["scene"]
    assert scene == pytest.approx(erase(raw_vectors(ROWS, seed=1)[5:6])[0], abs=1e-6)
    real, aliases = names(folder)
    assert real == {f"faces__unface_scene_{MARK[:8]}"} == set(aliases.values())


def test_every_alias_of_the_raw_collection_is_turned(folder: Path) -> None:
    with opened(folder) as client:
        for name in ("live", "also live"):
            alias = models.CreateAlias(collection_name="faces", alias_name=name)
            client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    sanitise_store(PROJECTION, QdrantStore(str(folder), "live", "face"))
    real, aliases = names(folder)
    assert real == {"faces", f"live__unface_face_{MARK[:8]}"}
    assert aliases == dict.fromkeys(("live", "also live"), f"live__unface_face_{MARK[:8]}")
    assert faces(folder, "faces") == pytest.approx(raw_vectors(ROWS)[1:])
    sanitise_store(OTHER, store(folder), purge=True)  # the raw collection by its own name
    assert names(folder)[1].keys() == {"live", "also live", "faces"}


def test_the_raw_collection_stays_under_another_name_until_it_is_purged(folder: Path) -> None:
    sanitise_store(PROJECTION, store(folder))
    assert names(folder) == (
        {"faces__unface_raw", f"faces__unface_face_{MARK[:8]}"},
        {"faces": f"faces__unface_face_{MARK[:8]}"},
    )
    assert points(folder, "faces__unface_raw")[7].vector["face"] == pytest.approx(raw_vectors(ROWS)[7])
    sanitise_store(PROJECTION, store(folder), purge=True)
    assert names(folder)[0] == {f"faces__unface_face_{MARK[:8]}"}


def test_a_new_collection_under_an_old_name_is_neither_purged_nor_mixed_with_the_old(folder: Path) -> None:
    sanitise_store(PROJECTION, store(folder), purge=True)
    with opened(folder) as client:
        client.create_collection("faces__unface_raw", models.VectorParams(size=2, distance=models.Distance.DOT))
    assert not store(folder).inspect().raw_kept


def test_a_kept_copy_is_not_taken_for_a_new_empty_collection(folder: Path) -> None:
    sanitise_store(PROJECTION, store(folder))
    with opened(folder) as client:
        config = client.get_collection("faces").config.params
        client.delete_collection(f"faces__unface_face_{MARK[:8]}")
        client.create_collection("faces", config.vectors)
    assert store(folder).inspect().rows == 0


def test_snapshots_of_the_raw_collection_are_deleted_and_those_of_the_server_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local mode has none; a server's are played."""
    deleted: list[tuple[str, str]] = []
    shot = models.SnapshotDescription(name="monday", size=1)
    where = qdrant_client.QdrantClient
    monkeypatch.setattr(where, "list_snapshots", lambda client, name: [shot])
    monkeypatch.setattr(where, "delete_snapshot", lambda client, name, shot, wait: deleted.append((name, shot)))
    monkeypatch.setattr(where, "list_full_snapshots", lambda client: [shot, shot])
    receipt = sanitise_store(PROJECTION, store(folder), purge=True)
    assert deleted == [("faces__unface_raw", "monday")]
    assert receipt.notes == ["2 snapshots of the whole server, which may hold raw vectors"]


def test_a_server_that_forgets_metadata_is_refused_and_nothing_stays_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = qdrant_client.QdrantClient.create_collection

    def forgets(client: Any, *given: Any, metadata: Any, **more: Any) -> Any:
        return create(client, *given, **more)

    monkeypatch.setattr(qdrant_client.QdrantClient, "create_collection", forgets)
    with refused("store", "faces"):
        sanitise_store(PROJECTION, store(folder))
    assert names(folder) == ({"faces"}, {})


def test_what_cannot_be_sanitised_is_refused_in_a_sentence(folder: Path) -> None:
    dense = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    many = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    with opened(folder) as client:
        client.create_collection("bytes", dense.model_copy(update={"datatype": models.Datatype.UINT8}))
        client.create_collection("many", dense.model_copy(update={"multivector_config": many}))
    for name, vector, named in (
        ("faces", "", "'face', 'scene'"),
        ("faces", "words", "'words'"),
        ("nobody", "", "'bytes', 'faces', 'many'"),
        ("bytes", "", "uint8"),
        ("many", "", "several"),
    ):
        with refused("store", ..., named):
            QdrantStore(str(folder), name, vector).inspect()
    with refused("store", "Qdrant collection 'faces', vector 'face'", "there"):
        store(folder).purge()
    with refused("store", "Qdrant collection 'faces', vector 'face'", "staged"):
        list(store(folder).staged())
    with refused("store", "Qdrant collection 'faces', vector 'face'", "with"):
        store(folder).swap(MARK)
    with opened(folder), refused("store", "Qdrant collection 'faces', vector 'face'", "already"):
        store(folder).inspect()


def test_a_folder_that_is_not_qdrants_is_not_made_one(tmp_path: Path) -> None:
    with refused("store", "Qdrant collection 'faces'", "Qdrant's"):
        QdrantStore(str(tmp_path), "faces").inspect()
    assert list(tmp_path.iterdir()) == []


def test_without_the_client_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with refused("store", None, "'unface[stores]'"):
        QdrantStore(str(tmp_path), "faces").inspect()


def test_a_server_is_asked_for_by_its_url_with_the_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def answers(**given: Any) -> None:
        asked.append(given)
        raise RuntimeError("no server")

    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    monkeypatch.setattr(qdrant_client, "QdrantClient", answers)
    with refused("store", "Qdrant collection 'faces'", "reported"):
        QdrantStore("http://localhost:6333", "faces").inspect()
    assert asked == [{"url": "http://localhost:6333", "api_key": "secret", "timeout": 600}]


STEPS = ["create_collection", "upsert", "delete_collection", "update_collection_aliases"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_killed_around_each_step_of_the_swap_the_same_call_ends_right(
    folder: Path, step: str, before: bool, other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with another projection: then from the raw vectors, wherever they are by now."""
    store(folder).stage(erase, MARK, Silent())
    with monkeypatch.context() as patch:
        where = qdrant_client.QdrantClient
        patch.setattr(where, step, killing(getattr(where, step), before))
        with pytest.raises(KeyboardInterrupt):
            store(folder).swap(MARK)
    used = PROJECTION
    if (step, before) == ("update_collection_aliases", False):
        assert store(folder).inspect().sanitised_with == MARK
    else:
        assert store(folder).inspect().sanitised_with is None
        used = OTHER if other else PROJECTION
    sanitise_store(used, store(folder), purge=True)
    assert faces(folder) == pytest.approx(released_vectors(used, raw_vectors(ROWS)[1:], "here"), abs=1e-6)
    assert len(names(folder)[0]) == 1


def test_a_collection_whose_points_are_gone_before_its_name_is_taken_from_the_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the local mode leaves when it is killed while it deletes a collection."""

    def half(client: Any, name: str) -> None:
        client.delete(name, models.FilterSelector(filter=models.Filter()))
        raise KeyboardInterrupt

    store(folder).stage(erase, MARK, Silent())
    with monkeypatch.context() as patch:
        patch.setattr(qdrant_client.QdrantClient, "delete_collection", half)
        with pytest.raises(KeyboardInterrupt):
            store(folder).swap(MARK)
    assert points(folder) == {}
    sanitise_store(PROJECTION, store(folder), purge=True)
    assert faces(folder) == pytest.approx(erase(raw_vectors(ROWS)[1:]), abs=1e-6)


def test_going_on_writes_only_what_is_not_there_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(folder).stage(erase, MARK, Silent())
    with opened(folder) as client:
        changed = point(5)
        changed.vector["face"] = (-raw_vectors(1)[0]).tolist()
        told = point(6)
        told.payload = {"told": "otherwise"}
        late = point(7)
        late.id = 1000
        client.upsert("faces", [changed, told, late])
        client.delete("faces", [8])
    written: list[Any] = []
    upsert = qdrant_client.QdrantClient.upsert

    def watched(client: Any, name: str, points: list[Any], **more: Any) -> Any:
        written.extend(point.id for point in points)
        return upsert(client, name, points, **more)

    with monkeypatch.context() as patch:
        patch.setattr(qdrant_client.QdrantClient, "upsert", watched)
        store(folder).stage(erase, MARK, Silent())
    assert sorted(written) == [5, 6, 1000]
    before = points(folder)
    sanitise_store(PROJECTION, store(folder), purge=True)
    after = points(folder)
    assert after.keys() == before.keys()
    assert after[6].payload == {"told": "otherwise"}
    assert after[5].vector["face"] == pytest.approx(erase(-raw_vectors(1))[0], abs=1e-6)


def test_ids_that_are_only_on_one_side_are_counted(folder: Path) -> None:
    store(folder).stage(erase, MARK, Silent())
    assert store(folder).unmatched() == 0
    with opened(folder) as client:
        client.delete("faces", [3, 4])
        late = point(7)
        late.id = 1000
        client.upsert("faces", [late])
    assert store(folder).unmatched() == 3
