"""Canvases made worse in known ways: faces blurred by degrees, a ring of background blurred, background hidden.

What is face and what is background is decided by an ellipse around the landmarks, a ring of its area, and distance.
``shown_faces`` gives a few such canvases, small, to those who asked to see the faces.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from unface.attribute.canvas import FCR, Canvas, canvas_of
from unface.attribute.inputs import FaceSwap, Image, LocatedPicture
from unface.faces import face_ellipse
from unface.result.attribution import Axes

SIGMAS = (0, 1, 2, 4, 6, 8)
REVEALED = (0.0, 0.25, 0.5, 0.75, 1.0)
AREA_TOLERANCE = 0.02

_HIDDEN = 127  # the same grey in all pictures: a colour of their own would reveal some of what is hidden
_MEASURED_AT = 224  # pixels: FCRs, and so the pairing, are the same for every encoder
_FEATHER = 1.0  # standard deviation whose kernel of 2⌈3σ⌉ + 1 reaches 3 pixels to either side


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

    face = _ellipse(landmarks, size, axes)
    distance = np.asarray(distance_transform_edt(~face), dtype=np.float32)
    ring, difference = _ring(face, distance)
    return Masks(face, distance, ring if difference <= AREA_TOLERANCE else None, difference)


def coverage(canvas: Canvas, axes: Axes) -> float:
    """The achieved FCR: the ellipse's share of the canvas (the ISP paper, eq. 16)."""
    landmarks = (canvas.face.landmarks + 0.5) * (_MEASURED_AT / len(canvas.image)) - 0.5
    return float(_ellipse(landmarks, _MEASURED_AT, axes).mean())


def nearer_axes(canvases: Sequence[Canvas]) -> Axes:
    """The reading whose median FCR is nearer to the target: one for all pictures."""
    readings: tuple[Axes, ...] = get_args(Axes)
    medians = {axes: float(np.median([coverage(canvas, axes) for canvas in canvases])) for axes in readings}
    return min(readings, key=lambda axes: abs(medians[axes] - FCR))


def blur_series(image: Image) -> list[Image]:
    """The whole canvas blurred at each σ; the first is the canvas itself. Made once, for face and ring alike."""
    return [image, *(blurred(image, sigma) for sigma in SIGMAS[1:])]


def face_blurs(series: Sequence[Image], masks: Masks) -> list[Image]:
    """The canvas with its face blurred at each σ; the last is FII's occluded face."""
    inside = feathered(masks.face)
    return [series[0], *(_blend(series[0], whole, inside) for whole in series[1:])]


def ring_blur(series: Sequence[Image], ring: NDArray[np.bool_]) -> Image:
    """The canvas with a ring around its face blurred as strongly as FII's occluded face."""
    return _blend(series[0], series[-1], feathered(ring))


def revealed(image: Image, masks: Masks) -> list[Image]:
    """The canvas with its face and the nearest share B of the background, for each B but 1, which hides nothing."""
    grey = np.full_like(image, _HIDDEN)
    return [_blend(grey, image, feathered(masks.nearest(share))) for share in REVEALED[:-1]]


def blurred(image: Image, sigma: float) -> Image:
    """Gaussian with a kernel of 2⌈3σ⌉ + 1 (49 at σ = 8)."""
    import cv2

    kernel = 2 * int(np.ceil(3 * sigma)) + 1
    return np.asarray(cv2.GaussianBlur(image, (kernel, kernel), sigma), dtype=np.uint8)


def feathered(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights from 0 to 1 with an edge that is soft over 3 pixels to either side."""
    import cv2

    reach = 2 * int(np.ceil(3 * _FEATHER)) + 1
    return np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (reach, reach), _FEATHER), dtype=np.float32)


def _blend(image: Image, other: Image, weight: NDArray[np.float32]) -> Image:
    """``other`` where the weight is 1, the picture where it is 0, both to the last bit."""
    import cv2

    return np.asarray(cv2.blendLinear(other, image, weight, 1 - weight), dtype=np.uint8)


def _ellipse(landmarks: NDArray[np.float64], size: int, axes: Axes) -> NDArray[np.bool_]:
    """(size, size), true on the face."""
    return face_ellipse(landmarks, (size, size), 0.5 if axes == "full" else 1.0)


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


_PEOPLE, _SIDE, _SHOWN, _QUALITY = 3, 224, 112, 80


@dataclass(frozen=True)
class ShownFace:
    """What was done to it, and the JPEG."""

    caption: str
    jpeg: bytes


def shown_faces(pictures: Iterable[LocatedPicture], swap: FaceSwap, axes: Axes) -> list[list[ShownFace]]:
    """One usable picture each of the first few people, with the next one's face swapped in last."""
    of_identity: dict[str, Canvas] = {}
    for picture in pictures:
        if picture.identity not in of_identity and isinstance(made := canvas_of(picture, _SIDE), Canvas):
            of_identity[picture.identity] = made
        if len(of_identity) == _PEOPLE:
            break
    canvases = list(of_identity.values())
    return [
        _row(canvas, donor, swap, axes) for canvas, donor in zip(canvases, canvases[1:] + canvases[:1], strict=True)
    ]


def _row(canvas: Canvas, donor: Canvas, swap: FaceSwap, axes: Axes) -> list[ShownFace]:
    masks = masks_of(canvas.face.landmarks, len(canvas.image), axes)
    series = blur_series(canvas.image)
    images = {"canvas": canvas.image, "face blurred": face_blurs(series, masks)[-1]}
    if masks.ring is not None:
        images["ring blurred"] = ring_blur(series, masks.ring)
    for share, image in zip(REVEALED[:2], revealed(canvas.image, masks), strict=False):
        images[f"{share:.0%} of the background"] = image
    swapped = swap(canvas.image, canvas.face.landmarks, donor.image, donor.face.landmarks)
    if donor is not canvas and swapped.ok:
        images["another face"] = swapped.image
    return [ShownFace(caption, _jpeg(image)) for caption, image in images.items()]


def _jpeg(image: Image) -> bytes:
    import cv2

    small = cv2.resize(image, (_SHOWN, _SHOWN), interpolation=cv2.INTER_AREA)
    done, data = cv2.imencode(".jpg", np.ascontiguousarray(small[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    assert done, "OpenCV writes JPEG"
    return bytes(data.tobytes())
