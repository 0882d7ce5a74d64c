"""A few canvases as they were perturbed, small: for those who asked to see the faces."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unface.attribute.canvas import Canvas, canvas_of
from unface.attribute.inputs import FaceSwap, Image, LocatedPicture
from unface.attribute.perturb import REVEALED, blur_series, face_blurs, masks_of, revealed, ring_blur
from unface.result.attribution import Axes

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
