"""SCRFD-500M (Guo et al. 2021) on ONNX Runtime: two anchors at each cell of three strides, all as distances."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.faces.face import Face
from unface.faces.overlap import best_faces
from unface.faces.session import session_of

_SIDE = 640
_STRIDES = (8, 16, 32)
_ANCHORS = 2
_SCORE = 0.5
_OVERLAP = 0.4


class Scrfd:
    """A detector from scrfd_500m_bnkps.onnx."""

    name = "scrfd-500m"

    def __init__(self, path: Path) -> None:
        self._session = session_of(str(path))
        self._input = self._session.get_inputs()[0].name
        self._outputs = [f"{kind}_{stride}" for stride in _STRIDES for kind in ("score", "bbox", "kps")]

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        import cv2

        scale = _SIDE / max(image.shape[:2])
        height, width = (max(round(length * scale), 1) for length in image.shape[:2])
        method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        frame = np.zeros((_SIDE, _SIDE, 3), dtype=np.uint8)
        frame[:height, :width] = cv2.resize(image, (width, height), interpolation=method)
        blob = np.ascontiguousarray(((frame.astype(np.float32) - 127.5) / 128).transpose(2, 0, 1)[None])
        raw = self._session.run(self._outputs, {self._input: blob})
        found = [_decoded(raw[3 * n], raw[3 * n + 1], raw[3 * n + 2], stride) for n, stride in enumerate(_STRIDES)]
        scores, boxes, points = (np.concatenate([level[part] for level in found]) for part in range(3))
        back = np.array([image.shape[1] / width, image.shape[0] / height])
        return best_faces(scores, boxes, points, back, _OVERLAP)


def _decoded(
    score: NDArray[np.float32], box: NDArray[np.float32], points: NDArray[np.float32], stride: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Scores (n,), corners (n, 4) and points (n, 5, 2) above the threshold, from distances in strides."""
    cells = _SIDE // stride
    rows, columns = np.divmod(np.arange(cells * cells).repeat(_ANCHORS), cells)
    centres = np.stack([columns, rows], axis=1) * float(stride)
    scores = score.reshape(-1).astype(np.float64)
    good = scores >= _SCORE
    centre, distance = centres[good], box.reshape(-1, 4)[good].astype(np.float64) * stride
    corners = np.concatenate([centre - distance[:, :2], centre + distance[:, 2:]], axis=1)
    return scores[good], corners, centre[:, None] + points.reshape(-1, 5, 2)[good].astype(np.float64) * stride
