"""If these fail, a file is misread, believed where it lies, or its failure is a traceback instead of a sentence."""

import json
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from unface.data import EmbeddingSet, Space, read_embeddings

VECTORS = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["zoe", "ann", "zoe", "ann"]
STRANGE = ["../../etc/passwd", "<script>alert(1)</script>", "Zoë 張偉 🙂", "a\nb"]
SPACE = {"encoder": "arcface", "weights_sha256": "ab" * 32, "dim": 2, "normalised": True}


def table(names: list[str] = NAMES, metadata: dict[str, str] | None = None, ids: str = "") -> pa.Table:
    columns = {"identity": names, "vector": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 2)}
    if ids:
        columns["id"] = [f"{ids}{row}" for row in range(4)]
    return pa.table(columns).replace_schema_metadata(metadata)


def names_of(found: EmbeddingSet) -> list[str]:
    return [found.names[code] for code in found.identities]


def test_files_are_known_by_content_not_by_suffix(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", vectors=VECTORS, identities=NAMES)
    (tmp_path / "b.npz").rename(tmp_path / "b.parquet")
    for name in ("a.npz", "b.parquet"):
        found = read_embeddings(tmp_path / name)
        assert np.array_equal(found.vectors, VECTORS)
        assert names_of(found) == NAMES
        assert found.source == name
    assert names_of(read_embeddings(str(tmp_path / "a.npz"))) == NAMES


def test_strange_names_are_plain_text(tmp_path: Path) -> None:
    pq.write_table(table(STRANGE), tmp_path / "a.parquet")
    np.savez(tmp_path / "b.npz", vectors=VECTORS, identities=STRANGE)
    for name in ("a.parquet", "b.npz"):
        assert names_of(read_embeddings(tmp_path / name)) == STRANGE


def test_the_space_is_read_from_the_metadata(tmp_path: Path) -> None:
    pq.write_table(table(metadata={"unface.space": json.dumps(SPACE)}), tmp_path / "a.parquet")
    assert read_embeddings(tmp_path / "a.parquet").space == Space("arcface", "ab" * 32, 2, True)


def test_a_directory_is_read_in_name_order(tmp_path: Path) -> None:
    pq.write_table(table(["b"] * 4, ids="x"), tmp_path / "part-2.parquet")
    pq.write_table(table(["a"] * 4, ids="y").select(["id", "vector", "identity"]), tmp_path / "part-1.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("not data")
    found = read_embeddings(tmp_path)
    assert found.ids.tolist() == ["y0", "y1", "y2", "y3", "x0", "x1", "x2", "x3"]
    assert found.source == tmp_path.name


def test_columns_that_cannot_be_labels_are_told(tmp_path: Path) -> None:
    pq.write_table(table().append_column("picture", [[b"png"] * 4]), tmp_path / "a.parquet")
    assert read_embeddings(tmp_path / "a.parquet").notes == ("column 'picture' left out: binary is not a label",)
    assert read_embeddings(tmp_path / "a.parquet").labels == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read_is_one_line(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0)
    with refused("file", "a.parquet"):
        read_embeddings(tmp_path / "a.parquet")


def test_permission_denied_is_one_line_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    pq.write_table(table(), tmp_path / "a.parquet")
    monkeypatch.setattr(Path, "open", denied)
    with refused("file", "a.parquet"):
        read_embeddings(tmp_path / "a.parquet")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("identities", [np.array(NAMES), np.array(NAMES, dtype="S"), np.array([2, 1, 2, 1])])
def test_npz_is_read_with_ids_and_labels(tmp_path: Path, save: type, identities: NDArray[np.generic]) -> None:
    ids = ["w", "x", "y", "z"]
    save(tmp_path / "a.npz", vectors=VECTORS, identities=identities, ids=ids, age=np.arange(4), mean=np.ones(2))
    found = read_embeddings(tmp_path / "a.npz")
    assert np.array_equal(found.vectors, VECTORS)
    assert names_of(found) == identities.astype(str).tolist()
    assert found.ids.tolist() == ids
    assert found.labels["age"].tolist() == [0, 1, 2, 3]
    assert found.notes == ("array 'mean' left out: shape (2,)",)


def test_npz_arrays_go_by_the_names_given_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", face=VECTORS, who=NAMES, id=["w", "x", "y", "z"])
    found = read_embeddings(tmp_path / "a.npz", vector="face", identity="who")
    assert names_of(found) == NAMES
    assert found.ids.tolist() == ["w", "x", "y", "z"]


def test_np_load_is_told_not_to_unpickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second lock: our own look at the headers is the first."""
    np.savez(tmp_path / "a.npz", vectors=VECTORS, identities=NAMES)
    load, told = np.load, []

    def spy(file: BinaryIO, *, allow_pickle: bool) -> object:
        told.append(allow_pickle)
        return load(file, allow_pickle=allow_pickle)

    monkeypatch.setattr(np, "load", spy)
    read_embeddings(tmp_path / "a.npz")
    assert told == [False]


class Bomb:
    """Unpickled, it creates a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("where", ["vectors", "identities", "ids", "other"])
def test_a_pickle_in_an_npz_is_never_run(tmp_path: Path, where: str) -> None:
    trace = tmp_path / "trace"
    arrays = {"vectors": VECTORS, "identities": np.array(NAMES), "ids": np.array(list("wxyz")), "other": np.arange(4)}
    bomb = np.array([Bomb(trace)] * 4, dtype=object)
    np.savez(tmp_path / "a.npz", allow_pickle=True, **{**arrays, where: bomb})
    with refused("vectors", "a.npz", repr(where)):
        read_embeddings(tmp_path / "a.npz")
    assert not trace.exists()
    with np.load(tmp_path / "a.npz", allow_pickle=True) as archive:  # the bomb is live: the test can fail
        assert archive[where] is not None
    assert trace.exists()
