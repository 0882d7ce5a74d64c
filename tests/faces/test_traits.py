"""If these fail, a trait is cut elsewhere, or the surroundings of a face are of the face itself."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.faces.drawn import scene
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import refused
from unface.data import decode, read_images
from unface.faces import (
    ARCFACE_112,
    CONTEXT_DIM,
    TRAITS,
    Face,
    TraitCrop,
    context_signature,
    cut_out,
    face_ellipse,
    five_of,
    keep_only,
    main_face,
    perceptual_hash,
    trait_region,
)
from unface.faces.detect import YuNet
from unface.faces.traits import LEFT_CORNER, LEFT_EYE, NOSE, NOSE_TIP, RIGHT_CORNER, RIGHT_EYE, Landmarks106
from unface.seeds import stream

# An upright face by hand: eyes 100 pixels apart at y = 200, nose tip 60 below, nose 50 wide, mouth 80 wide.
BY_HAND = np.full((106, 2), (150.0, 250.0))
BY_HAND[LEFT_EYE], BY_HAND[RIGHT_EYE] = (100, 200), (200, 200)
BY_HAND[NOSE] = (150, 230)
BY_HAND[76], BY_HAND[82], BY_HAND[NOSE_TIP] = (125, 250), (175, 250), (150, 260)
BY_HAND[LEFT_CORNER], BY_HAND[RIGHT_CORNER] = (110, 300), (190, 310)
BY_HAND[0], BY_HAND[1], BY_HAND[17] = (150, 380), (45, 190), (260, 195)


@pytest.mark.parametrize(
    ("trait", "left", "top", "right", "bottom"),
    [
        ("face", 45, 190, 260, 380),  # of all points
        ("eyes", 50, 175, 250, 225),  # 50 % and 25 % beyond the eyes
        ("nose", 115, 170, 185, 285),  # 90 % above and 25 % below the tip
        ("mouth", 85, 270, 215, 340),  # 25 % and 30 % beyond the corners
    ],
)
def test_regions_have_the_papers_proportions(trait: str, left: int, top: int, right: int, bottom: int) -> None:
    region = trait_region(BY_HAND, trait)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    np.testing.assert_allclose(region.corners, corners, atol=1e-9)
    assert (region.width, region.height) == pytest.approx((right - left, bottom - top))
    mask = trait_region(BY_HAND - 0.5, trait).mask((400, 400))  # its edges between pixels
    expected = np.zeros((400, 400), dtype=bool)
    expected[top:bottom, left:right] = True
    np.testing.assert_array_equal(mask, expected)


@pytest.mark.parametrize("trait", TRAITS)
def test_a_region_moves_turns_and_grows_with_the_face(trait: str) -> None:
    angle, scale = 0.5, 1.7
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = trait_region(BY_HAND @ turn.T + (31, -12), trait)
    straight = trait_region(BY_HAND, trait)
    np.testing.assert_allclose(moved.corners, straight.corners @ turn.T + (31, -12), atol=1e-9)
    assert (moved.width, moved.height) == pytest.approx((scale * straight.width, scale * straight.height))


def test_cutting_out_is_slicing_when_the_face_is_upright_and_keeping_greys_the_rest() -> None:
    picture = np.arange(400 * 400 * 3, dtype=np.uint32).reshape(400, 400, 3).astype(np.uint8)
    region = trait_region(BY_HAND - 0.5, "eyes")  # its outer edges between pixels
    np.testing.assert_array_equal(cut_out(picture, region), picture[175:225, 50:250])
    kept = keep_only(picture, region)
    np.testing.assert_array_equal(kept[175:225, 50:250], picture[175:225, 50:250])
    kept[175:225, 50:250] = 127
    assert (kept == 127).all()


class Given:
    """Landmarks that are always the same."""

    def __init__(self, points: NDArray[np.float64] | None) -> None:
        self._points = points

    def points(self, image: NDArray[np.uint8], face: Face) -> NDArray[np.float64] | None:
        return self._points


@pytest.mark.parametrize(
    ("points", "why"),
    [
        (None, "no landmarks"),
        (BY_HAND / 10, "eyes smaller than 8 pixels"),  # 5 pixels high
        (BY_HAND + np.array([260, 0]), "eyes outside the picture"),
    ],
)
def test_what_cannot_be_used_is_named_in_a_few_words(points: NDArray[np.float64] | None, why: str) -> None:
    crop = TraitCrop("eyes", Given(points))  # type: ignore[arg-type]
    face = Face(np.array([50.0, 100, 200, 250]), np.zeros((5, 2)), 0.9)
    assert crop.region(np.zeros((400, 400, 3), dtype=np.uint8), face) == why
    with refused("faces", None, "'ear'"):
        trait_region(BY_HAND, "ear")


def test_106_points_agree_with_the_detectors_five_and_lie_in_order() -> None:
    """Within 0.15 distances between the eyes on average for each of the five, in 24 people who do not exist."""
    detector, landmarks = YuNet(weights_here("yunet")), Landmarks106(weights_here("landmarks-106"))
    apart = []
    for ref in read_images(nobody_pictures()).images[::12]:
        picture = decode(ref.read())
        face = main_face(detector.detect(picture), picture.shape)
        assert face is not None
        points = landmarks.points(picture, face)
        assert points is not None
        between = np.linalg.norm(face.landmarks[1] - face.landmarks[0])
        apart.append(np.linalg.norm(five_of(points) - face.landmarks, axis=1) / between)
        masks = {trait: trait_region(points, trait).mask(picture.shape) for trait in TRAITS}
        assert all((masks["face"] & mask).sum() > 0.8 * mask.sum() for mask in masks.values())
        both = {pair: (masks[pair[0]] & masks[pair[1]]).sum() for pair in combinations(("eyes", "nose", "mouth"), 2)}
        # the nose reaches 90 % above its tip, so it has to show what is between the eyes
        assert both["eyes", "mouth"] == 0
        assert both["nose", "mouth"] < 0.35 * masks["mouth"].sum()
    assert len(apart) == 24
    assert np.mean(apart, axis=0).max() < 0.15
    assert np.max(np.mean(apart, axis=1)) < 0.2


def test_points_that_are_not_on_the_face_are_no_points() -> None:
    landmarks = Landmarks106(weights_here("landmarks-106"))
    picture = scene((200, 200), [(100, 100, 160)])
    face = main_face(YuNet(weights_here("yunet")).detect(picture), picture.shape)
    assert face is not None
    elsewhere = Face(face.box, face.landmarks + np.array([0.6 * face.box[2], 0]), face.score)
    assert landmarks.points(picture, elsewhere) is None
    for box in ((0, 0, 0, 0), (np.nan, 0, 10, 10)):
        assert landmarks.points(picture, Face(np.array(box, dtype=float), face.landmarks, 0.9)) is None


LANDMARKS = ARCFACE_112 + np.array([60.0, 40.0])  # in a picture of 230 × 200
SHAPE = (200, 230, 3)


def backdrop(seed: int) -> NDArray[np.uint8]:
    """Patches of colour, as large as furniture."""
    patches = stream(seed, "backdrop").integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.kron(patches, np.ones((40, 46, 1), dtype=np.uint8))


def test_the_ellipse_is_as_wide_and_high_as_the_paper_says() -> None:
    landmarks = np.array([(80, 100), (120, 100), (100, 120), (85, 150), (115, 150)], dtype=float)
    inside = face_ellipse(landmarks, (300, 300))
    rows, columns = np.nonzero(inside)
    assert (columns.min(), columns.max()) == (100 - 48, 100 + 48)  # 1.2 × 40 between the eyes
    assert (rows.min(), rows.max()) == (125 - 65, 125 + 65)  # 1.3 × 50 from eyes to mouth
    assert inside.sum() == pytest.approx(np.pi * 48 * 65, rel=0.01)


def test_the_ellipse_turns_with_the_eyes() -> None:
    landmarks = np.array([(80, 100), (120, 100), (100, 120), (85, 150), (115, 150)], dtype=float)
    landmarks += 50, 25
    upright = face_ellipse(landmarks, (300, 300))
    lying = face_ellipse(np.stack([landmarks[:, 1], 300 - landmarks[:, 0]], axis=1), (300, 300))
    turned = np.rot90(upright)
    assert np.mean(turned != lying) < 0.005


def test_landmarks_on_one_point_cover_nothing() -> None:
    assert not face_ellipse(np.ones((5, 2)), (20, 20)).any()


def test_the_face_itself_does_not_matter() -> None:
    scene = backdrop(0)
    other = scene.copy()
    other[face_ellipse(LANDMARKS, SHAPE)] = 255 - other[face_ellipse(LANDMARKS, SHAPE)]
    same = context_signature(scene, LANDMARKS) @ context_signature(other, LANDMARKS)
    assert same > 0.99
    whole = perceptual_hash(scene) ^ perceptual_hash(other)
    assert whole.bit_count() > 8


def test_the_backdrop_does() -> None:
    first = context_signature(backdrop(0), LANDMARKS)
    others = [float(first @ context_signature(backdrop(seed), LANDMARKS)) for seed in range(1, 30)]
    assert max(others) < 0.7
    assert abs(np.mean(others)) < 0.15


def test_a_signature_is_centred_of_length_one_and_so_its_dot_product_is_a_correlation() -> None:
    a, b = (context_signature(backdrop(seed), LANDMARKS).astype(np.float64) for seed in (0, 1))
    assert a.shape == (CONTEXT_DIM,)
    assert a.sum() == pytest.approx(0, abs=1e-4)
    assert a @ b == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-5)


def test_size_and_brightness_of_the_picture_do_not_matter() -> None:
    scene = backdrop(3)
    twice = np.kron(scene, np.ones((2, 2, 1), dtype=np.uint8))
    dark = (scene * 0.5).astype(np.uint8)
    first = context_signature(scene, LANDMARKS)
    assert first @ context_signature(twice, 2 * LANDMARKS) > 0.99
    assert first @ context_signature(dark, LANDMARKS) > 0.99


@pytest.mark.parametrize("grey", [0, 128, 255])
def test_one_colour_says_nothing(grey: int) -> None:
    assert not context_signature(np.full(SHAPE, grey, dtype=np.uint8), LANDMARKS).any()


def test_without_a_face_or_without_a_background_nothing_is_said() -> None:
    assert not context_signature(backdrop(0), None).any()
    filling = (LANDMARKS - LANDMARKS.mean(0)) * 20 + (115, 100)
    assert not context_signature(backdrop(0), filling).any()


def test_a_hash_survives_noise_and_scale_and_tells_scenes_apart() -> None:
    scene = backdrop(0)
    noisy = np.clip(scene + stream(0, "noise").normal(0, 6, SHAPE), 0, 255).astype(np.uint8)
    twice = np.kron(scene, np.ones((2, 2, 1), dtype=np.uint8))
    for alike in (noisy, twice):
        assert (perceptual_hash(scene) ^ perceptual_hash(alike)).bit_count() <= 8
    apart = [(perceptual_hash(scene) ^ perceptual_hash(backdrop(seed))).bit_count() for seed in range(1, 20)]
    assert min(apart) > 12
    assert 0 <= perceptual_hash(scene) < 2**64
