"""The ellipse that covers a face, from five landmarks (the ISP paper, App. D)."""

import numpy as np
from numpy.typing import NDArray

_WIDTH = 1.2  # semi-axis along the eyes, in distances between the eyes
_HEIGHT = 1.3  # semi-axis across them, in distances from the eyes to the mouth


def face_ellipse(landmarks: NDArray[np.float64], shape: tuple[int, ...], scale: float = 1.0) -> NDArray[np.bool_]:
    """(h, w), true inside: centred between eyes and mouth, turned with the line of the eyes; axes times ``scale``."""
    landmarks = np.asarray(landmarks, dtype=np.float64)
    if scale != 1:
        centre = (landmarks[:2].mean(axis=0) + landmarks[3:].mean(axis=0)) / 2
        landmarks = centre + scale * (landmarks - centre)
    left_eye, right_eye, _, left_mouth, right_mouth = landmarks
    eyes, mouth = (left_eye + right_eye) / 2, (left_mouth + right_mouth) / 2
    along = right_eye - left_eye
    between, down = float(np.linalg.norm(along)), float(np.linalg.norm(mouth - eyes))
    if not between * down > 0:
        return np.zeros(shape[:2], dtype=bool)
    along = along / between
    x, y = (eyes + mouth) / 2
    column, row = np.arange(shape[1]) - x, np.arange(shape[0])[:, None] - y
    level = (column * along[0] + row * along[1]) / (_WIDTH * between)
    across = (row * along[0] - column * along[1]) / (_HEIGHT * down)
    inside: NDArray[np.bool_] = level**2 + across**2 <= 1
    return inside
