"""If these fail, a NumPy archive is misread, believed before its size, or runs what somebody hid in it."""

import os
import zipfile
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.data import EmbeddingSet, read_embeddings
from unface.errors import UnfaceError

VECTORS = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["zoe", "ann", "zoe", "ann"]


def refusal(path: Path) -> str:
    with pytest.raises(UnfaceError) as caught:
        read_embeddings(path)
    return str(caught.value)


def names_of(found: EmbeddingSet) -> list[str]:
    return [found.names[code] for code in found.identities]


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
    assert refusal(tmp_path / "a.npz") == "a.npz: no array 'vector' or 'vectors'; there is 'face', 'who', 'id'"


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
    expected = f"a.npz: {where!r} is an object array, never unpickled; save it as {where}.astype(str)"
    assert refusal(tmp_path / "a.npz") == expected
    assert not trace.exists()
    with np.load(tmp_path / "a.npz", allow_pickle=True) as archive:  # the bomb is live: the test can fail
        assert archive[where] is not None
    assert trace.exists()


@pytest.mark.parametrize("shape", ["(1000000000000, 2)", "(4, -2)", "(3, 2)", "(5, 2)"])
def test_an_npz_header_is_not_believed_before_its_size(tmp_path: Path, shape: str) -> None:
    stored = BytesIO()
    np.save(stored, VECTORS)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    body = stored.getvalue()[:8] + len(header).to_bytes(2, "little") + header + stored.getvalue()[128:]
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("vectors.npy", body)
    assert refusal(tmp_path / "a.npz") == (
        f"a.npz: 'vectors' promises shape {shape}, which its bytes do not hold; copy the file again"
    )


def test_an_npz_without_arrays_or_with_other_files_is_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "none.npz")
    assert refusal(tmp_path / "none.npz") == "none.npz: no array 'vector' or 'vectors'; there is no arrays"
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refusal(tmp_path / "zip.npz") == (
        "zip.npz: not a readable .npz file (no array in it); for pictures name an --encoder"
    )


def test_a_name_that_was_asked_for_is_not_replaced_by_the_usual_one(tmp_path: Path) -> None:
    path = tmp_path / "faces.npz"
    np.savez(path, vectors=np.eye(4), identities=["a", "a", "b", "b"])
    read = partial(read_embeddings, path)
    for misspelt in (partial(read, vector="typo"), partial(read, identity="typo"), partial(read, id="typo")):
        with pytest.raises(UnfaceError) as error:
            misspelt()
        assert str(error.value) == "faces.npz: no array 'typo'; there is 'vectors', 'identities'"
