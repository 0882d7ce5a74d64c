"""If these fail, an encoder sees another part of a picture than its card says."""

from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import jpeg, people, write_folder, write_zip
from tests.encode.tiny import SIZE, card, noise, write_onnx
from tests.kit.command import unface as run
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import refused
from unface.auditing.copies import without_copies
from unface.data import ImageRef, ImageSet, decode, read_embeddings, read_images
from unface.encode import encode_images, framed, tensor_of, with_copies
from unface.encode.augment import altered
from unface.encode.onnx import OnnxEncoder
from unface.encode.prepare import Preparer
from unface.faces import Landmarks106, TraitCrop, cut_out, main_face, trait_region
from unface.faces.detect import YuNet
from unface.models import Input


def wide() -> np.ndarray:
    """Thirds of red, green and blue, 48 × 16."""
    image = np.zeros((16, 48, 3), dtype=np.uint8)
    for third in range(3):
        image[:, 16 * third : 16 * third + 16, third] = 255
    return image


def test_a_picture_of_the_right_size_is_passed_on_as_it_is() -> None:
    (image,) = noise(1)
    assert framed(image, card().input) is image
    assert framed(wide(), card(size=0).input).shape == (16, 48, 3)


def test_stretching_keeps_everything_cutting_the_middle_and_bars_the_shape() -> None:
    stretched, cut, barred = (framed(wide(), card(resize=how).input) for how in ("stretch", "crop", "letterbox"))
    for picture in (stretched, cut, barred):
        assert picture.shape == (SIZE, SIZE, 3)
    assert [int(np.argmax(stretched[8, column])) for column in (2, 8, 13)] == [0, 1, 2]
    assert (cut == (0, 255, 0)).all()
    assert not barred[:5].any()
    assert not barred[-5:].any()
    assert [int(np.argmax(barred[8, column])) for column in (2, 8, 13)] == [0, 1, 2]


def test_shrinking_averages_instead_of_skipping() -> None:
    stripes = np.zeros((160, 160, 3), dtype=np.uint8)
    stripes[::2] = 255
    assert np.abs(framed(stripes, card().input).astype(int) - 127).max() <= 5


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 500, 3), (500, 3, 3), (17, 15, 3)])
@pytest.mark.parametrize("resize", ["stretch", "crop", "letterbox"])
def test_any_shape_comes_out_at_the_models_size(shape: tuple[int, int, int], resize: str) -> None:
    assert framed(np.full(shape, 7, dtype=np.uint8), card(resize=resize).input).shape == (SIZE, SIZE, 3)


def test_the_tensor_is_what_the_card_says() -> None:
    images = noise(3)
    rgb = np.stack(images).astype(np.float32)
    plain = tensor_of(images, card(mean=(1.0, 2.0, 3.0), std=(10.0, 20.0, 30.0)).input)
    np.testing.assert_allclose(plain, ((rgb - [1, 2, 3]) / [10, 20, 30]).transpose(0, 3, 1, 2), rtol=1e-6)
    assert plain.dtype == np.float32
    assert plain.flags.c_contiguous
    last = tensor_of(images, card(layout="NHWC", channels="BGR", mean=(1.0, 2.0, 3.0), std=(1.0, 1.0, 1.0)).input)
    np.testing.assert_allclose(last, rgb[..., ::-1] - [1, 2, 3])
    raw = tensor_of(images, card(layout="NHWC", dtype="uint8").input)
    np.testing.assert_array_equal(raw, np.stack(images))


@pytest.mark.parametrize("image", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3))])
def test_what_is_no_picture_is_one_sentence(image: np.ndarray) -> None:
    with refused("encoder", None, "expected uint8", "3"):
        framed(image, card().input)


def test_a_strip_of_one_pixel_is_framed_from_its_middle_and_not_blown_up() -> None:
    """Scaled whole by its short side, this one would take ten gigabytes."""
    strip = np.zeros((1, 65_000, 3), dtype=np.uint8)
    strip[:, 32_400:32_600] = 255
    wanted = Input(224, "NCHW", "RGB", "float32", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "crop")
    assert (framed(strip, wanted) == 255).all()
    assert (framed(np.ascontiguousarray(strip.transpose(1, 0, 2)), wanted) == 255).all()


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
