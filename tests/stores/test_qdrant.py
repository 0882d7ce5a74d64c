"""If these fail, a Qdrant collection loses points, payload or other vectors, or its name leads to raw ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.stores.cases_qdrant import opened
from tests.stores.contract import DIM, raw_vectors
from tests.stores.qdrant_collection import (
    MARK,
    OTHER,
    PROJECTION,
    ROWS,
    collection_in,
    erase,
    faces,
    models,
    names,
    points,
    qdrant_client,
    store,
)
from unface import UnfaceError
from unface.stores import sanitise_store
from unface.stores.qdrant import QdrantStore


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
    with pytest.raises(UnfaceError, match="does not keep metadata of a collection; update the server"):
        sanitise_store(PROJECTION, store(folder))
    assert names(folder) == ({"faces"}, {})


def test_what_cannot_be_sanitised_is_refused_in_a_sentence(folder: Path) -> None:
    dense = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    many = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    with opened(folder) as client:
        client.create_collection("bytes", dense.model_copy(update={"datatype": models.Datatype.UINT8}))
        client.create_collection("many", dense.model_copy(update={"multivector_config": many}))
    for name, vector, sentence in (
        ("faces", "", "no vector ''; there is 'face', 'scene'"),
        ("faces", "words", "no vector 'words'"),
        ("nobody", "", "no such collection or alias; there is 'bytes', 'faces', 'many'"),
        ("bytes", "", "vectors of uint8; expected float32 or float16"),
        ("many", "", "several vectors for one point"),
    ):
        with pytest.raises(UnfaceError, match=sentence):
            QdrantStore(str(folder), name, vector).inspect()
    with pytest.raises(UnfaceError, match="not sanitised yet; there is nothing to purge"):
        store(folder).purge()
    with pytest.raises(UnfaceError, match="nothing is staged"):
        list(store(folder).staged())
    with pytest.raises(UnfaceError, match="nothing is staged with this projection"):
        store(folder).swap(MARK)
    with opened(folder), pytest.raises(UnfaceError, match="already accessed by another instance"):
        store(folder).inspect()


def test_a_folder_that_is_not_qdrants_is_not_made_one(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError, match="not one of Qdrant's local mode"):
        QdrantStore(str(tmp_path), "faces").inspect()
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_asked_for_by_its_url_with_the_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def answers(**given: Any) -> None:
        asked.append(given)
        raise RuntimeError("no server")

    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    monkeypatch.setattr(qdrant_client, "QdrantClient", answers)
    with pytest.raises(UnfaceError, match=r"^Qdrant collection 'faces': Qdrant says: no server$"):
        QdrantStore("http://localhost:6333", "faces").inspect()
    assert asked == [{"url": "http://localhost:6333", "api_key": "secret", "timeout": 600}]
