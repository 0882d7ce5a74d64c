"""What surrounds a face, in a few numbers: two pictures of one shoot are alike in them whoever is on them."""

import numpy as np
from numpy.typing import NDArray

from unface.faces.face import face_ellipse

_GRID = 8
CONTEXT_DIM = _GRID * _GRID * 3

_LONGEST = 128  # pixels: far finer than the grid, and quick
_LEAST_VISIBLE = 0.05  # of the picture
_LEAST_CONTRAST = 0.5  # grey levels of 255


def context_signature(image: NDArray[np.uint8], landmarks: NDArray[np.float64] | None) -> NDArray[np.float32]:
    """(192,) colours of an 8 × 8 grid with the face left out, centred, of length one.

    The correlation of two signatures is that of two backgrounds. Zeros, which resemble nothing, where there is no
    face to leave out, no background, or one of a single colour.
    """
    import cv2

    nothing = np.zeros(CONTEXT_DIM, dtype=np.float32)
    if landmarks is None:
        return nothing
    shrink = min(1.0, _LONGEST / max(image.shape[:2]))
    height, width = (max(round(length * shrink), _GRID) for length in image.shape[:2])
    scale = np.array([width / image.shape[1], height / image.shape[0]])
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32)
    visible = (~face_ellipse(landmarks * scale, (height, width))).astype(np.float32)
    if visible.mean() < _LEAST_VISIBLE:
        return nothing
    grid = (_GRID, _GRID)
    share = np.asarray(cv2.resize(visible, grid, interpolation=cv2.INTER_AREA), dtype=np.float64)[..., None]
    colour = np.asarray(cv2.resize(small * visible[..., None], grid, interpolation=cv2.INTER_AREA), dtype=np.float64)
    # A cell counts as much as is visible of it: share · (mean colour − grand mean), which sums to zero.
    centred = (colour - share * (colour.sum() / (3 * share.sum()))).reshape(-1)
    length = float(np.linalg.norm(centred))
    if length < _LEAST_CONTRAST * np.sqrt(CONTEXT_DIM):
        return nothing
    return np.asarray(centred / length, dtype=np.float32)


def perceptual_hash(image: NDArray[np.uint8]) -> int:
    """64 bits: the signs of the 8 × 8 lowest frequencies of the grey picture at 32 × 32, against their median."""
    import cv2

    grey = np.asarray(image, dtype=np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    small = cv2.resize(grey, (32, 32), interpolation=cv2.INTER_AREA)
    low = np.asarray(cv2.dct(small), dtype=np.float64)[:8, :8].reshape(-1)
    bits = low > np.median(low[1:])  # the first is the brightness, far above all others
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
