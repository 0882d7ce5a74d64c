"""If these fail, a Qdrant collection that was cut off or written to meanwhile loses points, or its name stays raw."""

from pathlib import Path
from typing import Any

import pytest

from tests.stores.cases_qdrant import opened
from tests.stores.contract import raw_vectors
from tests.stores.killed import killing
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
    point,
    points,
    qdrant_client,
    store,
)
from unface.progress import Silent
from unface.scale import released_vectors
from unface.stores import sanitise_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return collection_in(tmp_path)


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
