"""If this fails, faces do not fill the same share of their canvas, or pictures that cannot are used all the same."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.scenes import BOX, FEATURES, Scene, drawn
from unface.attribute import FCR, Canvas, LocatedPicture, canvas_of
from unface.attribute.canvas import AT_BORDER, NO_FACE, NO_LANDMARKS, TOO_LARGE
from unface.faces import Face

PICTURE = drawn(Scene(0, 0), 1.0, np.array([130.0, 120.0]))


def made(picture: LocatedPicture, size: int = 224) -> Canvas:
    found = canvas_of(picture, size)
    assert isinstance(found, Canvas)
    return found


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.3])
def test_the_face_fills_a_third_of_the_canvas_and_lies_in_its_middle(scale: float) -> None:
    canvas = made(drawn(Scene(0, 0), scale, np.array([130.0, 120.0])))
    assert canvas.image.shape == (224, 224, 3)
    assert canvas.face.box[2] * canvas.face.box[3] / 224**2 == pytest.approx(FCR, rel=0.02)
    np.testing.assert_allclose(canvas.face.box[:2] + canvas.face.box[2:] / 2, 112, atol=1.5)
    side = np.sqrt(BOX.prod() / FCR)
    np.testing.assert_allclose(canvas.face.landmarks, 111.5 + FEATURES * 224 / side, atol=1.7)


def test_landmarks_stay_on_what_they_mark() -> None:
    image = np.zeros((300, 300, 3), dtype=np.uint8)
    landmarks = np.rint(np.array([150.0, 140.0]) + FEATURES)
    for x, y in landmarks.astype(int):
        image[y - 1 : y + 2, x - 1 : x + 2] = 255
    canvas = made(LocatedPicture("a", "a", image, Face(np.array([104.0, 88, 92, 104]), landmarks, 1.0)))
    for x, y in canvas.face.landmarks:
        around = canvas.image[round(y) - 4 : round(y) + 5, round(x) - 4 : round(x) + 5, 0].astype(float)
        centre = (np.indices(around.shape) * around).sum(axis=(1, 2)) / around.sum()
        np.testing.assert_allclose(centre, (y - round(y) + 4, x - round(x) + 4), atol=0.1)


def test_what_lies_outside_is_the_mean_colour_and_its_share_is_known() -> None:
    side = round(float(np.sqrt(BOX.prod() / FCR)))
    canvas = made(drawn(Scene(0, 0), 1.0, np.array([side / 2 - 20, 120.0])))
    assert canvas.padding == pytest.approx(20 / (4 * side), abs=1 / side)
    picture = drawn(Scene(0, 0), 1.0, np.array([side / 2 - 20, 120.0])).image
    assert picture is not None
    strip = canvas.image[:, : int(18 * 224 / side)]
    assert (strip == strip[0, 0]).all()
    np.testing.assert_allclose(strip[0, 0], picture.reshape(-1, 3).mean(axis=0), atol=0.51)


def test_a_face_too_near_to_the_border_is_refused() -> None:
    # 0.15 · 4 sides = 0.6 of a side of padding: two corners' worth of strips.
    assert canvas_of(drawn(Scene(0, 0), 1.0, np.array([30.0, 30.0])), 224) == AT_BORDER
    assert isinstance(canvas_of(drawn(Scene(0, 0), 1.0, np.array([45.0, 60.0])), 224), Canvas)
    assert canvas_of(drawn(Scene(0, 0), 1.0, np.array([-500.0, 120.0])), 224) == AT_BORDER


def test_a_face_that_leaves_no_room_is_refused() -> None:
    assert canvas_of(drawn(Scene(0, 0), 2.6, np.array([130.0, 125.0])), 224) == TOO_LARGE
    assert isinstance(canvas_of(drawn(Scene(0, 0), 1.8, np.array([130.0, 125.0])), 224), Canvas)


def test_a_picture_without_a_usable_face_says_so() -> None:
    assert PICTURE.face is not None
    assert canvas_of(replace(PICTURE, face=None), 224) == NO_FACE
    assert canvas_of(LocatedPicture("a", "a", None, None, "truncated or damaged"), 224) == "truncated or damaged"
    for landmarks in (np.full((5, 2), 50.0), np.full((5, 2), np.nan), np.empty((0, 2))):
        assert canvas_of(replace(PICTURE, face=replace(PICTURE.face, landmarks=landmarks)), 224) == NO_LANDMARKS
    for box in (np.array([50.0, 50, 0, 40]), np.array([50.0, 50, 40, np.inf])):
        assert canvas_of(replace(PICTURE, face=replace(PICTURE.face, box=box)), 224) == NO_LANDMARKS
