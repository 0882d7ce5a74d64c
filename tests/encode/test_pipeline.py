"""If this fails, a picture is lost or doubled on its way to a vector, or left out without a word."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.data.pictures import jpeg, people, write_folder
from tests.encode.encoded import Found, counted
from tests.encode.tiny import DIM, card, expected, write_onnx
from tests.refusals.table import refused
from unface.data import ImageSet, Space, read_embeddings, read_images
from unface.encode import encode_images, framed
from unface.encode.onnx import OnnxEncoder


def test_every_picture_becomes_a_row_with_its_vector_in_order(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    from unface.data import decode

    encoded = encode_images(pictures, encoder, tmp_path / "e.parquet", detector=None, batch=4, threads=3)
    assert (encoded.pictures, encoded.rows, encoded.skipped) == (45, 45, {})
    found = read_embeddings(tmp_path / "e.parquet")
    assert found.ids.tolist() == [image.id for image in pictures]
    assert [found.names[code] for code in found.identities] == [image.identity for image in pictures]
    frames = [framed(decode(image.read()), card().input) for image in pictures]
    np.testing.assert_allclose(found.vectors, expected(frames), rtol=1e-3, atol=1e-4)
    assert found.space == Space("tiny", "ab" * 32, DIM, False)


def test_progress_names_the_encoder_and_ends_at_its_end(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    class Counted:
        def __init__(self) -> None:
            self.totals: dict[str, int] = {}
            self.done: dict[str, int] = {}

        def start(self, task: str, total: int) -> None:
            self.totals[task] = total

        def advance(self, task: str, steps: int = 1) -> None:
            self.done[task] = self.done.get(task, 0) + steps

    seen = Counted()
    encode_images(pictures, encoder, tmp_path / "e.parquet", detector=None, batch=4, threads=2, progress=seen)
    assert seen.totals == seen.done == {"encoding with tiny": 45}


def test_context_hash_and_quality_stand_beside_the_vector(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    encode_images(pictures, encoder, tmp_path / "e.parquet", detector=Found())
    found = read_embeddings(tmp_path / "e.parquet", context="context")
    signatures = found.labels["context"]
    assert signatures.shape == (45, 192)
    np.testing.assert_allclose(np.linalg.norm(signatures.astype(float), axis=1), 1, rtol=1e-5)
    assert len(set(found.labels["phash"].tolist())) == 45
    assert set(found.labels["faces"].tolist()) == {1}
    assert set(found.labels["face_px"].tolist()) == {20.0}


def test_bad_pictures_are_left_out_counted_and_named(tmp_path: Path, encoder: OnnxEncoder) -> None:
    files = {**people(2, 2), "ann0/0.jpg": b"", "ann1/9.jpg": b"text", "ann1/8.jpg": jpeg(size=(200, 200))[:900]}
    images = read_images(write_folder(tmp_path / "faces", files))
    encoded = encode_images(images, encoder, tmp_path / "e.parquet", detector=None, batch=3)
    assert encoded.skipped == {"empty file": 1, "truncated or damaged": 1, "not a picture": 1}
    assert encoded.rows == 4
    with (tmp_path / "e.parquet.skipped.csv").open() as file:
        assert list(csv.reader(file)) == [
            ["id", "reason"],
            ["ann0/0.jpg", "empty file"],
            ["ann1/8.jpg", "truncated or damaged"],
            ["ann1/9.jpg", "not a picture"],
        ]
    assert encoded.sentences()[0].endswith("e.parquet: 4 of 7 pictures, 8 dimensions")


def test_without_a_face_a_recogniser_gets_no_picture_and_a_general_encoder_does(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx")
    files = {**people(2, 2), "ann0/small.png": jpeg(size=(24, 18))}
    images = read_images(write_folder(tmp_path / "faces", files))
    general = encode_images(images, OnnxEncoder(card(), path), tmp_path / "g.parquet", detector=Found())
    assert (general.rows, general.notes) == (5, {"no face": 1, "tiny face": 4})
    aligned = OnnxEncoder(card(alignment="arcface112"), path)
    recogniser = encode_images(images, aligned, tmp_path / "r.parquet", detector=Found())
    assert (recogniser.rows, recogniser.skipped) == (4, {"no face": 1})
    unknown = read_embeddings(tmp_path / "g.parquet", context="context")
    assert not unknown.labels["context"][unknown.ids == "ann0/small.png"].any()


def test_a_vector_that_says_nothing_is_left_out(tmp_path: Path, pictures: ImageSet) -> None:
    class Broken:
        name, dim, card = "broken", 2, card(dim=2)

        def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
            vectors = np.ones((len(images), 2), dtype=np.float32)
            vectors[0], vectors[1] = np.nan, 0
            return vectors

    encoded = encode_images(pictures, Broken(), tmp_path / "e.parquet", detector=None, batch=45)
    assert encoded.skipped == {"no usable vector": 2}
    assert len(read_embeddings(tmp_path / "e.parquet")) == 43


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_number_of_threads_changes_no_byte(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, threads: int
) -> None:
    encode_images(pictures, encoder, tmp_path / "a.parquet", detector=Found(), batch=4, threads=3)
    encode_images(pictures, encoder, tmp_path / "b.parquet", detector=Found(), batch=4, threads=threads)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_pictures_are_read_only_a_little_ahead_of_the_encoder(tmp_path: Path, pictures: ImageSet) -> None:
    reads: list[str] = []
    seen: list[int] = []

    class Noting:
        name, dim, card = "noting", 1, card(dim=1)

        def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
            seen.append(len(reads))
            return np.ones((len(images), 1), dtype=np.float32)

    encode_images(counted(pictures, reads), Noting(), tmp_path / "e.parquet", detector=None, batch=2, threads=2)
    ahead = np.array(seen) - 2 * np.arange(1, len(seen) + 1)
    assert ahead.max() <= 2 * 2 + 2


def test_nothing_usable_is_one_sentence(tmp_path: Path, encoder: OnnxEncoder) -> None:
    images = read_images(write_folder(tmp_path / "faces", {"a/1.jpg": b"", "b/1.jpg": b"x"}))
    with refused("encoder", "faces", "of 2", "1"):
        encode_images(images, encoder, tmp_path / "e.parquet", detector=None)
