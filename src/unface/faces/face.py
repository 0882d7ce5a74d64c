"""A face in a picture: where it is, which of several faces the picture shows, its crop, alignment and mask.

Its surroundings are a few numbers: two pictures of one shoot are alike in them whoever is on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TINY = 32.0  # pixels: below this side a face holds little of who it is

# Eyes, nose tip, mouth corners, left before right in the picture.
ARCFACE_112 = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
# dlib's mean face of 68 points in its 150-pixel chip with a quarter of padding, brought to the same five points.
DLIB_150 = np.array(
    [(47.5659, 46.5990), (100.4761, 46.5990), (74.0127, 76.5625), (50.4149, 103.0233), (97.6104, 103.0233)]
)

_COARSEST = 0.5  # bilinear sampling skips pixels below this scale
_WIDTH = 1.2  # of the ellipse: semi-axis along the eyes, in distances between the eyes
_HEIGHT = 1.3  # semi-axis across them, in distances from the eyes to the mouth


@dataclass(frozen=True, eq=False)
class Face:
    """A face found in a picture, in pixels of that picture."""

    box: NDArray[np.float64]  # (4,): left, top, width, height
    landmarks: NDArray[np.float64]  # (5, 2): eyes, nose tip, mouth corners, left before right in the picture
    score: float  # 0 … 1, the detector's own

    @property
    def side(self) -> float:
        """Side of the square of the box's area, in pixels."""
        return float(np.sqrt(max(self.box[2] * self.box[3], 0.0)))


def main_face(faces: Sequence[Face], shape: tuple[int, ...]) -> Face | None:
    """The one the picture is of: large and central, area weighted by how near to the centre it is. None of none."""
    height, width = shape[:2]
    centre = np.array([width, height]) / 2

    def prominence(face: Face) -> float:
        offset = np.linalg.norm(face.box[:2] + face.box[2:] / 2 - centre) / np.linalg.norm(centre)
        return face.side**2 * max(1 - float(offset), 0.0)

    return max(faces, key=prominence, default=None)


def box_crop(image: NDArray[np.uint8], face: Face, margin: float) -> NDArray[np.uint8]:
    """The square around a face's box, ``margin`` times its larger side; edge pixels repeat outside the picture."""
    side = max(round(float(max(face.box[2:])) * margin), 1)
    left, top = np.round(face.box[:2] + face.box[2:] / 2 - side / 2).astype(int)
    rows = np.clip(np.arange(top, top + side), 0, image.shape[0] - 1)
    columns = np.clip(np.arange(left, left + side), 0, image.shape[1] - 1)
    crop: NDArray[np.uint8] = image[rows[:, None], columns[None, :]]
    return crop


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


def face_ellipse(landmarks: NDArray[np.float64], shape: tuple[int, ...], scale: float = 1.0) -> NDArray[np.bool_]:
    """(h, w), true inside the ellipse that covers a face (the ISP paper, App. D); its axes are multiplied by ``scale``.

    It is centred between eyes and mouth and turned with the line of the eyes.
    """
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
