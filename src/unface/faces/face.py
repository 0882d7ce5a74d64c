"""Face: where one is in a picture; and which of several faces the picture is of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TINY = 32.0  # pixels: below this side a face holds little of who it is


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
