"""If these fail, copies that a keeper learns from are not copies, change from run to run, or pass for pictures."""

from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import people, write_folder
from unface.auditing.copies import without_copies
from unface.data import ImageRef, ImageSet, decode, read_embeddings, read_images
from unface.encode import encode_images, with_copies
from unface.encode.augment import altered
from unface.encode.onnx import OnnxEncoder

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def picture(seed: int, side: int = 64) -> bytes:
    ramp = np.linspace(0, 255, side, dtype=np.float64)
    red, green = np.meshgrid(ramp, ramp)
    made = np.stack([red, green, np.full_like(red, 40.0 * seed)], axis=2).astype(np.uint8)
    out = BytesIO()
    PIL.fromarray(made).save(out, "PNG")
    return out.getvalue()


def test_copies_follow_their_picture_and_read_it_once() -> None:
    reads: list[str] = []

    def read(name: str, content: bytes) -> bytes:
        reads.append(name)
        return content

    refs = (ImageRef(f"i{n}", f"p{n // 2}", partial(read, f"i{n}", picture(n))) for n in range(4))
    given = ImageSet(tuple(refs), "here")
    made = with_copies(given, 3)
    assert [(one.id, one.copy_of, one.identity) for one in made.images[4:8]] == [
        ("i1", None, "p0"),
        ("i1#copy1", "i1", "p0"),
        ("i1#copy2", "i1", "p0"),
        ("i1#copy3", "i1", "p0"),
    ]
    contents = [one.read() for one in made]
    assert reads == ["i0", "i1", "i2", "i3"]
    assert len(set(contents)) == 16
    assert contents == [one.read() for one in with_copies(given, 3)], "another run made other copies"
    # A run that was cut off begins with a copy, and has to read the picture for it.
    assert with_copies(given, 3).images[5].read() == contents[5]


def test_a_copy_is_cropped_to_its_range_and_shows_the_same() -> None:
    sides = []
    for copy in range(1, 60):
        made = decode(altered(picture(3), "i", copy))
        sides += [made.shape[0] / 64, made.shape[1] / 64]
        whole = decode(picture(3)).astype(float).mean(axis=(0, 1))
        assert np.abs(made.astype(float).mean(axis=(0, 1)) - whole).max() < 90
    assert 0.69 <= min(sides) < 0.74
    assert 0.93 < max(sides) <= 0.98


def test_the_encoded_file_names_originals_and_leaves_out_copies_of_bad_pictures(
    tmp_path: Path, encoder: OnnxEncoder
) -> None:
    files = {**people(3, 2), "ann1/9.jpg": b"text"}
    images = with_copies(read_images(write_folder(tmp_path / "faces", files)), 2)
    encoded = encode_images(images, encoder, tmp_path / "e.parquet", detector=None, batch=4)
    assert (encoded.pictures, encoded.rows, sum(encoded.skipped.values())) == (21, 18, 3)
    table = pq.read_table(tmp_path / "e.parquet").select(["id", "copy_of"]).to_pylist()
    named = {row["id"]: row["copy_of"] for row in table}
    assert set(named.values()) == {None, *(name for name in named if "#" not in name)}
    assert all(copy.startswith(f"{original}#copy") for copy, original in named.items() if original)
    originals, copies = without_copies(read_embeddings(tmp_path / "e.parquet"))
    assert copies is not None
    assert (len(originals), len(copies.copies)) == (6, 12)
