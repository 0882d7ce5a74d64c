"""If these fail, rows are counted for the wrong identity, in the wrong role, or not as vectors of length one."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from unface import UnfaceError
from unface.data import split_order
from unface.memory import limit_memory
from unface.scale import sums
from unface.scale.sums import (
    FITTED,
    HELD,
    NOBODY,
    Cut,
    NamesJob,
    SumsJob,
    cut_identities,
    merge_sums,
    part_names,
    part_sums,
)

EVERYONE, NOBODY_FITTED = Cut(seed=0), Cut(seed=0, fit_below="", held_below="g")
ROWS = [("a", [3, 4]), ("b", [0, 2]), ("a", [-5, 0]), (None, [1, 1]), ("b", [0, 0]), ("", [6, 8])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vectors = pa.array([vector for _, vector in ROWS], pa.list_(pa.float32()))
    pq.write_table(pa.table({"identity": [name for name, _ in ROWS], "vector": vectors}), tmp_path / "x.parquet")
    return tmp_path


def job(folder: Path, cut: Cut = EVERYONE, **other: object) -> SumsJob:
    # Options of several types.
    return SumsJob(str(folder), "x.parquet", 2, scatter=True, cut=cut, **{"bad_rows": "drop", **other})  # type: ignore[arg-type]


def test_unit_vectors_are_summed_for_each_identity_and_bad_rows_are_counted(folder: Path) -> None:
    found = part_sums(job(folder))
    assert (found.rows, found.skipped, found.held) == (6, 3, [])
    moments = found.moments.moments()
    order = np.argsort(moments.sums[:, 0])
    assert moments.sums[order] == pytest.approx(np.array([[-0.4, 0.8], [0, 1]]), abs=1e-7)
    assert moments.counts[order].tolist() == [2, 1]
    twice = merge_sums(found, found)
    assert (twice.rows, twice.skipped) == (12, 6)


def test_those_held_out_are_kept_as_unit_vectors_by_name_and_not_summed(folder: Path) -> None:
    found = part_sums(job(folder, NOBODY_FITTED))
    assert np.concatenate(found.held_names).tolist() == ["a", "b", "a"]
    (held,) = found.held
    assert held.dtype == np.float32
    assert held == pytest.approx(np.array([[0.6, 0.8], [0, 1], [-1, 0]]), abs=1e-7)
    assert found.moments.identities == 0
    assert (found.rows, found.skipped) == (6, 3)


def test_the_first_bad_row_is_told_by_its_number_in_the_file_and_all_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "batch_rows", lambda dim: 2)
    with refused("apply", "x.parquet", "row 3", "--bad-rows"):
        part_sums(job(folder, bad_rows="fail"))
    all_skipped = part_sums(job(folder))
    assert (all_skipped.rows, all_skipped.skipped) == (6, 3), "over all batches"


def test_columns_that_hold_something_else_are_told(folder: Path) -> None:
    pq.write_table(pa.table({"identity": ["a"], "vector": [["x", "y"]]}), folder / "x.parquet")
    with refused("vectors", "x.parquet", "'vector'"):
        part_sums(job(folder))
    longer = pa.table({"identity": ["a"] * 5, "vector": [[1.0, 2], [3, 4], [5, 6], [7, 8, 9], [1, 2]]})
    pq.write_table(longer, folder / "x.parquet")
    with refused("apply", "x.parquet", "row 3", "has 3", "'vector'", "expected 2"):
        part_sums(job(folder))
    with refused("apply", "x.parquet", "'who'", "--identity-column"):
        part_names(NamesJob(str(folder), "x.parquet", "who"))


@pytest.mark.filterwarnings("error")
def test_what_is_too_large_for_single_precision_is_a_bad_row_and_no_warning(folder: Path) -> None:
    vectors = pa.array([[1e39, 0], [1, 1]], pa.list_(pa.float64()))
    pq.write_table(pa.table({"identity": ["a", "b"], "vector": vectors}), folder / "x.parquet")
    assert part_sums(job(folder)).skipped == 1


def test_lengths_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    expected = np.linalg.norm(vectors.astype(np.float64), axis=1)
    for block in (1, 7 * 8 * 3, 1 << 20):
        monkeypatch.setattr(sums, "_BLOCK_BYTES", block)
        assert sums._lengths(vectors) == pytest.approx(expected, rel=1e-14)


def test_names_are_counted_by_rows_and_no_name_is_nobody(folder: Path) -> None:
    assert dict(part_names(NamesJob(str(folder), "x.parquet", "identity"))) == {"a": 2, "b": 2}


def test_a_name_that_no_row_has_is_nobody_to_hold_out(folder: Path) -> None:
    """A dictionary may have more entries than a file uses, as after a filter."""
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), ["a", "unused", "b"])
    pq.write_table(pa.table({"identity": coded}), folder / "x.parquet")
    assert dict(part_names(NamesJob(str(folder), "x.parquet", "identity"))) == {"a": 2, "b": 1}


def test_a_cut_is_in_the_order_of_the_split_and_the_bounds_belong_to_the_upper_side() -> None:
    first, second, third = sorted("abc", key=lambda name: split_order(name, 3))
    cut = Cut(3, fit_below=split_order(second, 3), held_below=split_order(third, 3))
    assert [cut.role(name) for name in (first, second, third, None, "")] == [FITTED, HELD, NOBODY, NOBODY, NOBODY]
    assert Cut(3).role(first) == FITTED


def test_a_file_that_cannot_be_counted_refuses_the_cut() -> None:
    told = UnfaceError("x.parquet: is broken")
    with refused("plug-in", "x.parquet"):
        cut_identities(lambda work, jobs: iter([(0, told)]), [], 0.5, 0, 10)


def test_more_identities_than_the_budget_can_hold_are_refused(tmp_path: Path) -> None:
    """120,000 names are 72 MB, and their sums in 80 dimensions 77 MB; half of both fit."""
    names = pa.array([str(number) for number in range(120_000)])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(80 * len(names), np.float16)), 80)
    for rows in (60_000, 120_000):
        table = pa.table({"vector": vectors[:rows], "identity": names[:rows]})
        pq.write_table(table, tmp_path / f"{rows}.parquet")
    limit_memory("64M")
    try:
        for rows, refused in ((60_000, False), (120_000, True)):
            expected = pytest.raises(UnfaceError, match=r"needs about .* fit on fewer identities, or raise --memory")
            with expected if refused else nullcontext():
                part_names(NamesJob(str(tmp_path), f"{rows}.parquet", "identity"))
            expected = pytest.raises(UnfaceError, match=r"needs about .* fit on fewer identities, or raise --memory")
            with expected if refused else nullcontext():
                part_sums(SumsJob(str(tmp_path), f"{rows}.parquet", 80, False, Cut(0)))
    finally:
        limit_memory(None)
