"""If these fail, a small file that declares a large content fills the memory of the machine before it is refused."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.data.pictures import encoded
from unface import Projection, UnfaceError, read_embeddings
from unface.data import Space, images
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
        with pytest.raises(UnfaceError, match="--memory: "):
            limit_memory(text)
    limit_memory(None)
    assert memory_budget() == default


@pytest.mark.parametrize("command", ["audit", "apply"])
def test_an_archive_that_declares_more_than_the_budget_is_not_unpacked(command: str, tmp_path: Path) -> None:
    path = tmp_path / "faces.npz"
    vectors = np.ones((40_000, 256), np.float32)
    np.savez_compressed(path, vectors=vectors, identities=np.repeat(np.arange(10_000), 4))
    declared = vectors.nbytes
    assert path.stat().st_size < declared // 100
    limit_memory("64M")
    tracemalloc.start()
    with pytest.raises(UnfaceError, match=r"faces\.npz: needs about 1\d\d MB of memory, the budget is 64 MB; write it"):
        read_embeddings(path) if command == "audit" else sanitise_file(projection(256), path, tmp_path / "out.npz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < declared // 10
    limit_memory("256M")
    read_embeddings(path)


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
