"""If this fails, a file of eyes holds whole faces, or pictures without the trait vanish uncounted."""

from pathlib import Path

import numpy as np
import pytest

from tests.data.pictures import jpeg, write_zip
from tests.encode.tiny import card, write_onnx
from tests.kit.command import unface as run
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import refused
from unface.data import ImageSet, decode, read_embeddings, read_images
from unface.encode import encode_images
from unface.encode.onnx import OnnxEncoder
from unface.encode.prepare import Preparer
from unface.faces import Landmarks106, TraitCrop, cut_out, main_face, trait_region
from unface.faces.detect import YuNet


@pytest.fixture
def few() -> ImageSet:
    """Two people of the pictures of nobody, three pictures each."""
    return read_images(nobody_pictures()).take([0, 1, 2, 12, 13, 14])


def test_only_the_trait_is_seen_in_its_place_or_cut_out(few: ImageSet) -> None:
    detector, landmarks = YuNet(weights_here("yunet")), Landmarks106(weights_here("landmarks-106"))
    content = few.images[0].read()
    aligned = Preparer(card(size=112, alignment="arcface112").input, detector, TraitCrop("mouth", landmarks))(content)
    assert aligned.frame is not None
    shown = np.argwhere((aligned.frame != 127).any(axis=2))
    # the template's mouth is at (41 … 71, 92); the eyes at y = 52 are grey
    assert shown[:, 0].min() > 72
    assert (np.abs(shown.mean(axis=0) - (92, 56)) < 8).all()
    whole = Preparer(card(size=64, resize="crop").input, detector, TraitCrop("eyes", landmarks))(content)
    assert whole.frame is not None
    picture = decode(content)
    face = main_face(detector.detect(picture), picture.shape)
    assert face is not None
    points = landmarks.points(picture, face)
    assert points is not None
    cut = cut_out(picture, trait_region(points, "eyes"))
    assert cut.shape[1] == pytest.approx(4 * cut.shape[0], rel=0.05)
    assert not whole.frame[:23].any()  # bars above and below keep all of the eyes and their shape
    assert not whole.frame[-23:].any()
    assert abs(float(whole.frame[24:40].mean()) - float(cut.mean())) < 5


def test_each_trait_has_a_space_of_its_own_and_failures_are_counted(tmp_path: Path, few: ImageSet) -> None:
    detector, landmarks = YuNet(weights_here("yunet")), Landmarks106(weights_here("landmarks-106"))
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    small = decode(few.images[0].read())[::8, ::8]
    blank = jpeg(size=(64, 64))
    files = {
        "a/0.png": few.images[0].read(),
        "a/small.png": png(small),
        "b/0.png": few.images[3].read(),
        "b/blank.jpg": blank,
    }
    images = read_images(write_zip(tmp_path / "faces.zip", files))
    crop = TraitCrop("eyes", landmarks)
    eyes = encode_images(images, encoder, tmp_path / "eyes.parquet", detector=detector, crop=crop)
    assert eyes.rows == 2
    assert sum(eyes.skipped.values()) == 2
    assert eyes.skipped["no face"] >= 1
    assert read_embeddings(tmp_path / "eyes.parquet").space.encoder == "tiny:eyes"
    # kept for the same crop alone
    again = {"detector": detector, "keep": True}
    assert encode_images(images, encoder, eyes.path, crop=crop, **again).rows == 2  # type: ignore[arg-type]
    for other in (None, TraitCrop("nose", landmarks)):
        with refused("encoder", ..., "other"):
            encode_images(images, encoder, eyes.path, crop=other, **again)  # type: ignore[arg-type]
    with refused("encoder", None, "--detector none"):
        encode_images(images, encoder, tmp_path / "e.parquet", detector=None, crop=crop)


def png(picture: np.ndarray) -> bytes:
    from io import BytesIO

    from PIL import Image

    out = BytesIO()
    Image.fromarray(picture).save(out, "PNG")
    return out.getvalue()


def test_the_command_writes_one_file_for_each_trait(tmp_path: Path, few: ImageSet) -> None:
    weights_here("landmarks-106"), weights_here("sface")
    files = {ref.id: ref.read() for ref in few}
    done = run(
        "encode", write_zip(tmp_path / "few.zip", files), "--encoder", "sface", "--crop", "eyes,mouth",
        "--accept-licence", "--threads", 1, "--out", tmp_path / "traits",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    found = [read_embeddings(tmp_path / "traits" / f"sface-{trait}.parquet") for trait in ("eyes", "mouth")]
    assert [one.space.encoder for one in found] == ["sface:eyes", "sface:mouth"]
    assert [len(one) for one in found] == [6, 6]
    assert not np.allclose(found[0].vectors, found[1].vectors)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--crop", "ears"), "--crop ears: expected each of face, eyes, nose, mouth at most once"),
        (("--crop", "eyes,eyes"), "--crop eyes,eyes: expected each of"),
        (("--crop", "eyes", "--detector", "none"), "--crop eyes: needs a detector; leave out --detector none"),
        (("--crop", "eyes,nose"), "2 crops write one file each; give --out the name of a folder"),
    ],
)
def test_a_crop_that_cannot_be_made_is_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = run("encode", nobody_pictures(), "--encoder", "sface", "--out", tmp_path / "e.parquet", *options)
    assert done.code == 1
    assert words in done.err
    assert done.err.count("\n") == 1
