"""If these fail, some way of applying a projection releases other vectors than those that were audited.

Every eraser and control, fitted as ``unface fit`` does (on unit vectors) and as scikit-learn users do (on vectors as
they are), is applied in every form to the same rows: some of unit length, some not, one of zeros. All must agree with
``by_hand``. So must those behind a face gate, but for FAISS's transform, which refuses it. Stores are tested with one
projection with a mean, one without and one behind a gate: each store hands its vectors to one function, whatever the
kind.
"""

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.erase.people import people
from tests.kit.command import unface
from tests.refusals.table import refused
from tests.stores.contract import DIM as STORE_DIM
from unface.data import EmbeddingSet
from unface.erase import (
    CONTROLS,
    ERASERS,
    KEEPER,
    UTILITY_AWARE,
    Projection,
    copy_covariance,
    fit_projection,
    make_eraser,
)
from unface.erase.gate import Gate
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.stores import sanitise_store

GATED = "gated "
IN_SAME_DIMENSION = "keeper in the same dimension"
KINDS = (*ERASERS, *UTILITY_AWARE, KEEPER, IN_SAME_DIMENSION, *CONTROLS)
DIM, RANK, ROWS = 72, 9, 40  # more than 64 dimensions, so that the map is applied as two thin factors
STORES = {
    "npy": "npy float32",
    "faiss": "faiss Flat",
    "lance": "LanceDB",
    "qdrant": "Qdrant",
    "postgres": "pgvector, indexed",
}
Vectors = NDArray[np.float32]


@cache
def fitted(kind: str, on_unit: bool, dim: int = DIM) -> Projection:
    if kind.startswith(GATED):
        return gated(fitted(kind.removeprefix(GATED), on_unit, dim))
    faces = shifted(people(20, 4, dim, between=2.0, seed=1))
    task = shifted(people(20, 4, dim, seed=2))
    if on_unit:
        faces, task = faces.unit(), task.unit()
    if kind == IN_SAME_DIMENSION:
        return fitted(KEEPER, on_unit, dim).in_same_dimension()
    copies = faces.vectors + np.random.default_rng(4).standard_normal(faces.vectors.shape) * np.geomspace(0.1, 1, dim)
    nuisance = copy_covariance(faces.vectors, copies)
    rank = dim - RANK if kind == KEEPER else RANK
    return fit_projection(make_eraser(kind, rank, task.vectors, nuisance=nuisance), faces)


def shifted(faces: EmbeddingSet) -> EmbeddingSet:
    """Real embeddings have a mean, and so has what erasers then learn."""
    return EmbeddingSet.from_arrays(faces.vectors + np.float32(0.7), faces.identities)


@cache
def given(dim: int = DIM) -> Vectors:
    """Half of the rows of unit length, half from a hundredth to a hundred; the last is zero."""
    faces = shifted(people(10, 4, dim, seed=3)).unit().vectors.copy()
    faces[ROWS // 2 :] *= np.geomspace(0.01, 100, ROWS - ROWS // 2, dtype=np.float32)[:, None]
    faces[-1] = 0
    return faces


def gated(projection: Projection) -> Projection:
    """Behind a gate that takes about half of the rows for faces."""
    weights = np.random.default_rng(projection.dim).standard_normal(projection.dim)
    weights /= np.linalg.norm(weights)
    half = -float(np.median(given(projection.dim)[:20] @ weights))
    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    return replace(projection, gate=Gate(weights, half, certificate))


def by_hand(projection: Projection, vectors: Vectors) -> NDArray[np.float64]:
    """unit(z − A Bᵀ(z − mean)), or unit(Vᵀz) and unit(L Vᵀz) with V = L R, of z = x or, if fitted on unit vectors,
    z = unit(x); a zero vector stays zero."""
    read = projection.directions if projection.readers is None else projection.readers
    mean = np.zeros(projection.dim) if projection.mean is None else projection.mean
    erased = np.zeros((len(vectors), projection.released_dim))
    for row, vector in enumerate(vectors.astype(np.float64)):
        if vector.any():
            z = vector / np.linalg.norm(vector) if projection.space.normalised else vector
            if projection.gate is not None and z @ projection.gate.weights + projection.gate.offset <= 0:
                erased[row] = z
                continue
            if projection.kept is None:
                z = z - projection.directions @ (read.T @ (z - mean))
            else:
                triangle = np.linalg.cholesky(projection.kept.T @ projection.kept).T
                z = projection.kept.T @ z
                if projection.released_dim == projection.dim:
                    z = projection.kept @ np.linalg.solve(triangle, z)
            erased[row] = z / np.linalg.norm(z)
    return erased


def python(projection: Projection, vectors: Vectors, _: Path) -> Vectors:
    return projection.apply(vectors)


def python_one_by_one(projection: Projection, vectors: Vectors, _: Path) -> Vectors:
    return np.array([projection.apply(vector) for vector in vectors])


def command_file(projection: Projection, vectors: Vectors, folder: Path) -> Vectors:
    return command(projection, vectors, folder / "a.parquet", folder / "a.parquet", folder / "out.parquet")


def command_folder(projection: Projection, vectors: Vectors, folder: Path) -> Vectors:
    (folder / "faces").mkdir()
    return command(projection, vectors, folder / "faces/a.parquet", folder / "faces", folder / "erased")


def command(projection: Projection, vectors: Vectors, file: Path, source: Path, out: Path) -> Vectors:
    """``unface apply P SOURCE OUT``, where ``file`` with the vectors is the source or lies in it."""
    saved = out.with_suffix(".safetensors")
    projection.save(saved)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"vector": lists}), file)
    done = unface("apply", saved, source, out, "--threads", "1", "--quiet")
    assert (done.code, done.err) == (0, "")
    stored = pq.read_table(out / file.name if out.is_dir() else out).column("vector").combine_chunks()
    return np.asarray(stored.flatten(), np.float32).reshape(vectors.shape[0], stored.type.list_size)


def onnx(projection: Projection, vectors: Vectors, folder: Path) -> Vectors:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    projection.export(folder / "p.onnx")
    session = runtime.InferenceSession(folder / "p.onnx", providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["erased"], {"vectors": vectors})[0])


def torch(projection: Projection, vectors: Vectors, _: Path) -> Vectors:
    given = pytest.importorskip("torch", reason="torch is not installed").tensor(vectors)
    return np.asarray(projection.torch_module()(given))


def faiss(projection: Projection, vectors: Vectors, _: Path) -> Vectors:
    """Of a vector with nothing left FAISS makes noise; so the row of zeros is not compared."""
    pytest.importorskip("faiss", reason="faiss is not installed")
    erased = vectors
    for step in projection.faiss_transform():
        erased = step.apply(erased)
    erased[-1] = 0
    return erased


FORMS: dict[str, Callable[[Projection, Vectors, Path], Vectors]] = {
    form.__name__: form for form in (python, python_one_by_one, command_file, command_folder, onnx, torch, faiss)
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("on_unit", [True, False], ids=["fitted on unit vectors", "fitted on vectors as they are"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_form_releases_the_same_vectors(kind: str, on_unit: bool, form: str, tmp_path: Path) -> None:
    projection = fitted(kind, on_unit)
    require_by_hand(FORMS[form](projection, given().copy(), tmp_path), projection, given())


@pytest.mark.parametrize("form", [form for form in FORMS if form != "faiss"])
@pytest.mark.parametrize("kind", [GATED + kind for kind in ("isp", "leace", "keeper", "pca", "random")])
def test_behind_a_face_gate_every_form_releases_the_same_vectors(kind: str, form: str, tmp_path: Path) -> None:
    projection = fitted(kind, True)
    require_by_hand(FORMS[form](projection, given().copy(), tmp_path), projection, given())
    ungated = fitted(kind.removeprefix(GATED), True).in_same_dimension()
    unchanged = np.abs(by_hand(projection, given()) - ungated.apply(given())).max(axis=1)
    assert 10 < np.count_nonzero(unchanged > 0.01) < 30, "a gate that lets some rows pass and some not"


def test_a_faiss_transform_behind_a_gate_is_refused_with_the_reason() -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    with refused("projection", "faiss_transform"):
        fitted("gated isp", True).faiss_transform()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    ("kind", "on_unit"),
    [
        ("isp", True),
        ("isp", False),
        ("leace", True),
        ("leace", False),
        ("gated isp", True),
        (KEEPER, True),
        (IN_SAME_DIMENSION, True),
    ],
)
def test_every_store_holds_the_same_vectors(kind: str, on_unit: bool, store: str, tmp_path: Path) -> None:
    projection, vectors = fitted(kind, on_unit, STORE_DIM), given(STORE_DIM)
    case = importlib.import_module(f"tests.stores.cases_{store}").MAKERS[STORES[store]](tmp_path)
    ids = case.fill(vectors)
    sanitise_store(projection, case.open())
    held = case.read()
    require_by_hand(np.array([held[one] for one in ids]), projection, vectors)


def test_what_is_compared_can_tell_forms_apart() -> None:
    """With means that matter: of vectors that are scaled first and that are not, different ones come out."""
    for kind in ("leace", "utility-pca", "utility-leace"):
        projection, vectors = fitted(kind, True), given()
        assert projection.mean is not None
        scaled_too_late = (
            vectors - (vectors - projection.mean) @ np.asarray(projection.readers) @ projection.directions.T
        )
        lengths = np.linalg.norm(scaled_too_late, axis=1, keepdims=True)
        assert np.abs(scaled_too_late / lengths - by_hand(projection, vectors))[:-1].max() > 0.01


def require_by_hand(erased: Vectors, projection: Projection, vectors: Vectors) -> None:
    wanted = by_hand(projection, vectors)
    half = len(vectors) // 2
    assert erased.dtype == np.float32
    assert np.abs(erased[:half] - wanted[:half]).max() < 2e-6, "vectors of unit length"
    assert np.abs(erased[half:-1] - wanted[half:-1]).max() < 2e-6, "vectors of other lengths"
    assert not erased[-1].any(), "a zero vector must stay zero"
