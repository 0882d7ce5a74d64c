"""The ellipse that covers a face, from five landmarks (paper 001, App. D)."""

import numpy as np
from numpy.typing import NDArray

_WIDTH = 1.2  # semi-axis along the eyes, in distances between the eyes
_HEIGHT = 1.3  # semi-axis across them, in distances from the eyes to the mouth


def face_ellipse(landmarks: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """(h, w), true inside: centred between eyes and mouth, turned with the line of the eyes."""
    left_eye, right_eye, _, left_mouth, right_mouth = np.asarray(landmarks, dtype=np.float64)
    eyes, mouth = (left_eye + right_eye) / 2, (left_mouth + right_mouth) / 2
    along = right_eye - left_eye
    between, down = float(np.linalg.norm(along)), float(np.linalg.norm(mouth - eyes))
    if not between * down > 0:
        return np.zeros(shape[:2], dtype=bool)
    along = along / between
    offset = np.indices(shape[:2])[::-1].transpose(1, 2, 0) - (eyes + mouth) / 2
    across = offset @ np.array([-along[1], along[0]])
    inside: NDArray[np.bool_] = ((offset @ along) / (_WIDTH * between)) ** 2 + (across / (_HEIGHT * down)) ** 2 <= 1
    return inside
