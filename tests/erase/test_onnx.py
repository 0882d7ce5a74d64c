"""If these fail, a service that erases by ONNX releases other vectors than we measured."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.erase.people import people
from unface.erase import ISP, LEACE, Eraser, Projection
from unface.errors import UnfaceError


def run(path: Path, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: NDArray[np.float32] = session.run(["erased"], {"vectors": vectors})[0]
    return found


ERASERS = [ISP(20), ISP(50), ISP(80), ISP(0), LEACE(20), LEACE(80), LEACE(), ISP(20, normalise=False)]


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_exported_model_is_apply(eraser: Eraser, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    path = tmp_path / "p.onnx"
    found.export(path)
    for rows in (1, 7, len(made)):
        assert run(path, made.vectors[:rows]) == pytest.approx(found.apply(made.vectors[:rows]), abs=1e-6)
    assert run(path, made.vectors) != pytest.approx(made.unit().vectors, abs=1e-6) or found.rank == 0
    assert list(tmp_path.iterdir()) == [path]


def test_vectors_that_vanish_come_out_as_zeros(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    found = axis()
    found.export(tmp_path / "p.onnx")
    given = np.array([[5, 0, 0], [5, 1e-7, 0], [0, 0, 0], [5, 0, -1]], np.float32)
    assert run(tmp_path / "p.onnx", given).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, -1]]


def test_without_the_onnx_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnfaceError, match="pip install onnx"):
        axis().export(tmp_path / "p.onnx")


def axis() -> Projection:
    vectors = np.array([[1, 0, 0], [-1, 0, 0]], np.float32)
    return ISP(1).fit(vectors, [0, 1]).projection_
