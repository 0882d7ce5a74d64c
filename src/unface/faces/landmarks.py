"""106 points of a face: outline, brows, eyes, nose and mouth, from InsightFace's 2d106det.onnx on ONNX Runtime."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
