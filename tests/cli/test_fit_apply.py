"""If these fail, ``unface fit`` and ``unface apply`` do something else than they print, or fail in more than a line."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.command import Done, unface
from unface import Protocol, audit, make_identities, write_embeddings
from unface.auditing import fit_certified
from unface.data import EmbeddingSet, Space, read_embeddings
from unface.erase import Projection

PEOPLE = make_identities(40, 5, 16, rank=3, between=3.0, seed=3)


def line_of(done: Done) -> str:
    """A refusal without its beginning."""
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("unface: ")
    assert done.err.endswith("\n")
    assert len(done.err.splitlines()) == 1
    return done.err.removeprefix("unface: ").removesuffix("\n")


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
    told = line_of(unface("fit", faces, "--out", fitted, "--rank", "2"))
    assert told == f"{fitted}: exists already; choose another --out or pass --force"
    assert fitted.read_bytes() == before
    assert unface("apply", fitted, faces, tmp_path / "out", "--quiet").code == 0
    told = line_of(unface("apply", fitted, faces, tmp_path / "out"))
    assert told == f"{tmp_path / 'out'}: exists already; choose another OUT or pass --force"
    assert unface("apply", fitted, faces, tmp_path / "out", "--quiet", "--force").code == 0
    assert unface("fit", faces, "--out", fitted, "--rank", "2", "--force", "--quiet").code == 0
    assert Projection.load(fitted).rank == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--rank 17", "isp: rank 17 with 16 dimensions; expected 0 to 16"),
        ("--hold-out 0.75 --rank 10", "isp: rank 10 with 10 identities; expected at most 9"),
        ("--rank 3 --energy 0.5", "--rank, --energy and --target each set how many dimensions are removed; give one"),
        ("--energy 2", "isp: energy 2; expected a share of more than 0 and at most 1"),
        ("--target 5", "target '5'; expected a TAR and a FAR between 0 and 1, such as 0.05@1e-4"),
        (
            "--target 0.05@1e-9",
            "faces.parquet: FAR 1e-9 needs at least 77,464 people with 5 pictures each; this set has 40. "
            "Use --target 0.05@0.01 or add people",
        ),
        ("--eraser utility-pca", "eraser 'utility-pca' spares a task; give vectors of that task as --spare"),
        (
            "--identity-column who",
            "faces.parquet: no column 'who'; there is 'id', 'identity', 'vector', 'place': name yours with "
            "--identity-column",
        ),
        (
            "--hold-out 0.05",
            "certificate: 2 identities with two images; at least 4 are needed; raise --hold-out, or use 0 for no "
            "certificate",
        ),
    ],
)
def test_what_cannot_be_fitted_is_one_line_and_no_file(
    faces: Path, tmp_path: Path, options: str, sentence: str
) -> None:
    assert line_of(unface("fit", faces, "--out", tmp_path / "p", *options.split())) == sentence
    assert [path.name for path in tmp_path.iterdir()] == ["faces.parquet"]


def test_unlabelled_data_cannot_be_fitted_on(faces: Path, tmp_path: Path) -> None:
    pq.write_table(pq.read_table(faces).drop(["identity"]), tmp_path / "bare.parquet")
    told = line_of(unface("fit", tmp_path / "bare.parquet", "--out", tmp_path / "p"))
    assert (
        told
        == "bare.parquet: no column 'identity'; there is 'id', 'vector', 'place': name yours with --identity-column"
    )


def test_there_must_be_a_folder_to_write_to(faces: Path, fitted: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "out"
    told = f"{nowhere}: there is no folder {nowhere.parent}; make it first"
    assert line_of(unface("fit", faces, "--out", nowhere)) == told
    assert line_of(unface("apply", fitted, faces, nowhere)) == told
    assert line_of(unface("apply", fitted, faces, tmp_path)) == f"{tmp_path}: is a folder; OUT takes a file"


def test_what_cannot_be_applied_is_one_line_and_no_file(faces: Path, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    clip = EmbeddingSet.from_arrays(PEOPLE.vectors, PEOPLE.identities, space=Space("clip", None, 16, normalised=False))
    write_embeddings(clip, tmp_path / "clip.parquet")
    assert line_of(unface("apply", fitted, tmp_path / "clip.parquet", out)) == (
        "projection: fitted in 'arcface', 16 dimensions, normalised; these vectors are in 'clip', 16 dimensions, not "
        "normalised; fit one for them"
    )
    assert line_of(unface("apply", faces, faces, out)).startswith("faces.parquet: not a whole .safetensors file (")
    assert line_of(unface("apply", tmp_path / "none", faces, out)) == "none: no such file or directory"
    assert line_of(unface("apply", fitted, tmp_path / "none", out)) == "none: no such file or directory"
    assert not out.exists()


def test_fit_never_writes_over_what_it_reads_or_over_itself(faces: Path, tmp_path: Path) -> None:
    before = faces.read_bytes()
    assert "is named twice" in line_of(unface("fit", faces, "--out", faces, "--rank", "3", "--force"))
    assert faces.read_bytes() == before
    out = tmp_path / "p.safetensors"
    assert "is named twice" in line_of(unface("fit", faces, "--out", out, "--onnx", out, "--rank", "3"))
    assert not out.exists()


def test_fit_refuses_a_task_that_its_method_would_not_spare(faces: Path, tmp_path: Path) -> None:
    done = unface("fit", faces, "--out", tmp_path / "p.safetensors", "--rank", "3", "--spare", faces)
    assert line_of(done).startswith("isp: does not preserve a task; leave --spare out, or use --eraser utility-pca")


def test_apply_refuses_to_call_parquet_npz(faces: Path, fitted: Path, tmp_path: Path) -> None:
    told = line_of(unface("apply", fitted, faces, tmp_path / "out.npz"))
    assert told == "out.npz: faces.parquet is parquet, and so is what is written; name it so"
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("name", ["report.html", "suspects.csv", "exposed.csv"])
def test_an_audit_leaves_files_alone_that_are_not_its_own(faces: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    mine = tmp_path / "out" / name
    mine.write_text("mine")
    assert line_of(unface("audit", faces, "--out", tmp_path / "out")) == (
        f"{mine}: exists already; choose another --out or pass --force"
    )
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_apply_never_writes_over_what_it_reads(faces: Path, fitted: Path, force: tuple[str, ...]) -> None:
    before = faces.read_bytes(), fitted.read_bytes()
    for read in (faces, fitted):
        told = f"{read}: is named twice; what is written must be a file of its own"
        assert line_of(unface("apply", fitted, faces, read, *force)) == told
    assert (faces.read_bytes(), fitted.read_bytes()) == before


def test_a_file_is_not_written_under_the_name_of_a_folder(faces: Path, fitted: Path, tmp_path: Path) -> None:
    told = line_of(unface("apply", fitted, faces, f"{tmp_path}/clean/"))
    assert told == f"{tmp_path}/clean/: is the name of a folder; faces.parquet is one file, so name one"
    assert not (tmp_path / "clean").exists()


def test_a_loop_of_links_is_one_line(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    told = "loop: cannot be opened (Too many levels of symbolic links)"
    assert line_of(unface("fit", tmp_path / "loop", "--out", tmp_path / "q")) == told
    assert line_of(unface("apply", fitted, tmp_path / "loop", tmp_path / "out.parquet")) == told


def test_a_folder_that_may_not_be_written_is_told_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    told = f"{tmp_path / 'p'}: cannot be written, {tmp_path} does not allow it; choose another --out"
    assert line_of(unface("fit", tmp_path / "none", "--out", tmp_path / "p")) == told


def test_without_onnx_nothing_is_fitted_for_it(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.cli.fit.find_spec", lambda name: None)
    done = unface("fit", faces, "--out", tmp_path / "p", "--onnx", tmp_path / "p.onnx")
    assert line_of(done) == "--onnx: needs onnx, not installed; run pip install 'unface[onnx]'"
    assert [path.name for path in tmp_path.iterdir()] == ["faces.parquet"]


def test_the_file_to_write_may_be_named_as_everywhere_else(faces: Path, fitted: Path, tmp_path: Path) -> None:
    assert unface("apply", fitted, faces, "--out", tmp_path / "named.parquet").code == 0
    assert unface("apply", fitted, faces, tmp_path / "third.parquet").code == 0
    assert pq.read_table(tmp_path / "named.parquet").equals(pq.read_table(tmp_path / "third.parquet"))
    twice = unface("apply", fitted, faces, tmp_path / "a.parquet", "--out", tmp_path / "b.parquet")
    assert line_of(twice) == "--out: OUT is given already; name it once"
    beside = unface("apply", fitted, "--store", "faiss:x.faiss", "--out", tmp_path / "b.parquet")
    assert line_of(beside) == "--store: replaces vectors where they are; leave out SRC, OUT and --ray"
    assert not (tmp_path / "a.parquet").exists()
