"""If these fail, a mask covers something else than the face or its ring, or a canvas moves what it shows."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.attribute.scenes import BOX, FEATURES, Scene, drawn
from unface.attribute import FCR, Canvas, LocatedPicture, canvas_of
from unface.attribute.canvas import AT_BORDER, NO_FACE, NO_LANDMARKS, TOO_LARGE
from unface.attribute.perturb import (
    REVEALED,
    SIGMAS,
    blur_series,
    blurred,
    coverage,
    face_blurs,
    feathered,
    masks_of,
    nearer_axes,
    revealed,
    ring_blur,
)
from unface.faces import Face
from unface.result.attribution import Axes
from unface.seeds import stream

SIZE = 224


def some_landmarks(rng: np.random.Generator) -> NDArray[np.float64]:
    """A face of any likely size, turn, width and place."""
    angle, scale = rng.normal(0, 0.3), rng.uniform(0.6, 1.25)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    shape = FEATURES * rng.uniform((0.5, 0.8), (1.2, 1.2))
    return np.asarray(scale * shape @ turn + SIZE / 2 + rng.uniform(-25, 25, 2))


def canvas(number: int = 0) -> Canvas:
    made = canvas_of(Scene(number, number).draw(), SIZE)
    assert isinstance(made, Canvas)
    return made


def test_masks_are_the_same_at_every_call() -> None:
    rng = stream(0, "again")
    for landmarks in (some_landmarks(rng) for _ in range(10)):
        first = masks_of(landmarks, SIZE, "semi")
        for _ in range(5):
            again = masks_of(landmarks, SIZE, "semi")
            assert again.distance.tobytes() == first.distance.tobytes()
            assert again.area_difference == first.area_difference


def test_a_ring_has_the_area_of_its_face_on_a_thousand_masks() -> None:
    rng = stream(0, "masks")
    for _ in range(1000):
        masks = masks_of(some_landmarks(rng), SIZE, "semi")
        assert masks.ring is not None
        face, ring = np.count_nonzero(masks.face), np.count_nonzero(masks.ring)
        assert abs(ring - face) <= 0.02 * face
        assert masks.area_difference == abs(ring - face) / face
        assert not (masks.ring & masks.face).any()
        assert masks.distance[masks.ring].max() <= masks.distance[~(masks.ring | masks.face)].min()


def test_a_face_that_leaves_too_little_background_has_no_ring() -> None:
    masks = masks_of(2.4 * FEATURES + SIZE / 2, SIZE, "semi")
    assert masks.face.mean() > 0.6
    assert masks.ring is None
    assert masks.area_difference == pytest.approx(1 - (~masks.face).sum() / masks.face.sum())


def test_whole_axes_make_a_quarter_of_the_area_around_the_same_centre() -> None:
    landmarks = FEATURES + SIZE / 2
    semi, full = (masks_of(landmarks, SIZE, axes).face for axes in get_args(Axes))
    assert semi.sum() == pytest.approx(np.pi * 48 * 59.8, rel=0.01)
    assert full.sum() == pytest.approx(semi.sum() / 4, rel=0.02)
    assert (full & ~semi).sum() == 0
    np.testing.assert_allclose(np.argwhere(full).mean(axis=0), np.argwhere(semi).mean(axis=0), atol=0.5)


def test_the_reading_that_comes_nearer_to_the_target_is_taken() -> None:
    made = canvas()
    assert nearer_axes([made]) == "semi"
    assert coverage(made, "semi") == pytest.approx(0.311, abs=0.003)
    wide = canvas_of(Scene(0, 0).draw(), SIZE)
    assert isinstance(wide, Canvas)
    centre = wide.face.landmarks.mean(axis=0)
    wide.face.landmarks[:] = centre + 2.1 * (wide.face.landmarks - centre)
    assert nearer_axes([wide]) == "full"


def test_the_fcr_does_not_depend_on_the_canvas_an_encoder_wants() -> None:
    small, large = (canvas_of(Scene(1, 1).draw(), size) for size in (SIZE, 288))
    assert isinstance(small, Canvas)
    assert isinstance(large, Canvas)
    assert coverage(small, "semi") == coverage(large, "semi")


def test_edges_are_soft_over_three_pixels() -> None:
    half = np.zeros((20, 20), dtype=bool)
    half[:, 10:] = True
    weight = feathered(half)[10]
    assert weight[:7].max() == 0  # three pixels on either side, and no further
    assert weight[13:].min() == pytest.approx(1)
    assert 0 < weight[9] < 0.5 < weight[10] < 1


@pytest.mark.parametrize(("sigma", "kernel"), [(1, 7), (8, 49)])
def test_a_blur_reaches_three_standard_deviations(sigma: int, kernel: int) -> None:
    line = np.zeros((101, 101, 3), dtype=np.uint8)
    line[:, 50:] = 255
    seen = blurred(line, sigma)[50, :, 0].astype(int)
    reach = kernel // 2
    assert (seen[: 50 - reach] == 0).all()
    assert (seen[50 + reach :] == 255).all()
    assert seen[50 - round(2.6 * sigma)] > 0
    assert seen[50] == pytest.approx(255 * (0.5 + 0.5 * 0.3989 / sigma), abs=2)


def test_only_the_face_is_blurred_or_only_the_ring() -> None:
    made = canvas()
    masks = masks_of(made.face.landmarks, SIZE, "semi")
    assert masks.ring is not None
    series = blur_series(made.image)
    faces, ring = face_blurs(series, masks), ring_blur(series, masks.ring)
    assert len(faces) == len(SIGMAS)
    assert faces[0] is made.image
    far = masks.distance > 4
    deep = feathered(masks.face) == 1
    for image, whole in zip(faces, series, strict=True):
        np.testing.assert_array_equal(image[far], made.image[far])
        np.testing.assert_array_equal(image[deep], whole[deep])
    outside = feathered(masks.ring) == 0
    np.testing.assert_array_equal(ring[outside], made.image[outside])
    np.testing.assert_array_equal(ring[feathered(masks.ring) == 1], series[-1][feathered(masks.ring) == 1])


def test_background_is_revealed_from_the_face_outwards_by_share() -> None:
    made = canvas()
    masks = masks_of(made.face.landmarks, SIZE, "semi")
    before = masks.face
    for share in REVEALED[1:]:
        nearest = masks.nearest(share)
        assert (nearest | before).sum() == nearest.sum()
        assert (nearest & ~masks.face).sum() == pytest.approx(share * (~masks.face).sum(), rel=0.01)
        before = nearest
    assert before.all()
    frames = revealed(made.image, masks)
    assert len(frames) == len(REVEALED) - 1
    deep = feathered(masks.face) == 1
    for frame in frames:
        np.testing.assert_array_equal(frame[deep], made.image[deep])
    assert (frames[0][masks.distance > 4] == 127).all()
    hidden = masks.distance > masks.distance[masks.nearest(0.5)].max() + 4
    assert (frames[2][hidden] == 127).all()


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
