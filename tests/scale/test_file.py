"""If these fail, applying a projection to a file loses what else was in it, or releases vectors as they were."""

import json
from dataclasses import replace
from pathlib import Path
from typing import IO

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
from unface.output.place import Sink
from unface.scale import sanitise_file


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
