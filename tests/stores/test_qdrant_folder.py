"""If these fail, a folder of Qdrant's local mode that somebody else wrote runs code, reaches other folders, or ends in
a traceback.
"""

import copyreg
import json
import os
import pickle
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.stores.cases_qdrant import opened, without_waiting_for_the_disk
from tests.stores.contract import DIM, projection, raw_vectors
from unface import UnfaceError
from unface.stores import sanitise_store
from unface.stores.qdrant import QdrantStore

qdrant_client = pytest.importorskip("qdrant_client")
models = qdrant_client.models
PROJECTION = projection()
ROWS = 12
MODELS = "qdrant_client.http.models.models"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    without_waiting_for_the_disk()
    dense = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    with opened(tmp_path / "qdrant") as client:
        for name in ("faces", "other"):
            client.create_collection(name, dense)
            client.upsert(name, [point(row) for row in range(ROWS)])
    return tmp_path / "qdrant"


def point(row: int) -> Any:
    return models.PointStruct(id=row, vector=raw_vectors(ROWS)[row].tolist(), payload={"n": {"row": [row, None, "é"]}})


def sanitise(folder: Path) -> None:
    sanitise_store(PROJECTION, QdrantStore(str(folder), "faces"), purge=True)


class Reduced:
    """Pickles into a call."""

    def __init__(self, function: Callable[..., object], *given: object) -> None:
        self.call = function, given

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value.encode())]) + value.encode()


def pickles(marker: Path) -> dict[str, bytes]:
    """Each makes the folder ``marker``, or changes a class, if it is unpickled without a restriction."""
    mkdir = Reduced(os.mkdir, str(marker))
    with_payload = models.PointStruct.model_construct(id=1, vector=[0.0] * DIM, payload={"a": [mkdir]})
    made = text(str(marker))
    dotted = text(MODELS) + text("PointStruct.__init__.__globals__") + b"\x93"
    return {
        "a call": pickle.dumps(mkdir),
        "a call in the payload": pickle.dumps(with_payload),
        "a call as protocol 0": pickle.dumps(mkdir, protocol=0),
        "an instance by INST": b"(S" + repr(str(marker)).encode() + b"\nios\nmkdir\n.",
        "eval": pickle.dumps(Reduced(eval, f"__import__('os').mkdir({str(marker)!r})")),
        "a name inside an allowed class": b"\x80\x04" + dotted + b".",
        "a module beside the allowed class": b"\x80\x04" + text(MODELS) + text("BaseModel") + b"\x93" + b")\x81.",
        "a registered extension": b"\x80\x04\x82\xf0" + made + b"\x85R.",
        "attributes of an allowed class": b"\x80\x04"
        + (text(MODELS) + text("PointStruct") + b"\x93")
        + (b"N}" + text("planted") + b"K\x01s\x86b."),
        "no point": pickle.dumps([1, 2]),
        "no pickle": b"\xff" * 40,
        "nothing": b"",
    }


@pytest.mark.parametrize("bomb", pickles(Path("marker")))
@pytest.mark.parametrize("collection", ["faces", "other", f"faces__unface_{PROJECTION.sha256[:8]}"])
def test_no_pickle_in_the_folder_runs_code_and_each_is_refused_in_one_line(
    folder: Path, collection: str, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a collection that is not asked for, and in files at the place of one that is still to be made."""
    marker = folder.parent / "marker"
    monkeypatch.setitem(copyreg._inverted_registry, 0xF0, ("os", "mkdir"))  # type: ignore[attr-defined]
    storage = folder / "collection" / collection / "storage.sqlite"
    listed = storage.exists()
    storage.parent.mkdir(exist_ok=True)
    with sqlite3.connect(storage) as database:
        database.execute("CREATE TABLE IF NOT EXISTS points (id TEXT PRIMARY KEY, point BLOB)")
        database.execute("INSERT INTO points VALUES ('zz', ?)", (pickles(marker)[bomb],))
    if listed:
        with refused("store", "Qdrant collection 'faces'"):
            sanitise(folder)
    else:
        try:
            sanitise(folder)
        except UnfaceError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert not marker.exists()
    assert not hasattr(models.PointStruct, "planted")


def test_every_kind_of_point_that_the_client_writes_is_read(tmp_path: Path) -> None:
    without_waiting_for_the_disk()
    dense = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    many = dense.model_copy(
        update={"multivector_config": models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)}
    )
    payload = {"text": "é", "number": 1.5, "none": None, "yes": True, "list": [{"a": 1}], "big": 2**70}
    vectors = raw_vectors(ROWS)
    with opened(tmp_path) as client:
        client.create_collection(
            "faces", {"face": dense, "many": many}, sparse_vectors_config={"words": models.SparseVectorParams()}
        )
        words = models.SparseVector(indices=[1, 5], values=[0.5, 2.0])
        whole = {"face": vectors[0].tolist(), "many": vectors[:2].tolist(), "words": words}
        client.upsert("faces", [models.PointStruct(id=1, vector=whole, payload=payload)])
        client.upsert("faces", models.Batch(ids=[2], vectors={"face": [vectors[1].tolist()]}, payloads=[payload]))
        client.upload_collection("faces", {"face": vectors[2:4]}, payload=[payload, {}])
        client.set_payload("faces", {"more": "text"}, points=[1])
        client.update_vectors("faces", [models.PointVectors(id=2, vector={"face": vectors[5].tolist()})])
    sanitise_store(PROJECTION, QdrantStore(str(tmp_path), "faces", "face"), purge=True)
    with opened(tmp_path) as client:
        points = {record.id: record for record in client.scroll("faces", with_vectors=True)[0]}
    assert len(points) == 4
    assert points[1].payload == {**payload, "more": "text"}
    assert points[1].vector["words"] == words
    assert np.allclose(points[2].vector["face"], PROJECTION.apply(vectors[5:6])[0], atol=1e-6)


def test_the_client_unpickles_in_one_module_only() -> None:
    """The one whose unpickling is restricted."""
    local = Path(qdrant_client.__file__).parent / "local"
    words = ("pickle", "shelve", "marshal", "joblib", "dill")
    assert {
        file.name
        for file in local.rglob("*.py")
        if any(f"import {word}" in file.read_text() or f"from {word}" in file.read_text() for word in words)
    } == {"persistence.py"}


def test_a_client_whose_unpickling_cannot_be_restricted_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qdrant_client.local import persistence

    monkeypatch.delattr(persistence, "pickle")
    with refused("store", "Qdrant collection 'faces'", "safely"):
        sanitise(folder)


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "..", ".", "", "a\0b", "a\\b"])
def test_a_collection_name_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    meta["collections"][name] = meta["collections"]["other"]
    (folder / "meta.json").write_text(json.dumps(meta))
    before = sorted(folder.parent.rglob("*"))
    with refused("store", "Qdrant collection 'faces'", "plain"):
        sanitise(folder)
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize("link", ["collection/faces/storage.sqlite", "collection/faces", "collection", "meta.json.tmp"])
def test_a_link_in_the_folder_is_refused_and_its_target_stays(folder: Path, link: str) -> None:
    target = folder.parent / "target"
    if (folder / link).exists():
        (folder / link).rename(target)
    else:
        target.write_text("precious")
    (folder / link).symlink_to(target)
    before = {path: path.stat().st_mtime_ns for path in (target, *target.rglob("*"))}
    with refused("store", "Qdrant collection 'faces'", "link"):
        sanitise(folder)
    assert before == {path: path.stat().st_mtime_ns for path in (target, *target.rglob("*"))}


def test_a_full_disk_ends_in_one_line_and_the_same_call_finishes_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qdrant_client.local.persistence import CollectionPersistence

    begin = CollectionPersistence._ensure_table

    def on_a_small_disk(self: Any) -> None:
        begin(self)
        self.storage.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size if that is more

    monkeypatch.setattr(CollectionPersistence, "_ensure_table", on_a_small_disk)
    with refused("store", "Qdrant collection 'faces'", "database"):
        sanitise(folder)
    monkeypatch.undo()
    sanitise(folder)
    with opened(folder) as client:
        records = {record.id: record.vector for record in client.scroll("faces", with_vectors=True, limit=99)[0]}
    assert np.allclose([records[row] for row in range(ROWS)], PROJECTION.apply(raw_vectors(ROWS)), atol=1e-6)


@pytest.mark.parametrize("cut", [0, 10, 100, 1000, 4096, 5000])
@pytest.mark.parametrize("fill", [b"", b"\xff", b"text " * 1000])
def test_a_corrupt_database_ends_in_one_line(folder: Path, cut: int, fill: bytes) -> None:
    storage = folder / "collection" / "faces" / "storage.sqlite"
    whole = storage.read_bytes()
    storage.write_bytes(whole[:cut] + fill + (whole[cut + len(fill) :] if fill else b""))
    try:
        QdrantStore(str(folder), "faces").inspect()
    except UnfaceError as error:
        assert "\n" not in str(error)  # noqa: PT017


ODD = [None, 0, -1, 1e300, "", "text", "faces", [], [1], {}, {"a": 1}, True]


def test_an_odd_meta_file_ends_in_one_line(folder: Path) -> None:
    """Every value of it replaced by values of other types, and the text cut and changed at random places."""
    meta = folder / "meta.json"
    with opened(folder) as client:
        alias = models.CreateAlias(collection_name="faces", alias_name="live")
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        state = {"vectors": {"": "a" * 64}, "raw": ["other"]}
        client.create_collection("done", models.VectorParams(size=2, distance=models.Distance.DOT))
        client.update_collection("done", metadata={"unface": state})
    whole = json.loads(meta.read_text())
    texts = [json.dumps(odd) for odd in ODD]
    for keys in paths(whole):
        for odd in ODD:
            texts.append(json.dumps(replaced(whole, keys, odd)))
    chosen, plain = random.Random(0), json.dumps(whole)
    texts = chosen.sample(texts, 250)
    texts += ["", "{", "[" * 100_000, '{"collections": {}, "aliases": {}', "\ud800", plain]
    texts += [plain[: chosen.randrange(len(plain))] for _ in range(20)]
    refused = 0
    for odd_text in texts:
        meta.write_text(odd_text, errors="surrogatepass")
        for name in ("faces", "live", "done"):
            try:
                QdrantStore(str(folder), name).inspect()
            except UnfaceError as error:
                refused += 1
                assert "\n" not in str(error)  # noqa: PT017
    assert refused > 100


def paths(value: Any, *keys: str) -> list[tuple[str, ...]]:
    inner = [path for key in value for path in paths(value[key], *keys, key)] if isinstance(value, dict) else []
    return [*([keys] if keys else []), *inner]


def replaced(value: Any, keys: tuple[str, ...], odd: Any) -> Any:
    first, *rest = keys
    return {**value, first: replaced(value[first], tuple(rest), odd) if rest else odd}
