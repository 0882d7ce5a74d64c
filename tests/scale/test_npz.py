"""If these fail, an .npz file comes back without one of its arrays, or with vectors that were not erased."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.scale.stored import PEOPLE, projection
from unface.scale import sanitise_file

NAMES = np.array(PEOPLE.names)[PEOPLE.identities]


def test_vectors_change_and_every_other_array_stays(tmp_path: Path) -> None:
    others: dict[str, Any] = {"identities": NAMES, "grid": np.arange(6).reshape(2, 3).T, "note": np.array("one text")}
    np.savez_compressed(tmp_path / "faces.npz", vectors=PEOPLE.vectors.astype(np.float16), **others)
    done = sanitise_file(projection(), tmp_path / "faces.npz", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as after:
        assert after.files == ["vectors", "identities", "grid", "note"]
        assert after["vectors"].dtype == np.float16
        half = PEOPLE.vectors.astype(np.float16).astype(np.float32)
        unit = half / np.linalg.norm(half.astype(np.float64), axis=1, keepdims=True)
        assert np.allclose(after["vectors"], projection().apply(unit.astype(np.float32)), atol=1e-3)
        for name, array in others.items():
            assert after[name].dtype == array.dtype
            assert np.array_equal(after[name], array)
    assert not done.named_space
    assert done.sentence().endswith("; the source does not say which encoder it is from, so this could not be checked")


def test_an_array_may_have_any_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "faces.npz", vector=PEOPLE.vectors, names=NAMES)
    with zipfile.ZipFile(tmp_path / "faces.npz", "a") as archive:
        archive.writestr("file.npy", archive.read("names.npy"))
    sanitise_file(projection(), tmp_path / "faces.npz", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as after:
        assert after.files == ["vector", "names", "file"]
        assert np.array_equal(after["file"], NAMES)
        assert np.array_equal(after["vector"], projection().apply(PEOPLE.unit().vectors))


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "faces.npz", vectors=PEOPLE.vectors, names=NAMES)

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unface.data.read.npy.write_array_header_1_0", full)
    with refused("output", "out.npz", "No space left on device"):
        sanitise_file(projection(), tmp_path / "faces.npz", tmp_path / "out.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["faces.npz"]
