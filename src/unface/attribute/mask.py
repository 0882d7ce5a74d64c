"""What is face and what is background on a canvas: the ellipse, a ring of its area, and the rest by distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from unface.attribute.canvas import FCR, Canvas
from unface.faces import face_ellipse

AREA_TOLERANCE = 0.02
_MEASURED_AT = 224  # pixels: FCRs, and so who is paired with whom, are the same for every encoder
_FEATHER = 1.0  # standard deviation whose kernel of 2⌈3σ⌉ + 1 reaches 3 pixels to either side


class Axes(StrEnum):
    """How 1.2 × inter-ocular and 1.3 × eye-to-mouth are read: as half or as whole axes of the ellipse."""

    SEMI = "semi"
    FULL = "full"


@dataclass(frozen=True, eq=False)
class Masks:
    """Of one canvas. ``distance`` is 0 on the face and grows away from it."""

    face: NDArray[np.bool_]
    distance: NDArray[np.float32]
    ring: NDArray[np.bool_] | None
    """The nearest background of the face's own area; None where that cannot be had within 2 %."""
    area_difference: float
    """Of ring and face, as a share of the face; what was nearest where there is no ring."""

    def nearest(self, share: float) -> NDArray[np.bool_]:
        """The face and the nearest ``share`` of the background."""
        outside = self.distance[~self.face]
        count = round(share * outside.size)
        if count == 0:
            return self.face
        inside: NDArray[np.bool_] = self.distance <= np.partition(outside, count - 1)[count - 1]
        return inside


def masks_of(landmarks: NDArray[np.float64], size: int, axes: Axes) -> Masks:
    """Masks of a canvas of (size, size)."""
    # SciPy's and not OpenCV's, whose precise distances differ in their last bits from one call to the next.
    from scipy.ndimage import distance_transform_edt

    face = ellipse(landmarks, size, axes)
    distance = np.asarray(distance_transform_edt(~face), dtype=np.float32)
    ring, difference = _ring(face, distance)
    return Masks(face, distance, ring if difference <= AREA_TOLERANCE else None, difference)


def ellipse(landmarks: NDArray[np.float64], size: int, axes: Axes) -> NDArray[np.bool_]:
    """(size, size), true on the face."""
    return face_ellipse(landmarks, (size, size), 0.5 if axes is Axes.FULL else 1.0)


def coverage(canvas: Canvas, axes: Axes) -> float:
    """The achieved FCR: the ellipse's share of the canvas (the ISP paper, eq. 16)."""
    landmarks = (canvas.face.landmarks + 0.5) * (_MEASURED_AT / len(canvas.image)) - 0.5
    return float(ellipse(landmarks, _MEASURED_AT, axes).mean())


def nearer_axes(canvases: Sequence[Canvas]) -> Axes:
    """The reading whose median FCR is nearer to the target: one for all pictures."""
    medians = {axes: float(np.median([coverage(canvas, axes) for canvas in canvases])) for axes in Axes}
    return min(Axes, key=lambda axes: abs(medians[axes] - FCR))


def feathered(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights from 0 to 1 with an edge that is soft over 3 pixels to either side."""
    import cv2

    reach = 2 * int(np.ceil(3 * _FEATHER)) + 1
    return np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (reach, reach), _FEATHER), dtype=np.float32)


def _ring(face: NDArray[np.bool_], distance: NDArray[np.float32]) -> tuple[NDArray[np.bool_], float]:
    """A dilation by a disc of any real radius, less the face: whole pixels would miss the area by more than 2 %."""
    area = int(np.count_nonzero(face))
    outside = distance[~face]
    if area == 0 or outside.size < area * (1 - AREA_TOLERANCE):
        return ~face, 1.0 if area == 0 else 1 - outside.size / area
    width = np.partition(outside, min(area, outside.size) - 1)[min(area, outside.size) - 1]
    # Pixels at one distance come in or stay out together.
    rings = [(distance > 0) & (distance <= width), (distance > 0) & (distance < width)]
    differences = [abs(int(np.count_nonzero(ring)) - area) / area for ring in rings]
    best = int(np.argmin(differences))
    return rings[best], differences[best]
