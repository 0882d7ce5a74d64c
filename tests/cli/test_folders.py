"""If these fail, fit and apply on the command line treat a folder or a URL otherwise than they say."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.command import unface
from tests.refusals.table import require_refusal
from tests.scale.collection import hashes
from unface.data import make_identities, read_embeddings, write_embeddings
from unface.erase import Projection

PEOPLE = make_identities(40, 4, 16, rank=3, between=2.0, seed=3)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    (folder / "more").mkdir(parents=True)
    half = PEOPLE.identities < 20
    write_embeddings(PEOPLE.take(half), folder / "a.parquet")
    write_embeddings(PEOPLE.take(~half), folder / "more" / "b.parquet")
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
