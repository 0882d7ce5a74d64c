"""If these fail, --verify passes an output that is not the erased copy of its source."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.collection import collection, hashes
from tests.scale.stored import PEOPLE, projection, table, written
from unface.erase.file import to_bytes
from unface.erase.kernel import ErasedRows, Kernel
from unface.output.place import place_at
from unface.scale import Receipt, sanitise_directory, sanitise_file
from unface.scale.part import PartJob, ReadBackJob, _aligned, _same, read_back


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


def attempt(source: Path, out: Path) -> None:
    """Read one file back, whatever its record says of its hash."""
    part = PartJob(to_bytes(projection()), str(source), str(out), "a.parquet")
    read_back(ReadBackJob(part, place_at(out).sha256("a.parquet")))


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
    with refused("apply", "clean"):
        sanitise_directory(projection(), source, out, verify=True)


def swapped(content: pa.Table) -> pa.Table:
    return content.take(pa.array([1, 0, *range(2, len(content))]))


def one_null_less(content: pa.Table) -> pa.Table:
    index = content.column_names.index("price")
    return content.set_column(index, "price", content.column("price").fill_null(0))


def as_other_type(content: pa.Table) -> pa.Table:
    index = content.column_names.index("id")
    return content.set_column(index, "id", content.column("id").cast(pa.string()))


def one_vector_less(content: pa.Table) -> pa.Table:
    vectors: list[list[float] | None] = content.column("vector").to_pylist()
    vectors[33] = None
    return content.set_column(content.column_names.index("vector"), "vector", pa.array(vectors, pa.list_(pa.float32())))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (one_vector_less, "49"),
        (swapped, "'taken'"),
        (one_null_less, "'price'"),
        (as_other_type, "'id'"),
        (lambda content: content.slice(1), "49"),
        (lambda content: content.drop(["tags"]), "columns"),
    ],
)
def test_rows_and_columns_that_are_not_those_of_the_source_are_seen(
    source: Path, tmp_path: Path, change: Callable[[pa.Table], pa.Table], named: str
) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    written(change(pq.read_table(out / "a.parquet")), out / "a.parquet")
    with refused("apply", "a.parquet", named):
        attempt(source, out)


@pytest.mark.parametrize("steps", [(1, 1), (7, 16), (16, 7), (50, 50)])
def test_a_value_that_differs_is_seen_in_any_row_wherever_batches_end(
    source: Path, tmp_path: Path, steps: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    monkeypatch.setattr("unface.scale.part.rows_at_once", lambda *_: max(steps))
    for row in (0, 8, 49):
        given = pq.read_table(source / "a.parquet")
        prices = given.column("price").to_pylist()
        prices[row] = 1e9
        changed = given.set_column(given.column_names.index("price"), "price", pa.array(prices))
        (tmp_path / f"{row}").mkdir()
        written(changed, tmp_path / f"{row}" / "a.parquet", row_group_size=min(steps))
        whole = PartJob(to_bytes(projection()), str(tmp_path / f"{row}"), str(out), "a.parquet")
        with refused("apply", "a.parquet", "'price'") as caught:
            read_back(ReadBackJob(whole, place_at(out).sha256("a.parquet")))
        after = int(str(caught.value).split("after row ")[1].split(";")[0])
        assert 0 <= row - after < max(steps)


def test_rows_are_compared_in_steps_that_end_where_either_file_s_batches_do() -> None:
    def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
        ends = np.cumsum(sizes).tolist()
        return (pa.record_batch({"row": list(range(end - size, end))}) for size, end in zip(sizes, ends, strict=True))

    pairs = list(_aligned(batches(3, 4, 1), batches(2, 2, 4)))
    assert [theirs.column(0).to_pylist() for theirs, _ in pairs] == [[0, 1], [2], [3], [4, 5, 6], [7]]
    assert all(theirs.equals(ours) for theirs, ours in pairs)


@pytest.mark.parametrize("column", ["vector.list.element", "price"])
def test_a_copy_that_cannot_be_read_any_more_is_named(source: Path, tmp_path: Path, column: str) -> None:
    out = tmp_path / "clean"
    sanitise_directory(projection(), source, out)
    group = pq.read_metadata(out / "a.parquet").row_group(0)
    chunk = next(group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == column)
    content = bytearray((out / "a.parquet").read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (out / "a.parquet").write_bytes(content)
    with refused("file", "a.parquet"):
        attempt(source, out)


def test_raw_vectors_are_seen(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean"
    out.mkdir()
    written(pq.read_table(source / "a.parquet"), out / "a.parquet")
    with refused("apply", "a.parquet", "left"):
        attempt(source, out)


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


KINDS = [pa.float16(), pa.float32(), pa.float64()]
LISTS = [pa.list_(pa.float32()), pa.large_list(pa.float32())]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        *((kind, [np.float16(0.0)], [np.float16(-0.0)]) for kind in KINDS),
        *((kind, [np.float16(1), None], [np.float16(1), np.float16(0)]) for kind in KINDS),
        *((kind, [[1, 2], [3]], [[1], [2, 3]]) for kind in LISTS),
        *((kind, [[1, float("nan")]], [[2, float("nan")]]) for kind in LISTS),
        (pa.list_(pa.float32(), 2), [[1, 2]], [[1, 3]]),
        (pa.struct([("x", pa.int8()), ("y", pa.float32())]), [{"x": 1, "y": 2}], [{"x": 1, "y": 3}]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], ["b", "a"]),
        (pa.string(), ["a"], ["b"]),
    ],
    ids=str,
)
def test_a_column_is_equal_to_itself_alone(kind: pa.DataType, one: list[object], other: list[object]) -> None:
    assert _same(pa.array(one, kind), pa.array(one, kind))
    assert not _same(pa.array(one, kind), pa.array(other, kind))


def test_the_numbers_of_a_dictionary_are_no_values() -> None:
    one, other = (
        pa.DictionaryArray.from_arrays(codes, names) for codes, names in (([0, 1], ["a", "b"]), ([1, 0], ["b", "a"]))
    )
    assert _same(one, other)


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_one_file_can_be_verified_too(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"faces.{kind}"
    if kind == "npz":
        np.savez(path, emb=PEOPLE.vectors)
    else:
        written(table().rename_columns(["taken", "id", "emb", "tags", "price", "kind"]), path)
    done = sanitise_file(projection(), path, tmp_path / f"out.{kind}", vector="emb", verify=True)
    assert done.verified is not None
    assert done.verified.rows == 120
    assert "; read back: at most " in done.sentence()


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_one_file_that_was_not_erased_is_refused_by_its_name_and_not_kept(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_done(*_: object, **__: object) -> ErasedRows:
        return ErasedRows(PEOPLE.unit().vectors, 0, np.empty(0, np.int64))

    monkeypatch.setattr(Kernel, "rows", nothing_done)
    path = tmp_path / f"faces.{kind}"
    if kind == "npz":
        np.savez(path, vectors=PEOPLE.vectors)
    else:
        written(table(), path)
    with refused("apply", ..., "left"):
        sanitise_file(projection(), path, tmp_path / f"out.{kind}", verify=True)
    assert [left.name for left in tmp_path.iterdir()] == [path.name]
