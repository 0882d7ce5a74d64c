"""YuNet (Wu et al. 2023) on ONNX Runtime: one box and five points at each cell of three strides, no anchors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.faces.face import Face
from unface.faces.overlap import best_faces
from unface.faces.session import session_of

if TYPE_CHECKING:
    import onnx

_LONGEST = 640  # pixels; it was trained for faces of 10 to 300 in pictures like that
_STRIDES = (8, 16, 32)
_SCORE = 0.6
_OVERLAP = 0.3


class YuNet:
    """A detector from face_detection_yunet_2023mar.onnx."""

    name = "yunet"

    def __init__(self, path: Path) -> None:
        self._session = session_of(_any_size(path).SerializeToString())
        self._input = self._session.get_inputs()[0].name
        self._outputs = [f"{kind}_{stride}" for stride in _STRIDES for kind in ("cls", "obj", "bbox", "kps")]

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        import cv2

        shrink = min(1.0, _LONGEST / max(image.shape[:2]))
        height, width = (max(round(length * shrink), 1) for length in image.shape[:2])
        small = image if shrink == 1 else cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        rows, columns = (-(-length // _STRIDES[-1]) * _STRIDES[-1] for length in (height, width))
        blob = np.zeros((1, 3, rows, columns), dtype=np.float32)
        blob[0, :, :height, :width] = small.transpose(2, 0, 1)[::-1]  # blue first
        raw = self._session.run(self._outputs, {self._input: blob})
        found = [_decoded(raw[4 * n : 4 * n + 4], stride, columns) for n, stride in enumerate(_STRIDES)]
        scores, corners, points = (np.concatenate([level[part] for level in found]) for part in range(3))
        back = np.array([image.shape[1] / width, image.shape[0] / height])
        return best_faces(scores, corners, points, back, _OVERLAP)


def _any_size(path: Path) -> "onnx.ModelProto":
    """The model without the 640 × 640 pixels of its file: most pictures are smaller."""
    import onnx

    model = onnx.load(str(path))
    for axis in (2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"size_{axis}"
    for output in model.graph.output:
        output.type.tensor_type.shape.dim[1].dim_param = f"cells_{output.name}"
    del model.graph.value_info[:]  # shapes of the inside
    return model


def _decoded(
    raw: Sequence[NDArray[np.float32]], stride: int, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Scores (n,), corners (n, 4) and points (n, 5, 2) above the threshold.

    Centres and points are counted in strides from their cell's corner; of the sides the logarithm is given.
    """
    face, thing, box, points = (part.reshape(-1, columns) for part, columns in zip(raw, (1, 1, 4, 10), strict=True))
    scores = np.sqrt(face[:, 0].astype(np.float64) * thing[:, 0])
    good = np.flatnonzero(scores >= _SCORE)
    cell = np.stack(np.divmod(good, width // stride)[::-1], axis=1)
    given = box[good].astype(np.float64)
    centre, half = (cell + given[:, :2]) * stride, np.exp(given[:, 2:]) * stride / 2
    spots = (cell[:, None] + points[good].reshape(-1, 5, 2).astype(np.float64)) * stride
    return scores[good], np.concatenate([centre - half, centre + half], axis=1), spots
