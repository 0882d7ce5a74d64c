"""If this fails, an encoder sees pictures in other colours, scales or cuts than it was trained on."""

import numpy as np
import pytest

from tests.encode.tiny import SIZE, card, noise
from tests.refusals.table import refused
from unface.encode import framed, tensor_of
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
