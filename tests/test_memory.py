"""If these fail, a small file that declares a large content fills the memory of the machine before it is refused."""

import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.data.pictures import encoded
from tests.kit.forks import ForkServer
from tests.refusals.table import refused
from unface import Projection, audit, make_identities, memory, read_embeddings
from unface.data import Space, images
from unface.data import read_images as images_of
from unface.encode import ahead
from unface.encode.prepare import Preparer
from unface.memory import limit_memory, memory_budget
from unface.models import Input
from unface.scale import sanitise_file

PLAIN = Input(8, "NHWC", "RGB", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "stretch")


@pytest.fixture(autouse=True)
def _default_again() -> Iterator[None]:
    yield
    limit_memory(None)


def projection(dim: int) -> Projection:
    return Projection("isp", np.eye(dim)[:, :1], np.ones(1), Space(None, None, dim, normalised=True))


def test_a_size_is_read_with_its_unit() -> None:
    default = memory_budget()
    assert default > 1 << 28
    for text, size in (("512M", 512 << 20), ("8g", 8 << 30), ("1 TiB", 1 << 40), ("200000000", 200_000_000)):
        limit_memory(text)
        assert memory_budget() == size
    for text in ("", "eight", "-1G", "1.5G", "9" * 40, "1M"):
        with refused("memory", "--memory"):
            limit_memory(text)
    limit_memory(None)
    assert memory_budget() == default


def test_the_default_is_three_quarters_of_what_is_available_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of what the machine has: others use it too, and the kernel ends whoever takes the rest."""
    machine, group = tmp_path / "meminfo", tmp_path / "group"
    machine.write_text("MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: 2097152 kB\n")
    monkeypatch.setattr(memory, "_MEMORY", machine)
    monkeypatch.setattr(memory, "_GROUPS", ((group, "memory.max", "memory.current", "inactive_file"),))
    monkeypatch.setattr(memory, "_given", None)
    try:
        memory._available.cache_clear()
        assert memory_budget() == 3 << 29, "the machine's 2 GB"
        group.mkdir()
        contents = {"memory.max": "1073741824\n", "memory.current": "943718400\n", "memory.stat": "anon 5\n"}
        for name, content in contents.items():
            (group / name).write_text(content)
        memory._available.cache_clear()
        assert memory_budget() == 93 << 20, "the 124 MB that a container of 1 GB has left"
        (group / "memory.stat").write_text("anon 5\nfile 9\ninactive_file 402653184\n")
        memory._available.cache_clear()
        assert memory_budget() == 381 << 20, "and 384 MB of files that were read before can go"
        (group / "memory.max").write_text("max\n")
        memory._available.cache_clear()
        assert memory_budget() == 3 << 29
    finally:
        memory._available.cache_clear()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """40 MB of vectors in 200 kB."""
    path = tmp_path / "faces.npz"
    vectors = np.ones((40_000, 256), np.float32)
    np.savez_compressed(path, vectors=vectors, identities=np.repeat(np.arange(10_000), 4))
    assert path.stat().st_size < vectors.nbytes // 100
    return path


def test_an_archive_that_declares_more_than_the_budget_is_not_unpacked(archive: Path) -> None:
    limit_memory("64M")
    tracemalloc.start()
    with refused("memory", "faces.npz", "64 MB"):
        read_embeddings(archive)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    limit_memory("256M")
    read_embeddings(archive)


def test_an_archive_is_erased_in_blocks_of_rows(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.scale.sanitise.batch_rows", lambda dim: 1000)
    tracemalloc.start()
    done = sanitise_file(projection(256), archive, tmp_path / "out.npz", verify=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.rows == 40_000
    assert peak < 12_000_000
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["identities"], np.repeat(np.arange(10_000), 4))
        assert np.array_equal(out["vectors"], projection(256).apply(np.ones((40_000, 256), np.float32) / 16))


def test_parquet_that_declares_more_than_the_budget_is_not_read(tmp_path: Path) -> None:
    rows, path = 40_000, tmp_path / "faces.parquet"
    same = np.ones(256 * rows, np.float32)
    identities = pa.array(np.arange(rows) // 4)
    lists = {
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(same), 256),
        "free": pa.ListArray.from_arrays(pa.array(256 * np.arange(rows + 1), pa.int32()), pa.array(same)),
    }
    limit_memory("64M")
    for kind, vectors in lists.items():
        pq.write_table(pa.table({"vector": vectors, "identity": identities}), path, store_schema=kind == "fixed")
        assert path.stat().st_size < same.nbytes // 100
        with refused("memory", "faces.parquet"):
            read_embeddings(path)


def test_a_name_that_all_rows_share_is_held_once(tmp_path: Path) -> None:
    rows, path = 30_000, tmp_path / "faces.parquet"
    words = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows, dtype=np.int32) % 2), pa.array(["x" * 5000, "y"]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(8 * rows, np.float32)), 8)
    pq.write_table(pa.table({"vector": vectors, "identity": words, "note": words}), path, store_schema=False)
    limit_memory("64M")
    tracemalloc.start()
    read = read_embeddings(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read.names == ("x" * 5000, "y")
    assert peak < 20_000_000


def test_pictures_of_parquet_are_read_a_few_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 rows of one picture of 60 kB: 120 MB in 100 kB; and as many of different ones, by pieces of 10."""
    picture = encoded(Image.fromarray(np.random.default_rng(1).integers(0, 256, (140, 140, 3), np.uint8)), "PNG")
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array([picture]))
    different = [picture + number.to_bytes(2, "big") for number in range(200)]
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    monkeypatch.setattr(sys.modules["unface.data.read_images"], "_PIECE_BYTES", 10 * len(picture))
    for column in (same, pa.array([{"bytes": content, "path": "x"} for content in different])):
        path = tmp_path / "pictures.parquet"
        pq.write_table(pa.table({"image": column, "identity": [0] * len(column)}), path, store_schema=False)
        pa.set_memory_pool(pool)
        try:
            pictures = images_of(path)
            read = [one.read() for one in pictures]
        finally:
            pa.set_memory_pool(before)
        assert read == ([picture] * 2000 if len(column) == 2000 else different)
        assert pictures.images[3].read() == read[3], "going back"
    assert pool.max_memory() < 24 << 20


def test_what_waits_between_threads_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded pictures of attribution wait for their turn: two of 30 MB at most in a sixteenth of 1 GB."""
    limit_memory("1G")
    begun: list[int] = []
    held = []
    for taken, _ in enumerate(ahead(begun.append, range(20), 1, 10, lambda _: 30 << 20), 1):
        held.append(len(begun) - taken)
    assert len(begun) == 20
    assert max(held) <= 1


def test_what_no_header_declares_is_refused_by_the_system(tmp_path: Path, forks: ForkServer) -> None:
    """A text of a megabyte that 4,000 rows share is 4 GB in a piece of rows; a page says so to nobody before."""
    rows = 4000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * (1 << 20)]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(8 * rows, np.float32)), 8)
    table = pa.table({"vector": vectors, "text": text})
    pq.write_table(table, tmp_path / "faces.parquet", store_schema=False, dictionary_pagesize_limit=1 << 30)
    assert (tmp_path / "faces.parquet").stat().st_size < 1 << 17
    projection(8).save(tmp_path / "P")
    words = ["--memory", "64M", "apply", "P", "faces.parquet", "out.parquet"]
    child = forks.unface_telling_its_peak(*words, cwd=tmp_path)
    assert (child.returncode, child.stderr) == (
        1,
        "unface: faces.parquet: needs more memory than the budget of 64 MB; raise --memory\n",
    )
    assert int(child.stdout) << 10 < 1000 << 20
    assert not (tmp_path / "out.parquet").exists()


def test_long_texts_from_a_dictionary_are_erased_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """200,000 rows of the same 3,000 letters: 600 MB of text in a small file."""
    rows, path = 200_000, tmp_path / "faces.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 3000]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(8 * rows, np.float32)), 8)
    pq.write_table(pa.table({"vector": vectors, "text": text}), path, row_group_size=rows, store_schema=False)
    assert path.stat().st_size < 1 << 20
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        sanitise_file(projection(8), path, tmp_path / "out.parquet", threads=1)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 300 << 20
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == rows


def test_pictures_are_decoded_within_a_pixel_budget_across_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_MOST_PIXELS", 1000)
    held: list[tuple[bytes, int]] = []
    real = images.decode

    def watched(content: bytes) -> object:
        held.append((content, images.PIXELS._held))
        return real(content)

    monkeypatch.setattr("unface.encode.prepare.decode", watched)
    small, large = (encoded(Image.new("RGB", size), "PNG") for size in ((20, 20), (40, 40)))
    ready = list(ahead(Preparer(PLAIN, None), [small] * 12 + [large, b"no picture"], 8, 14))
    assert [one.reason for one in ready] == [None] * 12 + ["too many pixels", "not a picture"]
    of_small = [pixels for content, pixels in held if content == small]
    assert len(of_small) == 12
    assert min(of_small) >= 400, "a picture takes its room before it is decoded"
    assert max(pixels for pixels in of_small if pixels < 1600) <= 1000
    assert images.PIXELS._held == 0


def constant_archive(path: Path, rows: int) -> None:
    """Vectors of 256 equal numbers and four rows for each identity, written without being held."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("vectors.npy", "w", force_zip64=True) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (rows, 256)}
            np.lib.format.write_array_header_1_0(cast(BinaryIO, file), header)
            block = np.ones((1000, 256), np.float32).tobytes()
            for _ in range(rows // 1000):
                file.write(block)
        with archive.open("identities.npy", "w") as file:
            np.lib.format.write_array(cast(BinaryIO, file), np.arange(rows) // 4)


def constant_parquet(path: Path, rows: int, *, fixed: bool) -> None:
    """The same as Parquet, in row groups of 50,000, with lists of a declared length or of any."""
    same = pa.array(np.ones(256 * 50_000, np.float32))
    starts = pa.array(256 * np.arange(50_001), pa.int32())
    vectors = pa.FixedSizeListArray.from_arrays(same, 256) if fixed else pa.ListArray.from_arrays(starts, same)
    table = pa.table({"vector": vectors, "identity": pa.array(np.arange(50_000) // 4)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(rows // 50_000):
            writer.write_table(table)


@pytest.mark.parametrize("kind", ["npz", "fixed.parquet", "free.parquet"])
def test_an_audit_refuses_a_small_file_that_declares_more_than_its_budget(
    tmp_path: Path, kind: str, forks: ForkServer
) -> None:
    path = tmp_path / f"faces.{kind}"
    if kind == "npz":
        constant_archive(path, 300_000)
    else:
        constant_parquet(path, 300_000, fixed=kind.startswith("fixed"))
    assert path.stat().st_size < 3_000_000
    words = ["--memory", "200M", "audit", path.name, "--out", "audit"]
    child = forks.unface_telling_its_peak(*words, cwd=tmp_path, address_space=6 << 30)
    assert child.returncode == 1
    assert child.stderr.startswith(f"unface: {path.name}: needs about ")
    assert child.stderr.count("\n") == 1
    assert int(child.stdout) << 10 < (200 << 20) + (1 << 30)
    assert not (tmp_path / "audit").exists()


def test_an_audit_of_vectors_that_all_tie_stays_within_its_budget(tmp_path: Path, forks: ForkServer) -> None:
    """Two vectors in turn, in some kilobytes: half of all rows are candidates as the nearest of 1,000 queries."""
    rows = 16_000
    in_turn = np.tile(np.eye(2, 8, dtype=np.float32).reshape(-1), rows // 2)
    identities = pa.array(np.arange(rows) % (rows // 20))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(in_turn), 8)
    pq.write_table(pa.table({"vector": vectors, "identity": identities}), tmp_path / "faces.parquet")
    words = ["--memory", "256M", "audit", "faces.parquet", "--out", "audit", "--probe", "cosine", "--far", "1e-4"]
    child = forks.unface_telling_its_peak(*words, "--no-maps", "--no-sweep", "--album", "none", "--quiet", cwd=tmp_path)
    assert (child.returncode, child.stderr.count("\n")) == (1, 1)
    assert "the budget is 256 MB" in child.stderr
    assert "so nothing can be measured" not in child.stderr  # refused before anything is compared
    assert int(child.stdout.split()[-1]) << 10 < 480 << 20


def test_what_an_audit_makes_of_a_set_is_in_its_budget(archive: Path) -> None:
    """40 MB fit into 200 MB as they are read; with all that an audit holds beside them they do not."""
    limit_memory("200M")
    read_embeddings(archive)
    with refused("memory", "faces.npz", "about 3", "is 200"):
        audit(archive)


@pytest.mark.parametrize("option", ["utility", "fit_on"])
def test_what_an_audit_makes_of_a_further_set_is_in_its_budget(archive: Path, option: str) -> None:
    limit_memory("200M")
    people = make_identities(120, 4, 256)
    further: dict[str, Any] = {option: [archive] if option == "utility" else archive}
    with refused("memory", "faces.npz", "about 3", "is 200"):
        audit(people, **further)
