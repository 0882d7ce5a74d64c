"""If this fails, the measure of "same shoot" sees the face itself, or does not see the backdrop."""

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.faces import ARCFACE_112, CONTEXT_DIM, context_signature, face_ellipse, perceptual_hash
from unface.seeds import stream

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
