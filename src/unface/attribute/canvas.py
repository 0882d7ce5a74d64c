"""FCR normalisation: every picture cut so that its face's box fills a third of a square (the ISP paper, App. D.2)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.attribute.inputs import Image, LocatedPicture
from unface.faces import Face, context_signature

FCR = 0.33
MOST_PADDING = 0.15

NO_FACE = "no face"
NO_LANDMARKS = "landmarks that span no face"
AT_BORDER = "face at the border"
TOO_LARGE = "face too large to be cut to a third of the picture"


@dataclass(frozen=True, eq=False)
class Canvas:
    """A square picture around a face. ``face`` is in its pixels; ``context`` is the whole picture's signature."""

    id: str
    identity: str
    image: Image
    face: Face
    padding: float
    """Filled strips along the four sides, as a share of the canvas's four sides."""
    context: NDArray[np.float32]


def canvas_of(picture: LocatedPicture, size: int) -> Canvas | str:
    """The canvas of (size, size), or in a few words why there is none."""
    if picture.image is None:
        return picture.reason or "no picture"
    if picture.face is None:
        return NO_FACE
    box, landmarks = picture.face.box, picture.face.landmarks
    if not _spans_a_face(box, landmarks):
        return NO_LANDMARKS
    height, width = picture.image.shape[:2]
    side = max(round(float(np.sqrt(box[2] * box[3] / FCR))), 1)
    # The least padding that a crop of this side can have, however the face lies.
    if (max(side - width, 0) + max(side - height, 0)) / (4 * side) > MOST_PADDING:
        return TOO_LARGE
    left, top = np.rint(box[:2] + box[2:] / 2 - side / 2).astype(int)
    strips = np.maximum([-left, -top, left + side - width, top + side - height], 0)
    padding = float(strips.sum() / (4 * side))
    if padding > MOST_PADDING or (strips >= side).any():
        return AT_BORDER
    scale = size / side
    face = replace(
        picture.face,
        box=np.concatenate([(box[:2] - (left, top)) * scale, box[2:] * scale]),
        # A pixel's centre c lies at (c + ½)·k − ½ afterwards.
        landmarks=(landmarks - (left, top) + 0.5) * scale - 0.5,
    )
    image = _resized(_cropped(picture.image, int(left), int(top), side), size)
    return Canvas(picture.id, picture.identity, image, face, padding, context_signature(picture.image, landmarks))


def _spans_a_face(box: NDArray[np.float64], landmarks: NDArray[np.float64]) -> bool:
    if landmarks.shape != (5, 2) or not (np.isfinite(landmarks).all() and np.isfinite(box).all()):
        return False
    eyes, mouth = landmarks[:2].mean(axis=0), landmarks[3:].mean(axis=0)
    between, down = np.linalg.norm(landmarks[1] - landmarks[0]), np.linalg.norm(mouth - eyes)
    return bool(between > 0 and down > 0 and box[2] > 0 and box[3] > 0)


def _cropped(image: Image, left: int, top: int, side: int) -> Image:
    """Outside of the picture its mean colour."""
    height, width = image.shape[:2]
    rows, columns = slice(max(top, 0), min(top + side, height)), slice(max(left, 0), min(left + side, width))
    inside = image[rows, columns]
    if inside.shape[:2] == (side, side):
        return inside
    canvas = np.empty((side, side, 3), dtype=np.uint8)
    canvas[:] = np.rint(image.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    canvas[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = inside
    return canvas


def _resized(image: Image, size: int) -> Image:
    import cv2

    method = cv2.INTER_AREA if image.shape[0] > size else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, (size, size), interpolation=method), dtype=np.uint8)
