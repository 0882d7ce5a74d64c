"""If this fails, face and background are not blurred on equal areas, or not as strongly, or not where they are."""

from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.attribute.scenes import FEATURES, Scene
from unface.attribute.canvas import Canvas, canvas_of
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
