"""Faces of nobody: a few ellipses that detectors take for a face."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

# centre and half axes in heights of the head, colour
_PARTS = (
    ((0, -0.12), (0.42, 0.52), (60, 40, 30)),  # hair
    ((0, 0), (0.36, 0.48), (224, 172, 140)),
    *(
        part
        for side in (-0.15, 0.15)
        for part in (
            ((side, -0.1), (0.075, 0.04), (250, 250, 250)),
            ((side, -0.1), (0.035, 0.035), (50, 30, 20)),
            ((side, -0.19), (0.09, 0.02), (70, 45, 30)),
        )
    ),
    ((0, 0.06), (0.045, 0.08), (200, 145, 115)),
    ((0, 0.13), (0.07, 0.03), (190, 130, 105)),
    ((0, 0.27), (0.13, 0.04), (180, 70, 70)),
)
LANDMARKS = np.array([(-0.15, -0.1), (0.15, -0.1), (0, 0.13), (-0.13, 0.27), (0.13, 0.27)])


def scene(shape: tuple[int, int], faces: Sequence[tuple[float, float, float]]) -> NDArray[np.uint8]:
    """A picture of (height, width) with a face for each (x, y, height of the head)."""
    image = np.full((*shape, 3), (120, 150, 170), dtype=np.uint8)
    for x, y, size in faces:
        for (right, down), axes, colour in _PARTS:
            centre = (round(x + right * size), round(y + down * size))
            lengths = [max(round(axis * size), 1) for axis in axes]
            cv2.ellipse(image, centre, lengths, 0, 0, 360, colour, -1, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 1.5), dtype=np.uint8)
