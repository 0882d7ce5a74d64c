"""If this fails, faces reach a recogniser turned, shifted or mirrored, and every number after that is too low."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.faces import ARCFACE_112, DLIB_150, align_face, similarity
from unface.seeds import stream


def applied(matrix: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    moved: NDArray[np.float64] = points @ matrix[:, :2].T + matrix[:, 2]
    return moved


def umeyama(points: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """By singular values, for any dimension (Umeyama 1991, eqs. 40-42)."""
    a, b = points - points.mean(0), targets - targets.mean(0)
    u, s, vt = np.linalg.svd(b.T @ a)
    sign = np.diag([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u @ sign @ vt
    scale = np.trace(np.diag(s) @ sign) / (a**2).sum()
    return np.column_stack([scale * rotation, targets.mean(0) - scale * rotation @ points.mean(0)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_closed_form_is_umeyamas(seed: int) -> None:
    points, targets = stream(seed, "points").normal(50, 20, (2, 5, 2))
    np.testing.assert_allclose(similarity(points, targets), umeyama(points, targets), rtol=1e-9, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.floats(-3.1, 3.1), st.floats(0.05, 20), st.floats(-500, 500), st.floats(-500, 500))
def test_a_similarity_is_undone_exactly(angle: float, scale: float, right: float, down: float) -> None:
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = ARCFACE_112 @ turn.T + (right, down)
    np.testing.assert_allclose(applied(similarity(moved, ARCFACE_112), moved), ARCFACE_112, atol=1e-8)


def test_a_mirrored_face_is_not_mirrored_back() -> None:
    mirrored = ARCFACE_112 * (-1, 1)
    assert np.linalg.det(similarity(mirrored, ARCFACE_112)[:, :2]) > 0


def test_five_times_the_same_point_is_only_shifted() -> None:
    matrix = similarity(np.ones((5, 2)), ARCFACE_112)
    np.testing.assert_allclose(matrix[:, :2], np.eye(2))


@pytest.mark.parametrize(("template", "size"), [(ARCFACE_112, 112), (DLIB_150, 150)])
@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0, 9.0])
def test_marks_drawn_at_the_landmarks_land_on_the_template(
    template: NDArray[np.float64], size: int, scale: float
) -> None:
    angle = 0.4
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    landmarks = (template - size / 2) @ turn.T + 1.2 * size * max(scale, 1)
    side = int(2.4 * size * max(scale, 1))
    rows, columns = np.indices((side, side))
    for number in range(5):
        distance = np.hypot(columns - landmarks[number, 0], rows - landmarks[number, 1])
        picture = np.repeat((255 * np.exp(-((distance / (3 * scale)) ** 2)))[..., None], 3, axis=2).astype(np.uint8)
        aligned = align_face(picture, landmarks, template, size)[..., 0].astype(float)
        assert aligned.shape == (size, size)
        ys, xs = np.indices(aligned.shape)
        centre = np.array([(aligned * xs).sum(), (aligned * ys).sum()]) / aligned.sum()
        np.testing.assert_allclose(centre, template[number], atol=0.3)


def test_both_templates_are_upright_faces_left_before_right() -> None:
    for template, size in ((ARCFACE_112, 112), (DLIB_150, 150)):
        left_eye, right_eye, nose, left_mouth, right_mouth = template
        assert 0 < left_eye[0] < nose[0] < right_eye[0] < size
        assert left_eye[1] < nose[1] < left_mouth[1] < size
        assert left_mouth[0] < right_mouth[0]
