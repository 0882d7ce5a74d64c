"""If this fails, a picture is lost or doubled, or a run that was cut off ends in another file than one that was not."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.data.pictures import jpeg, people, write_folder, write_zip
from tests.encode.tiny import DIM, card, expected, write_onnx
from unface.data import ImageSet, Space, read_embeddings, read_images
from unface.data.images import ImageRef
from unface.encode import encode_images, framed
from unface.encode.onnx import OnnxEncoder
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Face
from unface.models import Card


class Found:
    """A detector that finds the same face in every picture, or none in small ones."""

    name = "found"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        if image.shape[0] < 20:
            return []
        return [Face(np.array([2.0, 2.0, 20.0, 20.0]), ARCFACE_112 / 5, 0.9)]


@pytest.fixture
def encoder(tmp_path: Path) -> OnnxEncoder:
    return OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))


@pytest.fixture
def pictures(tmp_path: Path) -> ImageSet:
    return read_images(write_zip(tmp_path / "faces.zip", people(9, 5)))


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


def test_a_finished_file_is_refused_and_with_force_replaced(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    out = tmp_path / "e.parquet"
    encode_images(pictures, encoder, out, detector=None)
    with pytest.raises(UnfaceError, match=r"e\.parquet: exists already; choose another --out or pass --force"):
        encode_images(pictures, encoder, out, detector=None)
    encode_images(pictures.take(range(20)), encoder, out, detector=None, force=True)
    assert pq.read_metadata(out).num_rows == 20
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e.parquet", "faces.zip", "tiny.onnx"]


def counted(images: ImageSet, reads: list[str], stop_at: int | None = None) -> ImageSet:
    """The same pictures, noting each that is read, and failing like a full disk at one of them."""

    def noting(ref: ImageRef) -> ImageRef:
        def read() -> bytes:
            if len(reads) == stop_at:
                raise RuntimeError("pulled the plug")
            reads.append(ref.id)
            return ref.read()

        return ImageRef(ref.id, ref.identity, read)

    return ImageSet(tuple(noting(ref) for ref in images), images.source)


def test_what_was_done_before_a_cut_is_not_done_again(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.encode.pipeline._PART", 8)
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    encode_images(pictures, encoder, whole, detector=Found(), batch=4)
    first: list[str] = []
    with pytest.raises(RuntimeError, match="pulled the plug"):
        encode_images(counted(pictures, first, stop_at=38), encoder, cut, detector=Found(), batch=4, threads=2)
    assert not cut.exists()
    second: list[str] = []
    encode_images(counted(pictures, second), encoder, cut, detector=Found(), batch=4)
    assert 0 < len(second) < 45
    assert second == [image.id for image in pictures][-len(second) :]
    assert cut.read_bytes() == whole.read_bytes()
    assert not (tmp_path / ".cut.parquet.parts").exists()


def test_an_unfinished_file_of_other_pictures_or_settings_is_not_gone_on_with(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    out = tmp_path / "e.parquet"
    with pytest.raises(RuntimeError):
        encode_images(counted(pictures, [], stop_at=30), encoder, out, detector=None, batch=4)
    with pytest.raises(UnfaceError, match=r"was begun with other batch; give the same command, or --force"):
        encode_images(pictures, encoder, out, detector=None, batch=5)
    with pytest.raises(UnfaceError, match="was begun with other pictures, detector"):
        encode_images(pictures.take(range(9)), encoder, out, detector=Found(), batch=4)
    encode_images(pictures.take(range(9)), encoder, out, detector=Found(), batch=4, force=True)
    assert pq.read_metadata(out).num_rows == 9


def test_two_processes_do_not_write_one_file(tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet) -> None:
    out, begun, go = tmp_path / "e.parquet", threading.Event(), threading.Event()

    def slow(ref: ImageRef) -> ImageRef:
        def read() -> bytes:
            begun.set()
            go.wait(20)
            return ref.read()

        return ImageRef(ref.id, ref.identity, read)

    waiting = ImageSet(tuple(slow(ref) for ref in pictures), pictures.source)
    worker = threading.Thread(target=lambda: encode_images(waiting, encoder, out, detector=None))
    worker.start()
    assert begun.wait(20)
    with pytest.raises(UnfaceError, match="another process is writing it"):
        encode_images(pictures, encoder, out, detector=None)
    go.set()
    worker.join(20)
    assert pq.read_metadata(out).num_rows == 45


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
    with pytest.raises(UnfaceError, match=r"faces: none of 2 pictures could be used \(1 empty file, 1 not a picture\)"):
        encode_images(images, encoder, tmp_path / "e.parquet", detector=None)


SCRIPT = """
import sys, time
from pathlib import Path
from tests.encode.tiny import card
from unface.data import read_images
from unface.encode import encode_images, pipeline
from unface.encode.onnx import OnnxEncoder

pipeline._PART = 8
folder = Path(sys.argv[1])
encoder = OnnxEncoder(card(), folder / "tiny.onnx")
plain = encoder.encode
encoder.encode = lambda images: (time.sleep(float(sys.argv[3])), plain(images))[1]
encode_images(read_images(folder / "faces.zip"), encoder, folder / sys.argv[2], detector=None, batch=4)
"""


def run(folder: Path, out: str, pause: float) -> "subprocess.Popen[bytes]":
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), out, str(pause)], env=environment)


@pytest.mark.usefixtures("encoder", "pictures")
def test_killed_without_warning_and_run_again_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    assert run(tmp_path, "whole.parquet", 0).wait(60) == 0
    parts = tmp_path / ".cut.parquet.parts"
    process = run(tmp_path, "cut.parquet", 0.3)
    deadline = time.monotonic() + 60
    while len(list(parts.glob("part-*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert not (tmp_path / "cut.parquet").exists()
    assert 2 <= len(list(parts.glob("part-*.parquet"))) < 6
    assert run(tmp_path, "cut.parquet", 0).wait(60) == 0
    assert (tmp_path / "cut.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not parts.exists()


def test_the_card_is_what_decides(tmp_path: Path, encoder: OnnxEncoder) -> None:
    assert isinstance(encoder.card, Card)
    assert (encoder.name, encoder.dim) == ("tiny", DIM)
