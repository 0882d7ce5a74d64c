"""Facial traits: the region of face, eyes, nose or mouth, by the proportions of the trait privacy score (§3.1).

All lengths are shares of the distance between the eyes. Where the paper is silent: regions turn with the line of the
eyes, and a nose is 10 % wider than its points on either side.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.face import Face
from unface.faces.landmarks import NOSE, Landmarks106, five_of

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
