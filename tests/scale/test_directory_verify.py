"""If these fail, --verify passes an output that is not the erased copy of its source."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.scale.collection import collection, hashes
from tests.scale.stored import projection, table, written
from unface import UnfaceError
from unface.erase.file import to_bytes
from unface.scale import Receipt, sanitise_directory, sanitise_file
from unface.scale.part import PartJob
from unface.scale.place import place_at
from unface.scale.readback import ReadBackJob, _same, read_back


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


def told(source: Path, out: Path) -> str:
    """What reading one file back says, whatever its record says of its hash."""
    part = PartJob(to_bytes(projection()), str(source), str(out), "a.parquet")
    with pytest.raises(UnfaceError) as caught:
        read_back(ReadBackJob(part, place_at(out).sha256("a.parquet")))
    return str(caught.value)


def test_what_is_left_is_rounding_and_the_receipt_says_so(source: Path, tmp_path: Path) -> None:
    sanitise_directory(projection(), source, tmp_path / "clean", verify=True)
    receipt = Receipt.model_validate_json((tmp_path / "clean/_unface/receipt.json").read_text())
    assert receipt.verified is not None
    assert receipt.verified.rows == 120
    assert receipt.verified.largest_left < 1e-6
    assert receipt.verified.worst_length < 1e-6


def test_a_finished_output_can_be_verified_later_and_only_once(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    before = hashes(out)
    assert sanitise_directory(projection(), source, out, verify=True).verified is not None
    assert hashes(out) == before
    with pytest.raises(UnfaceError, match="is finished already"):
        sanitise_directory(projection(), source, out, verify=True)


def test_bytes_that_changed_after_they_were_written_are_seen(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    content = bytearray((out / "a.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (out / "a.parquet").write_bytes(content)
    with pytest.raises(UnfaceError, match=r"a\.parquet: was changed after it was written"):
        sanitise_directory(projection(), source, out, verify=True)


def swapped(content: pa.Table) -> pa.Table:
    return content.take(pa.array([1, 0, *range(2, len(content))]))


def one_null_less(content: pa.Table) -> pa.Table:
    index = content.column_names.index("price")
    return content.set_column(index, "price", content.column("price").fill_null(0))


def as_other_type(content: pa.Table) -> pa.Table:
    index = content.column_names.index("id")
    return content.set_column(index, "id", content.column("id").cast(pa.string()))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (swapped, "a.parquet: 'taken' differs from its source after row 0; run it again with --force"),
        (one_null_less, "a.parquet: 'price' differs from its source after row 0; run it again with --force"),
        (as_other_type, "a.parquet: 'id' differs from its source after row 0; run it again with --force"),
        (lambda content: content.slice(1), "a.parquet: 49 erased vectors, 50 expected; run it again"),
        (lambda content: content.drop(["tags"]), "a.parquet: its columns are not those of its source"),
    ],
)
def test_rows_and_columns_that_are_not_those_of_the_source_are_seen(
    source: Path, tmp_path: Path, change: Callable[[pa.Table], pa.Table], complaint: str
) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    written(change(pq.read_table(out / "a.parquet")), out / "a.parquet")
    assert told(source, out).startswith(complaint)


def test_raw_vectors_are_seen(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean"
    out.mkdir()
    written(pq.read_table(source / "a.parquet"), out / "a.parquet")
    assert "is left along a removed direction" in told(source, out)


def test_nan_in_other_columns_is_equal_to_itself(tmp_path: Path) -> None:
    given = table()
    prices = pa.array(np.where(np.arange(len(given)) % 2, np.nan, 1.0))
    nested = pa.array([[{"x": float("nan")}] if row % 3 else None for row in range(len(given))])
    mapped = pa.array([[("x", float("nan"))]] * len(given), pa.map_(pa.string(), pa.float64()))
    given = given.append_column("maybe", prices).append_column("deep", nested).append_column("mapped", mapped)
    (tmp_path / "raw").mkdir()
    written(given, tmp_path / "raw" / "a.parquet", row_group_size=31)
    receipt = sanitise_directory(projection(), tmp_path / "raw", tmp_path / "clean", verify=True)
    assert receipt.verified is not None


def test_no_value_is_not_a_value_of_nothing() -> None:
    kind = pa.struct([("x", pa.float32())])
    assert not _same(pa.array([None], kind), pa.array([{"x": None}], kind))
    assert not _same(pa.array([None], pa.list_(kind)), pa.array([[]], pa.list_(kind)))
    assert not _same(pa.array([1.0], pa.float32()), pa.array([1.0], pa.float64()))
    mapping = pa.map_(pa.string(), pa.float64())
    assert not _same(pa.array([[("x", 1.0)]], mapping), pa.array([[("x", 2.0)]], mapping))
    assert not _same(pa.array([[("x", 1.0)]], mapping), pa.array([[("y", 1.0)]], mapping))


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_one_file_can_be_verified_too(tmp_path: Path, kind: str) -> None:
    from tests.scale.stored import PEOPLE

    path = tmp_path / f"faces.{kind}"
    if kind == "npz":
        np.savez(path, vectors=PEOPLE.vectors)
    else:
        written(table(), path)
    done = sanitise_file(projection(), path, tmp_path / f"out.{kind}", verify=True)
    assert done.verified is not None
    assert done.verified.rows == 120
    assert "; read back: at most " in done.sentence()
