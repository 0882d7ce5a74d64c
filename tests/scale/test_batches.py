"""If these fail, what is read batch by batch is counted wrongly or takes more memory than a batch."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.collection import collection
from tests.scale.stored import DIM, PEOPLE, projection, table, written
from unface.scale import sanitise_directory


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "clean"


def attempt(source: Path, out: Path, threads: int) -> None:
    sanitise_directory(projection(), source, out, threads=threads)


def test_bad_rows_are_counted_over_the_whole_file_by_their_number_in_it(source: Path, out: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[[70, 71, 119], 2] = np.nan
    written(table(vectors), source / "a.parquet", row_group_size=7)
    with refused("apply", "a.parquet", "row 70", "--bad-rows", "3", "of 4"):
        attempt(source, out, 1)


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
        attempt(source, out, threads)


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
