"""If these fail, applying a projection to a file loses what else was in it, or releases vectors as they were."""

import json
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.stored import ARCFACE, DIM, PEOPLE, UNNAMED, oblique, projection, table, vectors_in, written
from unface import UnfaceError
from unface.data import Space
from unface.data.embeddings import METADATA_KEY
from unface.erase import Projection
from unface.erase.file import to_bytes
from unface.erase.gate import Gate
from unface.output.place import Sink
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.scale import released_space, sanitise_directory, sanitise_file
from unface.scale.part import PartJob, ReadBackJob, read_back
from unface.scale.released import is_named


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(table(), tmp_path / "faces.parquet")


def attempt(source: Path, out: Path, by: Projection | None = None, vector: str = "vector") -> None:
    """Write one file; where that is refused, nothing was written."""
    before = sorted(path.name for path in out.parent.iterdir())
    try:
        sanitise_file(by or projection(), source, out, vector=vector)
    except UnfaceError:
        assert sorted(path.name for path in out.parent.iterdir()) == before
        raise


def test_every_other_column_and_the_order_of_rows_and_columns_stay(source: Path, tmp_path: Path) -> None:
    sanitise_file(projection(), source, tmp_path / "out.parquet")
    before, after = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == before.column_names
    assert after.drop(["vector"]).equals(before.drop(["vector"]))
    assert after.drop(["vector"]).schema.equals(before.drop(["vector"]).schema)


def test_many_row_groups_and_unnamed_list_types_come_through_too(tmp_path: Path) -> None:
    """As pandas writes vectors: lists of any length, in more than one chunk."""
    given = table()
    lists = pa.array(PEOPLE.vectors.tolist(), pa.list_(pa.float32()))
    given = given.set_column(given.column_names.index("vector"), "vector", lists)
    path = written(given, tmp_path / "faces.parquet", row_group_size=17)
    sanitise_file(projection(), path, tmp_path / "out.parquet")
    assert np.array_equal(vectors_in(tmp_path / "out.parquet"), projection().apply(PEOPLE.unit().vectors))
    assert pq.read_table(tmp_path / "out.parquet").column("id").equals(given.column("id"))


def test_vectors_are_those_of_the_projection_on_unit_vectors(source: Path, tmp_path: Path) -> None:
    done = sanitise_file(projection(), source, tmp_path / "out.parquet")
    found = vectors_in(tmp_path / "out.parquet")
    assert found.dtype == np.float32
    assert np.array_equal(found, projection().apply(PEOPLE.unit().vectors))
    assert (done.where, done.rows, done.dim, done.kind, done.rank) == ("out.parquet", len(PEOPLE), DIM, "isp", 5)
    assert (done.degenerate, done.named_space, done.verified) == (0, True, None)
    assert done.sentence() == "out.parquet: 120 vectors, 5 of 16 dimensions removed (isp)"


def test_the_scale_of_the_given_vectors_does_not_matter(tmp_path: Path) -> None:
    """The projection was fitted on unit vectors, so it is applied to unit vectors."""
    double = written(table(PEOPLE.vectors * np.float32(4)), tmp_path / "faces.parquet")
    sanitise_file(projection(), double, tmp_path / "out.parquet")
    assert np.array_equal(vectors_in(tmp_path / "out.parquet"), projection().apply(PEOPLE.unit().vectors))


@pytest.mark.parametrize(
    ("stored", "expected"), [(np.float16, np.float16), (np.float32, np.float32), (np.float64, np.float32)]
)
def test_half_precision_stays_half_and_all_else_becomes_single(
    tmp_path: Path, stored: type[np.floating], expected: type[np.floating]
) -> None:
    path = written(table(PEOPLE.vectors.astype(stored)), tmp_path / "faces.parquet")
    sanitise_file(projection(), path, tmp_path / "out.parquet")
    found = vectors_in(tmp_path / "out.parquet")
    assert found.dtype == expected
    assert np.allclose(found, projection().apply(PEOPLE.unit().vectors), atol=2e-3)


def test_the_metadata_names_a_space_of_its_own_and_keeps_what_else_was_there(source: Path, tmp_path: Path) -> None:
    sanitise_file(projection(), source, tmp_path / "out.parquet")
    metadata = pq.read_schema(tmp_path / "out.parquet").metadata
    assert metadata[b"theirs"] == b"\x00\xff kept"
    assert json.loads(metadata[METADATA_KEY]) == {
        "encoder": "arcface after isp 5",
        "weights_sha256": projection().sha256,
        "dim": DIM,
        "normalised": True,
    }


@pytest.mark.parametrize("space", [ARCFACE, UNNAMED, None], ids=["named", "unnamed", "silent"])
def test_what_was_erased_once_is_not_erased_again(tmp_path: Path, space: Space | None) -> None:
    path = written(table(space=space), tmp_path / "faces.parquet")
    by = projection(space or UNNAMED)
    done = sanitise_file(by, path, tmp_path / "once.parquet")
    with refused("apply", "projection"):
        attempt(tmp_path / "once.parquet", tmp_path / "twice.parquet", by)
    another = replace(by, kind="sal")
    with refused("projection", "projection"):
        attempt(tmp_path / "once.parquet", tmp_path / "twice.parquet", another)
    assert done.named_space == (space is ARCFACE)
    assert ("could not be checked" in done.sentence()) == (space is not ARCFACE)


def test_vectors_may_be_in_a_column_of_another_name(source: Path, tmp_path: Path) -> None:
    given = pq.read_table(source)
    names = ["emb" if name == "vector" else name for name in given.column_names]
    path = written(given.rename_columns(names), tmp_path / "renamed.parquet")
    sanitise_file(projection(), path, tmp_path / "out.parquet", vector="emb")
    assert pq.read_table(tmp_path / "out.parquet").column_names == names
    found = vectors_in(tmp_path / "out.parquet", "emb")
    assert np.array_equal(found, projection().apply(PEOPLE.unit().vectors))


def test_zero_vectors_stay_zero_and_are_counted_also_under_a_projection_with_a_mean(tmp_path: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[[0, 11]] = 0
    path = written(table(vectors, UNNAMED), tmp_path / "faces.parquet")
    for by in (projection(UNNAMED), oblique()):
        done = sanitise_file(by, path, tmp_path / "out.parquet")
        found = vectors_in(tmp_path / "out.parquet")
        assert np.flatnonzero(~found.any(axis=1)).tolist() == [0, 11]
        assert done.degenerate == 2
        assert "; 2 have nothing left and are zero" in done.sentence()


def test_a_file_of_no_rows_stays_one(tmp_path: Path) -> None:
    path = written(table().slice(0, 0), tmp_path / "faces.parquet")
    assert sanitise_file(projection(), path, tmp_path / "out.parquet").rows == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_a_write_that_fails_half_way_leaves_neither_half_nor_a_new_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(table(), tmp_path / "out.parquet")
    before = old.read_bytes()

    class Full:
        """Of a disk on which nothing more fits."""

        def __init__(self, file: IO[bytes]) -> None:
            self.file = file

        def write(self, data: bytes) -> None:
            self.file.write(b"half of it")
            raise OSError(28, "No space left on device")

    # Full is a file as far as it is used.
    monkeypatch.setattr("unface.scale.sanitise.Sink", lambda file, called: Sink(Full(file), called))  # type: ignore[arg-type]
    with refused("apply", "out.parquet", "No space left on device"):
        attempt(source, old)
    with refused("apply", "new.parquet", "No space left on device"):
        attempt(source, tmp_path / "new.parquet")
    assert old.read_bytes() == before


def test_tensors_of_one_dimension_are_erased_like_lists(tmp_path: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(PEOPLE.vectors)
    given = table().set_column(table().column_names.index("vector"), "vector", tensors)
    path = written(given, tmp_path / "faces.parquet", row_group_size=17)
    sanitise_file(projection(), path, tmp_path / "out.parquet", verify=True)
    assert np.array_equal(vectors_in(tmp_path / "out.parquet"), projection().apply(PEOPLE.unit().vectors))


def test_a_file_that_another_run_wrote_meanwhile_is_not_replaced(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither existed when the two runs began."""
    from unface.output import write

    out, sync = tmp_path / "out.parquet", write.sync

    def other_first(path: Path) -> None:
        if not out.exists():
            out.write_bytes(b"theirs")
        sync(path)

    monkeypatch.setattr(write, "sync", other_first)
    with refused("output", "out.parquet"):
        sanitise_file(projection(), source, out, replace=False)
    assert out.read_bytes() == b"theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["faces.parquet", "out.parquet"]
    monkeypatch.undo()
    sanitise_file(projection(), source, out)
    assert out.read_bytes() != b"theirs"


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


def gated() -> Projection:
    """What lies on one side of a plane, which is about a half of the people, is taken for no face."""
    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    return replace(projection(), gate=Gate(np.eye(DIM)[0], 0.0, certificate))


SPARED = int((PEOPLE.vectors[:, 0] <= 0).sum())


def test_a_folder_s_receipt_counts_what_the_gate_left(tmp_path: Path) -> None:
    assert 20 < SPARED < len(PEOPLE.vectors) - 20
    (tmp_path / "raw").mkdir()
    for number in range(3):
        written(table(), tmp_path / "raw" / f"{number}.parquet")
    receipt = sanitise_directory(gated(), tmp_path / "raw", tmp_path / "out", verify=True)
    assert receipt.not_faces == 3 * SPARED
    unit = PEOPLE.unit().vectors
    kept = np.abs(np.asarray(vectors_in(tmp_path / "out" / "0.parquet"), np.float32) - unit).max(axis=1) < 1e-6
    assert kept.sum() == SPARED
    assert sanitise_directory(projection(), tmp_path / "raw", tmp_path / "all").not_faces is None


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_a_file_s_receipt_counts_what_the_gate_left(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"raw.{ending}"
    if ending == "npz":
        np.savez(source, vectors=PEOPLE.vectors, identities=PEOPLE.identities)
    else:
        written(table(), source)
    assert sanitise_file(gated(), source, tmp_path / f"out.{ending}").not_faces == SPARED


def test_what_comes_out_is_a_space_of_its_own() -> None:
    by, sha = projection(), projection().sha256
    assert released_space(by, None) == Space("arcface after isp 5", sha, DIM, normalised=True)
    clip = Space("clip", None, DIM, normalised=False)
    assert released_space(by, clip) == Space("clip after isp 5", sha, DIM, normalised=True)
    nobody = projection(UNNAMED)
    assert released_space(nobody, None).encoder == "unknown encoder after isp 5"


def test_a_space_is_named_by_an_encoder_or_by_weights() -> None:
    assert not is_named(None)
    assert not is_named(UNNAMED)
    assert is_named(ARCFACE)
    assert is_named(Space("clip", None, DIM, normalised=False))
    assert is_named(Space(None, "ab" * 32, DIM, normalised=False))


BAD = [3, 40, 77]


@pytest.fixture
def source_bad_rows(tmp_path: Path) -> Path:
    """One NaN, one Inf, one null."""
    vectors: list[list[float] | None] = PEOPLE.vectors.tolist()
    vectors[3] = [np.nan] * len(PEOPLE.vectors[0])
    vectors[40] = [np.inf] * len(PEOPLE.vectors[0])
    vectors[77] = None
    given = table()
    at = given.column_names.index("vector")
    (tmp_path / "raw").mkdir()
    lists = pa.array(vectors, pa.list_(pa.float32(), len(PEOPLE.vectors[0])))
    return written(given.set_column(at, "vector", lists), tmp_path / "raw" / "a.parquet", row_group_size=30)


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("on_bad", ["drop", "null"])
def test_bad_rows_are_left_out_or_lose_their_vector_and_the_others_are_erased(
    source_bad_rows: Path, tmp_path: Path, on_bad: str, folder: bool
) -> None:
    out = tmp_path / "out"
    if folder:
        receipt = sanitise_directory(projection(), source_bad_rows.parent, out, verify=True, on_bad=on_bad)
    else:
        out.mkdir()
        receipt = sanitise_file(projection(), source_bad_rows, out / "a.parquet", verify=True, on_bad=on_bad)
    good = np.setdiff1d(np.arange(len(PEOPLE)), BAD)
    assert (receipt.rows, receipt.bad_rows, receipt.on_bad_rows) == (len(good), 3, on_bad)
    ending = "left out" if on_bad == "drop" else "written with a null in its place"
    assert f"; 3 rows with a null, NaN or Inf vector {ending}" in receipt.sentence()
    before, after = pq.read_table(source_bad_rows), pq.read_table(out / "a.parquet")
    if on_bad == "drop":
        before = before.take(pa.array(good))
    else:
        assert np.flatnonzero(after.column("vector").is_null()).tolist() == BAD
        after = after.take(pa.array(good))
        before = before.take(pa.array(good))
    assert after.drop(["vector"]).equals(before.drop(["vector"]))
    found = np.array(after.column("vector").to_pylist(), np.float32)
    assert np.array_equal(found, projection().apply(PEOPLE.unit().vectors[good]))


def test_a_row_that_was_not_bad_must_not_be_missing(source_bad_rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sanitise_directory(projection(), source_bad_rows.parent, out, on_bad="drop")
    job = PartJob(to_bytes(projection()), str(source_bad_rows.parent), str(out), "a.parquet", on_bad="drop")
    whole = pq.read_table(out / "a.parquet")
    for changed, complaint in ((whole.slice(1), "116"), (whole, "")):
        path = written(changed, out / "a.parquet")
        known = ReadBackJob(job, sha256(path.read_bytes()).hexdigest(), bad=3)
        if complaint:
            with refused("apply", "a.parquet", complaint, "117"):
                read_back(known)
        else:
            assert read_back(known).rows == 117


def test_a_run_is_not_continued_with_another_choice(source_bad_rows: Path, tmp_path: Path) -> None:
    broken = source_bad_rows.parent / "b.parquet"
    broken.write_bytes(b"PAR1")
    with refused("apply", "b.parquet"):
        sanitise_directory(projection(), source_bad_rows.parent, tmp_path / "out", on_bad="drop")
    for other in ("null", "fail"):
        with refused("output", "out"):
            sanitise_directory(projection(), source_bad_rows.parent, tmp_path / "out", on_bad=other)
