"""Drawn faces at any place, of any size and turn, to be put into one another."""

import cv2
import numpy as np
from numpy.typing import NDArray

from unface.faces import ARCFACE_112, face_ellipse
from unface.seeds import stream

Landmarks = NDArray[np.float64]
Picture = NDArray[np.uint8]


def landmarks_at(right: float, down: float, scale: float = 1.0, angle: float = 0.0) -> Landmarks:
    """A face of the template's proportions, its middle there."""
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved: Landmarks = (ARCFACE_112 - ARCFACE_112.mean(axis=0)) @ turn.T + (right, down)
    return moved


def drawn(landmarks: Landmarks, seed: int, side: int = 200, contrast: float = 1.0) -> Picture:
    """Smooth features of a person on a smooth face, on a backdrop of noise."""
    draw = stream(seed, "face")
    picture = np.asarray(cv2.GaussianBlur(draw.uniform(0, 255, (side, side, 3)), (0, 0), 2), dtype=np.float64)
    inside = face_ellipse(landmarks, (side, side))
    picture[inside] = draw.uniform(90, 160, 3)
    rows, columns = np.indices((side, side))
    size = float(np.linalg.norm(landmarks[1] - landmarks[0])) / 4
    for right, down in landmarks:
        spot = np.exp(-((columns - right) ** 2 + (rows - down) ** 2) / (2 * size**2))
        picture += contrast * np.where(inside, spot, 0)[..., None] * draw.uniform(-60, 60, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


HOST = landmarks_at(100, 95)
DONOR = landmarks_at(105, 100, 1.1, 0.2)
