"""If these fail, a NumPy archive is misread, believed before its size, or runs what somebody hid in it."""

import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from unface.data import EmbeddingSet, read_embeddings

VECTORS = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["zoe", "ann", "zoe", "ann"]


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
