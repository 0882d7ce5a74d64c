"""If these fail, fit and apply on the command line do something else than the library, or than they say."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.kit.command import Done, unface
from tests.refusals.table import require_refusal
from tests.scale.collection import hashes
from unface import ISP, Protocol, audit, make_identities, write_embeddings
from unface.auditing import fit_certified
from unface.data import EmbeddingSet, Space, read_embeddings
from unface.erase import Projection, fit_projection

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


IN_FOLDER = make_identities(40, 4, 16, rank=3, between=2.0, seed=3)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    (folder / "more").mkdir(parents=True)
    half = IN_FOLDER.identities < 20
    write_embeddings(IN_FOLDER.take(half), folder / "a.parquet")
    write_embeddings(IN_FOLDER.take(~half), folder / "more" / "b.parquet")
    return folder


def test_a_folder_is_fitted_sanitised_verified_and_then_finished(raw: Path, tmp_path: Path) -> None:
    out, clean = tmp_path / "p.safetensors", tmp_path / "clean"
    assert unface("fit", raw, "--out", out, "--rank", "3").code == 0
    assert Projection.load(out).certificate is not None
    done = unface("apply", out, raw, clean, "--verify", "--threads", "2")
    assert done.code == 0
    assert done.out.startswith("clean: 160 vectors, 3 of 16 dimensions removed (isp); read back: at most ")
    assert sorted(hashes(clean)) == ["a.parquet", "more/b.parquet"]
    assert json.loads((clean / "_unface/receipt.json").read_text())["verified"]["rows"] == 160
    require_refusal(unface("apply", out, raw, clean), "apply", "clean", "--force")
    quiet = unface("apply", out, raw, clean, "--force", "--quiet")
    assert (quiet.code, quiet.out) == (0, "")


def test_urls_are_taken_by_both(raw: Path, tmp_path: Path) -> None:
    for source, name in ((raw.as_uri(), "url"), (str(raw), "folder")):
        out = tmp_path / f"{name}.safetensors"
        assert unface("fit", source, "--out", out, "--rank", "3").code == 0
        assert unface("apply", out, source, (tmp_path / name).as_uri()).code == 0
    assert hashes(tmp_path / "url") == hashes(tmp_path / "folder")


def test_what_needs_all_vectors_is_not_fitted_on_a_url(raw: Path, tmp_path: Path) -> None:
    done = unface("fit", raw.as_uri(), "--out", tmp_path / "p", "--eraser", "rlace", "--rank", "3")
    require_refusal(done, "settings", "rlace")
    for source in (raw, raw.as_uri()):
        done = unface("fit", source, "--out", tmp_path / "p", "--eraser", "rlac")
        require_refusal(done, "name", None, "'rlac'")
    done = unface("fit", raw.as_uri(), "--out", tmp_path / "p", "--target", "0.05@1e-2")
    require_refusal(done, "settings", "isp")


def test_files_in_folders_are_read_into_memory_too(raw: Path, tmp_path: Path) -> None:
    assert len(read_embeddings(raw)) == 160
    assert unface("fit", raw, "--out", tmp_path / "p", "--eraser", "rlace", "--rank", "3").code == 0


def test_the_advice_about_a_bad_row_works_when_it_is_followed(raw: Path, tmp_path: Path) -> None:
    out, clean = tmp_path / "p.safetensors", tmp_path / "clean"
    assert unface("fit", raw, "--out", out, "--rank", "3").code == 0
    (raw / "more" / "b.parquet").unlink()
    table = pq.read_table(raw / "a.parquet")
    vectors = pa.array([None, *table["vector"].to_pylist()[1:]], table.schema.field("vector").type)
    pq.write_table(table.set_column(table.schema.get_field_index("vector"), "vector", vectors), raw / "a.parquet")
    require_refusal(unface("apply", out, raw, clean), "apply", "a.parquet", "--bad-rows drop")
    done = unface("apply", out, raw, clean, "--bad-rows", "drop")
    assert (done.code, pq.read_table(clean / "a.parquet").num_rows) == (0, 79)


STORED = make_identities(30, 4, 16, rank=3, between=3.0, seed=3).unit()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fit_projection(ISP(5), STORED).save("p.safetensors")
    np.save("faces.npy", STORED.vectors)
    return tmp_path


def run(*arguments: str) -> Done:
    return unface("apply", "p.safetensors", *arguments)


def stored() -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.load("faces.npy")
    return found


def test_the_vectors_of_a_store_are_replaced_and_the_receipt_tells(folder: Path) -> None:
    done = run("--store", "npy:faces.npy", "--receipt", "receipt.json")
    assert (done.code, done.err) == (0, "")
    assert "120 vectors, 5 of 16 dimensions removed (isp); read back" in done.out
    assert "the same command with --purge removes those" in done.out
    assert np.allclose(stored(), fit_projection(ISP(5), STORED).apply(STORED.vectors), atol=1e-6)
    receipt = json.loads((folder / "receipt.json").read_text())
    assert (receipt["rows"], receipt["raw_purged"], receipt["verified"]["rows"]) == (120, False, 120)
    raw = STORED.vectors[7].tobytes()
    assert [file.name for file in folder.iterdir() if raw in file.read_bytes()] == ["faces.npy.raw"]
    done = run("--store", "npy:faces.npy", "--purge")
    assert (done.code, done.err) == (0, "")
    assert "--purge" not in done.out
    assert not [file.name for file in folder.iterdir() if raw in file.read_bytes()]


@pytest.mark.usefixtures("folder")
def test_nothing_is_printed_of_a_store_where_quiet_is_asked_for() -> None:
    done = run("--store", "npy:faces.npy", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.usefixtures("folder")
def test_force_writes_over_a_receipt_of_before() -> None:
    assert run("--store", "npy:faces.npy", "--receipt", "receipt.json").code == 0
    assert run("--store", "npy:faces.npy", "--receipt", "receipt.json", "--purge", "--force").code == 0
    assert json.loads(Path("receipt.json").read_text())["raw_purged"]
