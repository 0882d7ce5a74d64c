"""If these fail, ``unface fit`` and ``unface apply`` do something else than they print, or fail in more than a line."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.kit.command import unface
from tests.refusals.table import require_refusal
from unface import Protocol, audit, make_identities, write_embeddings
from unface.auditing import fit_certified
from unface.data import EmbeddingSet, Space, read_embeddings
from unface.erase import Projection

PEOPLE = make_identities(40, 5, 16, rank=3, between=3.0, seed=3)


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    names = [PEOPLE.names[code] for code in PEOPLE.identities]
    space = Space("arcface", None, 16, normalised=False)
    labels = {"place": [f"place {row % 3}" for row in range(len(PEOPLE))]}
    people = EmbeddingSet.from_arrays(PEOPLE.vectors, names, ids=PEOPLE.ids, labels=labels, space=space)
    write_embeddings(people, tmp_path / "faces.parquet")
    return tmp_path / "faces.parquet"


@pytest.fixture
def fitted(faces: Path, tmp_path: Path) -> Path:
    done = unface("fit", faces, "--out", tmp_path / "p.safetensors", "--rank", "3", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    return tmp_path / "p.safetensors"


def test_fit_saves_what_the_library_fits_and_prints_its_certificate(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    done = unface("fit", faces, "--out", out, "--rank", "3", "--hold-out", "0.3", "--seed", "4")
    assert (done.code, done.err) == (0, "")
    expected = fit_certified(faces, rank=3, hold_out=0.3, seed=4)
    assert Projection.load(out).sha256 == expected.sha256
    assert expected.certificate is not None
    assert done.out.startswith(f"{out}: isp, 3 of 16 dimensions removed, 'arcface', 16 dimensions, normalised\n")
    assert "on 12 identities it was not fitted on: " in done.out
    assert f"{expected.certificate.fisher_left.value:.2f} [" in done.out
    assert f"this covers {expected.certificate.covers}\n" in done.out


def test_fit_without_a_hold_out_says_that_nothing_is_certified(faces: Path, tmp_path: Path) -> None:
    done = unface("fit", faces, "--out", tmp_path / "p", "--eraser", "leace", "--hold-out", "0")
    assert done.out.splitlines() == [
        f"{tmp_path / 'p'}: leace, 6 of 16 dimensions removed, 'arcface', 16 dimensions, normalised",
        "not certified: no identities were held out",
    ]


def test_fit_reads_energy_columns_and_a_target(tmp_path: Path) -> None:
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    np.savez(tmp_path / "faces.npz", emb=PEOPLE.vectors, who=names)
    columns = ["--identity-column", "who", "--vector-column", "emb", "--quiet"]
    for number, rule in enumerate((["--energy", "0.5"], ["--target", "0.5@0.05", "--threads", "1"])):
        out = tmp_path / f"p{number}"
        done = unface("fit", tmp_path / "faces.npz", "--out", out, *rule, *columns)
        assert (done.code, done.out, done.err) == (0, "", "")
        rank: float | str = 0.5 if number == 0 else "0.5@0.05"
        people = read_embeddings(tmp_path / "faces.npz", vector="emb", identity="who")
        assert Projection.load(out).sha256 == fit_certified(people, rank=rank).sha256


def test_fit_writes_an_onnx_model_too(faces: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    out, model = tmp_path / "p", tmp_path / "p.onnx"
    assert unface("fit", faces, "--out", out, "--rank", "3", "--onnx", model).code == 0
    unit = PEOPLE.unit().vectors
    (erased,) = runtime.InferenceSession(model.read_bytes()).run(None, {"vectors": unit})
    assert np.allclose(erased, Projection.load(out).apply(unit), atol=1e-5)


def test_apply_erases_every_vector_and_passes_the_rest_through(faces: Path, fitted: Path, tmp_path: Path) -> None:
    done = unface("apply", fitted, faces, tmp_path / "out.parquet")
    assert (done.code, done.err) == (0, "")
    assert done.out == "out.parquet: 200 vectors, 3 of 16 dimensions removed (isp)\n"
    before, after = pq.read_table(faces), pq.read_table(tmp_path / "out.parquet")
    assert after.drop(["vector"]).equals(before.drop(["vector"]))
    found = np.array(after.column("vector").to_pylist(), np.float32)
    assert np.array_equal(found, Projection.load(fitted).apply(PEOPLE.unit().vectors))


def test_what_apply_wrote_leaks_what_the_audit_said_it_would(faces: Path, fitted: Path, tmp_path: Path) -> None:
    """The two ways to the same vectors: erased in a file and audited raw, or audited with the projection."""
    unface("apply", fitted, faces, tmp_path / "out.parquet", "--quiet")
    protocol = Protocol(far=0.05, k=2, probe=("cosine", "lda"), seeds=1, bootstraps=100, threads=1)
    released = audit(tmp_path / "out.parquet", eraser=(), parts=(), protocol=protocol)
    ready = audit(faces, projections=[Projection.load(fitted)], parts=(), protocol=protocol)
    foreseen = ready.space("projection")
    assert foreseen is not None
    found = [(point.probe, point.tar and point.tar.numerator) for point in released.raw.points]
    assert found == [(point.probe, point.tar and point.tar.numerator) for point in foreseen.points]


def test_apply_takes_files_without_identities_and_other_columns(faces: Path, fitted: Path, tmp_path: Path) -> None:
    bare = pq.read_table(faces).select(["vector"]).rename_columns(["emb"])
    pq.write_table(bare, tmp_path / "bare.parquet")
    done = unface("apply", fitted, tmp_path / "bare.parquet", tmp_path / "out", "--vector-column", "emb", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert pq.read_table(tmp_path / "out").column_names == ["emb"]


def test_finished_files_are_kept_unless_forced(faces: Path, fitted: Path, tmp_path: Path) -> None:
    before = fitted.read_bytes()
    require_refusal(unface("fit", faces, "--out", fitted, "--rank", "2"), "output", str(fitted), "--force")
    assert fitted.read_bytes() == before
    assert unface("apply", fitted, faces, tmp_path / "out", "--quiet").code == 0
    require_refusal(unface("apply", fitted, faces, tmp_path / "out"), "output", str(tmp_path / "out"), "--force")
    assert unface("apply", fitted, faces, tmp_path / "out", "--quiet", "--force").code == 0
    assert unface("fit", faces, "--out", fitted, "--rank", "2", "--force", "--quiet").code == 0
    assert Projection.load(fitted).rank == 2


def test_a_folder_that_may_not_be_written_is_told_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    require_refusal(unface("fit", tmp_path / "none", "--out", tmp_path / "p"), "output", str(tmp_path / "p"))


def test_without_onnx_nothing_is_fitted_for_it(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.cli.fit.find_spec", lambda name: None)
    done = unface("fit", faces, "--out", tmp_path / "p", "--onnx", tmp_path / "p.onnx")
    require_refusal(done, "settings", "--onnx", "unface[onnx]")
    assert [path.name for path in tmp_path.iterdir()] == ["faces.parquet"]


def test_the_file_to_write_may_be_named_as_everywhere_else(faces: Path, fitted: Path, tmp_path: Path) -> None:
    assert unface("apply", fitted, faces, "--out", tmp_path / "named.parquet").code == 0
    assert unface("apply", fitted, faces, tmp_path / "third.parquet").code == 0
    assert pq.read_table(tmp_path / "named.parquet").equals(pq.read_table(tmp_path / "third.parquet"))
