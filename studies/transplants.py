"""Known truth for ``unface release``: pictures that carry a training person's picture, or one trait of their face.

A transplant moves the donor's eyes, nose or mouth onto the host by a similarity between the landmarks of that trait,
gives it the host's colours and fades it in. Nothing else of the donor is in the picture.
"""

from io import BytesIO

import cv2
import numpy as np
from numpy.typing import NDArray

from unface.faces import similarity, trait_region
from unface.faces.traits import LEFT_EYE, NOSE, RIGHT_EYE

Picture = NDArray[np.uint8]
Points = NDArray[np.float64]

ANCHORS = {
    "eyes": np.r_[LEFT_EYE, RIGHT_EYE],
    "nose": np.r_[NOSE],
    "mouth": np.r_[52:72],
}
FEATHER = 0.06  # distances between the eyes over which the donor fades
QUALITY, KEPT = 30, 0.8  # of a JPEG; of both sides of a crop


def transplant(trait: str, host: Picture, host_points: Points, donor: Picture, donor_points: Points) -> Picture:
    """The host with the donor's trait."""
    rows = ANCHORS[trait]
    matrix = similarity(donor_points[rows], host_points[rows])
    height, width = host.shape[:2]
    moved = cv2.warpAffine(donor, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    inside = trait_region(host_points, trait).mask(host.shape)
    if not inside.any():
        return host
    own, new = host[inside].astype(np.float64), moved[inside].astype(np.float64)
    spread = np.maximum(new.std(axis=0), 1.0)
    coloured = (moved - new.mean(axis=0)) * (own.std(axis=0) / spread) + own.mean(axis=0)
    between = float(np.linalg.norm(host_points[RIGHT_EYE].mean(axis=0) - host_points[LEFT_EYE].mean(axis=0)))
    depth = cv2.distanceTransform(inside.astype(np.uint8), cv2.DIST_L2, 5)
    share = np.clip(depth / max(FEATHER * between, 1.0), 0, 1)[..., None]
    return np.asarray(np.clip(np.rint(host + share * (coloured - host)), 0, 255), dtype=np.uint8)


def altered(kind: str, picture: Picture) -> Picture:
    """A copy as people make them: copy, jpeg, mirror or crop."""
    from PIL import Image

    height, width = picture.shape[:2]
    match kind:
        case "copy":
            return picture
        case "jpeg":
            buffer = BytesIO()
            Image.fromarray(picture).save(buffer, "JPEG", quality=QUALITY)
            return np.asarray(Image.open(buffer).convert("RGB"))
        case "mirror":
            return np.ascontiguousarray(picture[:, ::-1])
        case "crop":
            top, left = round(height * (1 - KEPT) / 2), round(width * (1 - KEPT) / 2)
            return np.ascontiguousarray(picture[top : height - top, left : width - left])
    raise ValueError(kind)
