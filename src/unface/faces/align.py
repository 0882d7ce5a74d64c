"""Alignment: the similarity that brings five landmarks to where a recogniser expects them."""

import numpy as np
from numpy.typing import NDArray

# Eyes, nose tip, mouth corners, left before right in the picture.
ARCFACE_112 = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
# dlib's mean face of 68 points in its 150-pixel chip with a quarter of padding, brought to the same five points.
DLIB_150 = np.array(
    [(47.5659, 46.5990), (100.4761, 46.5990), (74.0127, 76.5625), (50.4149, 103.0233), (97.6104, 103.0233)]
)

_COARSEST = 0.5  # bilinear sampling skips pixels below this scale


def align_face(
    image: NDArray[np.uint8], landmarks: NDArray[np.float64], template: NDArray[np.float64], size: int
) -> NDArray[np.uint8]:
    """(size, size, 3): the picture moved so that its landmarks (5, 2) fall on the template's; black outside."""
    import cv2

    matrix = similarity(landmarks, template)
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    if scale < _COARSEST:
        # Averaged down first; a pixel's centre c lies at (c + ½)·k − ½ afterwards.
        height, width = (max(round(length * scale), 1) for length in image.shape[:2])
        shrink = np.array([width / image.shape[1], height / image.shape[0]])
        image = np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        matrix = similarity((landmarks + 0.5) * shrink - 0.5, template)
    return np.asarray(cv2.warpAffine(image, matrix, (size, size), flags=cv2.INTER_LINEAR), dtype=np.uint8)


def similarity(points: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2, 3) rotation, scale and shift, never a reflection, that brings (n, 2) points nearest to the targets.

    A similarity of the plane is z ↦ az + b over complex numbers, so least squares give it in closed form; it is
    Umeyama's (1991) solution in two dimensions.
    """
    source, target = (np.asarray(p, dtype=np.float64) @ np.array([1, 1j]) for p in (points, targets))
    from_mean, to_mean = source - source.mean(), target - target.mean()
    spread = float(np.vdot(from_mean, from_mean).real)
    factor = np.vdot(from_mean, to_mean) / spread if spread > 0 else 1.0 + 0j
    shift = target.mean() - factor * source.mean()
    return np.array([[factor.real, -factor.imag, shift.real], [factor.imag, factor.real, shift.imag]])
