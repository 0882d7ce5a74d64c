"""Facial traits: the region of face, eyes, nose or mouth, by the proportions of the trait privacy score (§3.1).

All lengths are shares of the distance between the eyes. Where the paper is silent: regions turn with the line of the
eyes, and a nose is 10 % wider than its points on either side. Their outlines are 106 points of the face, from
InsightFace's 2d106det.onnx on ONNX Runtime.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.detect import session_of
from unface.faces.face import Face
from unface.models import card, weights

_SIDE = 192
_MARGIN = 1.5  # sides of the crop, in larger sides of the face's box
# InsightFace's numbering. Left and right are those of the picture.
LEFT_EYE, RIGHT_EYE, NOSE = slice(33, 43), slice(87, 97), slice(72, 87)
NOSE_TIP, LEFT_CORNER, RIGHT_CORNER = 86, 52, 61  # the corners are the mouth's
_FARTHEST = 0.3  # distances between the eyes


class Landmarks106:
    """Safe to call from several threads."""

    name = "landmarks-106"

    def __init__(self, path: Path) -> None:
        self._session = session_of(str(path))
        self._input = self._session.get_inputs()[0].name

    def points(self, image: NDArray[np.uint8], face: Face) -> NDArray[np.float64] | None:
        """(106, 2) pixels of an RGB picture (h, w, 3), or None.

        The network draws a face on any crop. So its points count only where they agree with the detector's five: on
        average within 0.3 distances between the eyes. On good pictures the two differ by 0.06 to 0.09.
        """
        import cv2

        side = float(max(face.box[2:]))
        between = float(np.linalg.norm(face.landmarks[1] - face.landmarks[0]))
        if not (np.isfinite(face.box).all() and side >= 1 and between > 0):
            return None
        scale = _SIDE / (_MARGIN * side)
        shift = _SIDE / 2 - scale * (face.box[:2] + face.box[2:] / 2)
        crop = cv2.warpAffine(image, np.array([[scale, 0, shift[0]], [0, scale, shift[1]]]), (_SIDE, _SIDE))
        blob = np.ascontiguousarray(crop.transpose(2, 0, 1)[None], dtype=np.float32)
        raw = self._session.run(None, {self._input: blob})[0].reshape(106, 2).astype(np.float64)
        points: NDArray[np.float64] = ((raw + 1) * (_SIDE / 2) - shift) / scale
        apart = np.linalg.norm(five_of(points) - face.landmarks, axis=1).mean()
        return points if apart <= _FARTHEST * between else None


def load_landmarks(*, accept_licence: bool = False) -> Landmarks106:
    """The network with its weights, fetched if they are not here yet; they are for research alone."""
    return Landmarks106(weights(card(Landmarks106.name), accept_licence=accept_licence))


def five_of(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(5, 2): eyes, nose tip, mouth corners of 106 points, as detectors give them."""
    eyes = [points[eye].mean(axis=0) for eye in (LEFT_EYE, RIGHT_EYE)]
    return np.stack([*eyes, points[NOSE_TIP], points[LEFT_CORNER], points[RIGHT_CORNER]])


TRAITS = ("face", "eyes", "nose", "mouth")
SMALLEST = 8.0  # pixels: the shorter side of a region that still shows something
_INSIDE = 0.5  # of a region: the share that must lie in the picture
_GREY = 127
_EYES = np.array([0.50, 0.25])  # beyond the centres of the eyes, to each side and up and down
_MOUTH = np.array([0.25, 0.30])  # beyond the corners of the mouth
_NOSE_ABOVE, _NOSE_BELOW, _NOSE_SIDE = 0.90, 0.25, 0.10  # from its tip; from its outermost points


@dataclass(frozen=True, eq=False)
class Region:
    """A rectangle in a picture, turned with the face."""

    corners: NDArray[np.float64]  # (4, 2), clockwise from the upper left one of the upright face
    width: float  # pixels
    height: float

    def mask(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """(h, w), true inside."""
        rows, columns = np.indices(shape[:2])
        place = np.stack([columns, rows], axis=2) - self.corners[0]
        inside = np.ones(shape[:2], dtype=bool)
        for side, length in ((1, self.width), (3, self.height)):
            along = place @ ((self.corners[side] - self.corners[0]) / length)
            inside &= (along >= 0) & (along <= length)
        return inside


def trait_region(points: NDArray[np.float64], trait: str) -> Region:
    """Where a trait lies, from 106 points."""
    if trait not in TRAITS:
        raise UnfaceError(f"trait {trait!r} is not known; choose from {', '.join(TRAITS)}")
    five = five_of(points)
    along = five[1] - five[0]
    between, middle = float(np.linalg.norm(along)), five[:2].mean(axis=0)
    along = along / between
    axes = np.stack([along, (-along[1], along[0])])  # to the right and down on the upright face
    upright, (left_eye, right_eye, tip, left_corner, right_corner) = (
        (part - middle) @ axes.T / between for part in (points, five)
    )
    match trait:
        case "face":
            low, high = upright.min(axis=0), upright.max(axis=0)
        case "eyes":
            low, high = left_eye - _EYES, right_eye + _EYES
        case "nose":
            sides = upright[NOSE, 0]
            low = np.array([sides.min() - _NOSE_SIDE, tip[1] - _NOSE_ABOVE])
            high = np.array([sides.max() + _NOSE_SIDE, tip[1] + _NOSE_BELOW])
        case _:
            corners = np.stack([left_corner, right_corner])
            low, high = corners.min(axis=0) - _MOUTH, corners.max(axis=0) + _MOUTH
    upright_corners = np.array([low, (high[0], low[1]), high, (low[0], high[1])])
    width, height = (high - low) * between
    return Region(upright_corners * between @ axes + middle, float(width), float(height))


@dataclass(frozen=True, eq=False)
class TraitCrop:
    """One trait of the person in a picture, cut out or left where it is; safe to call from several threads."""

    trait: str
    landmarks: Landmarks106

    def region(self, image: NDArray[np.uint8], face: Face) -> Region | str:
        """Where the trait lies; or, in a few words to be counted, why it cannot be used."""
        points = self.landmarks.points(image, face)
        return "no landmarks" if points is None else usable_region(points, self.trait, image.shape)


def usable_region(points: NDArray[np.float64], trait: str, shape: tuple[int, ...]) -> Region | str:
    """A region large enough, at least half of it in the picture; or what is wrong with it."""
    region = trait_region(points, trait)
    if min(region.width, region.height) < SMALLEST:
        return f"{trait} smaller than {SMALLEST:g} pixels"
    if region.mask(shape).sum() < _INSIDE * region.width * region.height:
        return f"{trait} outside the picture"
    return region


def cut_out(image: NDArray[np.uint8], region: Region) -> NDArray[np.uint8]:
    """The region upright, pixel for pixel; edge pixels repeat outside the picture."""
    import cv2

    width, height = max(round(region.width), 1), max(round(region.height), 1)
    # Outer edges of the region fall on outer edges of the crop, half a pixel before the centre of its first one.
    targets = np.array([(0, 0), (width, 0), (0, height)], dtype=np.float32) - 0.5
    matrix = cv2.getAffineTransform(region.corners[[0, 1, 3]].astype(np.float32), targets)
    crop = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(crop, dtype=np.uint8)


def keep_only(image: NDArray[np.uint8], region: Region) -> NDArray[np.uint8]:
    """The picture in grey but for the region: recognisers link people by a trait in its place far better than alone."""
    kept: NDArray[np.uint8] = np.where(region.mask(image.shape)[..., None], image, np.uint8(_GREY))
    return kept
