"""If these fail, rows that cannot be erased are released as they were, or are lost without being counted."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.stored import PEOPLE, projection, table, written
from unface.erase.file import to_bytes
from unface.scale import sanitise_directory, sanitise_file
from unface.scale.part import PartJob, ReadBackJob, read_back

BAD = [3, 40, 77]


@pytest.fixture
def source(tmp_path: Path) -> Path:
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
    source: Path, tmp_path: Path, on_bad: str, folder: bool
) -> None:
    out = tmp_path / "out"
    if folder:
        receipt = sanitise_directory(projection(), source.parent, out, verify=True, on_bad=on_bad)
    else:
        out.mkdir()
        receipt = sanitise_file(projection(), source, out / "a.parquet", verify=True, on_bad=on_bad)
    good = np.setdiff1d(np.arange(len(PEOPLE)), BAD)
    assert (receipt.rows, receipt.bad_rows, receipt.on_bad_rows) == (len(good), 3, on_bad)
    ending = "left out" if on_bad == "drop" else "written with a null in its place"
    assert f"; 3 rows with a null, NaN or Inf vector {ending}" in receipt.sentence()
    before, after = pq.read_table(source), pq.read_table(out / "a.parquet")
    if on_bad == "drop":
        before = before.take(pa.array(good))
    else:
        assert np.flatnonzero(after.column("vector").is_null()).tolist() == BAD
        after = after.take(pa.array(good))
        before = before.take(pa.array(good))
    assert after.drop(["vector"]).equals(before.drop(["vector"]))
    found = np.array(after.column("vector").to_pylist(), np.float32)
    assert np.array_equal(found, projection().apply(PEOPLE.unit().vectors[good]))


def test_a_row_that_was_not_bad_must_not_be_missing(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sanitise_directory(projection(), source.parent, out, on_bad="drop")
    job = PartJob(to_bytes(projection()), str(source.parent), str(out), "a.parquet", on_bad="drop")
    whole = pq.read_table(out / "a.parquet")
    for changed, complaint in ((whole.slice(1), "116"), (whole, "")):
        path = written(changed, out / "a.parquet")
        known = ReadBackJob(job, sha256(path.read_bytes()).hexdigest(), bad=3)
        if complaint:
            with refused("apply", "a.parquet", complaint, "117"):
                read_back(known)
        else:
            assert read_back(known).rows == 117


def test_a_run_is_not_continued_with_another_choice(source: Path, tmp_path: Path) -> None:
    broken = source.parent / "b.parquet"
    broken.write_bytes(b"PAR1")
    with refused("apply", "b.parquet"):
        sanitise_directory(projection(), source.parent, tmp_path / "out", on_bad="drop")
    for other in ("null", "fail"):
        with refused("output", "out"):
            sanitise_directory(projection(), source.parent, tmp_path / "out", on_bad=other)
