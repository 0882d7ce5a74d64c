"""If these fail, rows of a file have wrong numbers, pieces have wrong sizes, or odd files are not refused."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.collection import collection
from tests.scale.stored import DIM, PEOPLE, projection, table, vectors_in, written
from unface.scale import sanitise_directory, sanitise_file
from unface.scale.stream import batch_rows, rows_at_once

MB = 1 << 20


def attempt(content: pa.Table, folder: Path) -> None:
    path = written(content, folder / "faces.parquet")
    try:
        sanitise_file(projection(), path, folder / "out.parquet")
    finally:
        assert not (folder / "out.parquet").exists()


def with_vectors(column: pa.Array) -> pa.Table:
    return table().set_column(table().column_names.index("vector"), "vector", column)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.scale.stream._PIECE_BYTES", 10 * 4 * DIM)


@pytest.mark.usefixtures("small_pieces")
def test_a_row_is_told_by_its_number_in_the_file_and_not_in_a_piece(tmp_path: Path) -> None:
    lists: list[Any] = PEOPLE.vectors.tolist()
    lists[57] = None
    with refused("apply", "faces.parquet", "row 57"):
        attempt(with_vectors(pa.array(lists)), tmp_path)
    lists[57] = lists[0][:5]
    with refused("apply", "faces.parquet", "row 57", "5", "16"):
        attempt(with_vectors(pa.array(lists)), tmp_path)


def test_what_arrow_cannot_write_is_told_by_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise pa.ArrowNotImplementedError("Unhandled type for Arrow to Parquet schema conversion")

    monkeypatch.setattr("unface.scale.stream.RowGroups.flush", unknown)
    with refused("apply", "faces.parquet", "copy"):
        attempt(table(), tmp_path)


@pytest.mark.parametrize(("dim", "rows"), [(512, 8192), (1, 4 * MB), (100, 41_943), (4 * MB, 1), (10**9, 1)])
def test_a_batch_has_sixteen_megabytes_of_single_precision_and_at_least_one_row(dim: int, rows: int) -> None:
    assert (batch_rows(dim), type(batch_rows(dim))) == (rows, int)


@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        ([], 8192),
        ([(0, 0)], 8192),
        ([(10, 10 * 4096)], 8192),
        ([(10, 10 * MB)], 32),
        ([(10, 10 * MB), (30, 110 * MB)], 32 // 3),
        ([(1, 20 * MB)], 1),
        ([(1, 100 * MB)], 1),
    ],
)
def test_rows_at_once_are_fewer_where_a_row_is_large(groups: list[tuple[int, int]], rows: int) -> None:
    """Of thirty-two megabytes at most in all columns."""
    metadata = SimpleNamespace(
        num_row_groups=len(groups),
        num_rows=sum(count for count, _ in groups),
        row_group=lambda number: SimpleNamespace(total_byte_size=groups[number][1]),
    )
    assert rows_at_once(SimpleNamespace(metadata=metadata), 512) == rows


def test_what_a_field_says_of_itself_stays(tmp_path: Path) -> None:
    for column in (table().column("vector"), pa.chunked_array([pa.array(PEOPLE.vectors.tolist())])):
        field = pa.field("vector", column.type, nullable=True, metadata={b"unit": b"none"})
        given = table().set_column(2, field, column)
        path = written(given, tmp_path / "faces.parquet")
        sanitise_file(projection(), path, tmp_path / "out.parquet")
        kept = pq.read_schema(tmp_path / "out.parquet").field("vector")
        assert kept.metadata[b"unit"] == b"none"
        assert kept.type.list_size == DIM


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_of_one_file_changes_no_byte(tmp_path: Path, threads: int) -> None:
    path = written(table(), tmp_path / "faces.parquet")
    sanitise_file(projection(), path, tmp_path / "one.parquet", threads=threads)
    sanitise_file(projection(), path, tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


def test_vectors_are_stored_plain_and_the_rest_compressed_with_checksums(tmp_path: Path) -> None:
    """Vectors are noise: a dictionary and compression only cost time."""
    sanitise_file(projection(), written(table(), tmp_path / "faces.parquet"), tmp_path / "out.parquet")
    group = pq.read_metadata(tmp_path / "out.parquet").row_group(0)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    vectors = chunks.pop("vector.list.element")
    assert (vectors.compression, vectors.has_dictionary_page, vectors.is_stats_set) == ("UNCOMPRESSED", False, False)
    assert {chunk.compression for chunk in chunks.values()} == {"SNAPPY"}
    assert all(chunk.is_stats_set for chunk in chunks.values())
    assert chunks["id"].has_dictionary_page
    content = bytearray((tmp_path / "out.parquet").read_bytes())
    content[content.index(vectors_in(tmp_path / "out.parquet")[60].tobytes()) + 5] ^= 0x40
    (tmp_path / "out.parquet").write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(tmp_path / "out.parquet", page_checksum_verification=True)


@pytest.mark.parametrize(("source", "out"), [("faces.npz", "out.NPZ"), ("faces.parquet", "out.pq")])
def test_a_name_in_capitals_or_short_says_what_the_output_is_too(tmp_path: Path, source: str, out: str) -> None:
    np.savez(tmp_path / "faces.npz", vectors=PEOPLE.vectors)
    written(table(), tmp_path / "faces.parquet")
    assert sanitise_file(projection(), tmp_path / source, tmp_path / out).rows == len(PEOPLE)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "clean"


def attempt_batches(source: Path, out: Path, threads: int) -> None:
    sanitise_directory(projection(), source, out, threads=threads)


def test_bad_rows_are_counted_over_the_whole_file_by_their_number_in_it(source: Path, out: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[[70, 71, 119], 2] = np.nan
    written(table(vectors), source / "a.parquet", row_group_size=7)
    with refused("apply", "a.parquet", "row 70", "--bad-rows", "3", "of 4"):
        attempt_batches(source, out, 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_bad_rows_are_counted_over_all_batches(
    source: Path, out: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of batches that were read ahead when the first one was met."""
    monkeypatch.setattr("unface.scale.stream._BATCH_BYTES", 10 * 4 * DIM)
    vectors = PEOPLE.vectors.copy()
    vectors[[12, 25, 38, 41, 119], 2] = np.nan
    written(table(vectors), source / "a.parquet")
    with refused("apply", "a.parquet", "row 12", "--bad-rows", "5"):
        attempt_batches(source, out, threads)


@pytest.mark.parametrize(("threads", "most"), [(1, 9), (1, 10), (3, 11)])
def test_pieces_are_joined_to_row_groups_and_change_no_row(
    tmp_path: Path, threads: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece is what stays in a cache; a row group as small as that would be slow to read ever after."""
    (tmp_path / "raw").mkdir()
    written(table(), tmp_path / "raw" / "a.parquet")
    sanitise_directory(projection(), tmp_path / "raw", tmp_path / "whole")
    monkeypatch.setattr("unface.scale.stream._BATCH_BYTES", most * 4 * DIM)
    monkeypatch.setattr("unface.scale.stream._PIECE_BYTES", 3 * 4 * DIM)
    sanitise_directory(projection(), tmp_path / "raw", tmp_path / "pieces", threads=threads)
    metadata = pq.read_metadata(tmp_path / "pieces" / "a.parquet")
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [9] * 13 + [3]
    whole, pieces = (pq.read_table(tmp_path / name / "a.parquet") for name in ("whole", "pieces"))
    assert pieces.equals(whole)


def test_wide_columns_beside_the_vectors_make_batches_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pictures do: a batch is bounded in bytes of all columns, not in rows."""
    monkeypatch.setattr("unface.scale.stream._BATCH_BYTES", 1 << 16)
    (tmp_path / "raw").mkdir()
    pictures = pa.array([os.urandom(4096) for _ in range(len(PEOPLE))])
    written(table().append_column("picture", pictures), tmp_path / "raw" / "a.parquet")
    sanitise_directory(projection(), tmp_path / "raw", tmp_path / "clean", verify=True)
    metadata = pq.read_metadata(tmp_path / "clean" / "a.parquet")
    assert max(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)) <= 32


def test_memory_is_that_of_batches_and_never_of_a_row_group(tmp_path: Path) -> None:
    """One row group of 64 MB is read in pieces: Arrow never holds half of it."""
    from unface.data.parquet import opened_parquet, row_batches

    vectors = np.random.default_rng(0).standard_normal((1 << 20, DIM), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    path = written(pa.table({"vector": column}), tmp_path / "big.parquet", row_group_size=1 << 20)
    assert pq.read_metadata(path).num_row_groups == 1
    with opened_parquet(path, "big") as file:
        held = [pa.total_allocated_bytes() for _ in row_batches(file, "big", 1 << 14)]
    assert max(held) < vectors.nbytes / 2
