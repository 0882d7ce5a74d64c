"""Face detectors by name: YuNet and SCRFD on ONNX Runtime, with weights from their cards."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.face import Face
from unface.models import card, weights

if TYPE_CHECKING:
    import onnx
    import onnxruntime

# Scores (n,), corners (n, 4: left, top, right, bottom) and points (n, 5, 2) of one stride's boxes.
_Boxes = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

_STRIDES = (8, 16, 32)  # pixels of a cell, of both detectors

_YUNET_LONGEST = 640  # pixels; it was trained for faces of 10 to 300 in pictures like that
_YUNET_SCORE = 0.6
_YUNET_OVERLAP = 0.3

_SCRFD_SIDE = 640
_SCRFD_ANCHORS = 2
_SCRFD_SCORE = 0.5
_SCRFD_OVERLAP = 0.4


class Detector(Protocol):
    """Finds faces; must be safe to call from several threads."""

    @property
    def name(self) -> str: ...

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        ...


class Remembered:
    """A detector that looks at each picture once, however often it is asked: for several encoders on one set."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._faces: dict[bytes, bytes] = {}  # by the picture's hash, 120 bytes a face

    @property
    def name(self) -> str:
        """The detector's own."""
        return self._detector.name

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """What the detector found the first time."""
        key = hashlib.blake2b(f"{image.shape}".encode() + image.tobytes(), digest_size=16).digest()
        if key not in self._faces:
            faces = self._detector.detect(image)
            packed = [np.array([*face.box, *face.landmarks.reshape(-1), face.score], np.float64) for face in faces]
            self._faces[key] = b"".join(row.tobytes() for row in packed)
        rows = np.frombuffer(self._faces[key], dtype=np.float64).reshape(-1, 15)
        return [Face(row[:4], row[4:14].reshape(5, 2), float(row[14])) for row in rows]


def load_detector(name: str = "yunet", *, accept_licence: bool = False) -> Detector:
    """A detector with its weights, fetched if they are not here yet."""
    detectors: dict[str, Callable[[Path], Detector]] = {"yunet": YuNet, "scrfd-500m": Scrfd}
    if name not in detectors:
        raise UnfaceError(f"detector {name!r} is not known; choose from {', '.join(detectors)}")
    return detectors[name](weights(card(name), accept_licence=accept_licence))


class YuNet:
    """YuNet (Wu et al. 2023) from face_detection_yunet_2023mar.onnx: one box and five points a cell, no anchors."""

    name = "yunet"

    def __init__(self, path: Path) -> None:
        self._session = session_of(_any_size(path).SerializeToString())
        self._input = self._session.get_inputs()[0].name
        self._outputs = [f"{kind}_{stride}" for stride in _STRIDES for kind in ("cls", "obj", "bbox", "kps")]

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        import cv2

        shrink = min(1.0, _YUNET_LONGEST / max(image.shape[:2]))
        height, width = (max(round(length * shrink), 1) for length in image.shape[:2])
        small = image if shrink == 1 else cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        rows, columns = (-(-length // _STRIDES[-1]) * _STRIDES[-1] for length in (height, width))
        blob = np.zeros((1, 3, rows, columns), dtype=np.float32)
        blob[0, :, :height, :width] = small.transpose(2, 0, 1)[::-1]  # blue first
        raw = self._session.run(self._outputs, {self._input: blob})
        levels = [_yunet_decoded(raw[4 * n : 4 * n + 4], stride, columns) for n, stride in enumerate(_STRIDES)]
        back = np.array([image.shape[1] / width, image.shape[0] / height])
        return _best_faces(levels, back, _YUNET_OVERLAP)


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


def _yunet_decoded(raw: Sequence[NDArray[np.float32]], stride: int, width: int) -> _Boxes:
    """What lies above the threshold.

    Centres and points are counted in strides from their cell's corner; of the sides the logarithm is given.
    """
    face, thing, box, points = (part.reshape(-1, columns) for part, columns in zip(raw, (1, 1, 4, 10), strict=True))
    scores = np.sqrt(face[:, 0].astype(np.float64) * thing[:, 0])
    good = np.flatnonzero(scores >= _YUNET_SCORE)
    cell = np.stack(np.divmod(good, width // stride)[::-1], axis=1)
    given = box[good].astype(np.float64)
    centre, half = (cell + given[:, :2]) * stride, np.exp(given[:, 2:]) * stride / 2
    spots = (cell[:, None] + points[good].reshape(-1, 5, 2).astype(np.float64)) * stride
    return scores[good], np.concatenate([centre - half, centre + half], axis=1), spots


class Scrfd:
    """SCRFD-500M (Guo et al. 2021) from scrfd_500m_bnkps.onnx: two anchors a cell, all as distances."""

    name = "scrfd-500m"

    def __init__(self, path: Path) -> None:
        self._session = session_of(str(path))
        self._input = self._session.get_inputs()[0].name
        self._outputs = [f"{kind}_{stride}" for stride in _STRIDES for kind in ("score", "bbox", "kps")]

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        import cv2

        scale = _SCRFD_SIDE / max(image.shape[:2])
        height, width = (max(round(length * scale), 1) for length in image.shape[:2])
        method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        frame = np.zeros((_SCRFD_SIDE, _SCRFD_SIDE, 3), dtype=np.uint8)
        frame[:height, :width] = cv2.resize(image, (width, height), interpolation=method)
        blob = np.ascontiguousarray(((frame.astype(np.float32) - 127.5) / 128).transpose(2, 0, 1)[None])
        raw = self._session.run(self._outputs, {self._input: blob})
        levels = [_scrfd_decoded(raw[3 * n : 3 * n + 3], stride) for n, stride in enumerate(_STRIDES)]
        back = np.array([image.shape[1] / width, image.shape[0] / height])
        return _best_faces(levels, back, _SCRFD_OVERLAP)


def _scrfd_decoded(raw: Sequence[NDArray[np.float32]], stride: int) -> _Boxes:
    """What lies above the threshold, from distances in strides."""
    score, box, points = raw
    cells = _SCRFD_SIDE // stride
    rows, columns = np.divmod(np.arange(cells * cells).repeat(_SCRFD_ANCHORS), cells)
    centres = np.stack([columns, rows], axis=1) * float(stride)
    scores = score.reshape(-1).astype(np.float64)
    good = scores >= _SCRFD_SCORE
    centre, distance = centres[good], box.reshape(-1, 4)[good].astype(np.float64) * stride
    corners = np.concatenate([centre - distance[:, :2], centre + distance[:, 2:]], axis=1)
    return scores[good], corners, centre[:, None] + points.reshape(-1, 5, 2)[good].astype(np.float64) * stride


def _best_faces(levels: Sequence[_Boxes], scale: NDArray[np.float64], most: float) -> list[Face]:
    """What is left of the boxes of all strides, times ``scale`` (x, y); best score first."""
    scores, boxes, points = (np.concatenate([level[part] for level in levels]) for part in range(3))
    return [
        Face(
            np.concatenate([boxes[i, :2] * scale, (boxes[i, 2:] - boxes[i, :2]) * scale]),
            points[i] * scale,
            float(scores[i]),
        )
        for i in suppressed(scores, boxes, most)
    ]


def suppressed(scores: NDArray[np.float64], boxes: NDArray[np.float64], most: float) -> list[int]:
    """Indices, best score first, of the boxes (n, 4: left, top, right, bottom) that no better one takes.

    A box takes those of which it shares more than ``most``: intersection over union.
    """
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    waiting = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(waiting):
        best, waiting = int(waiting[0]), waiting[1:]
        kept.append(best)
        low = np.maximum(boxes[waiting, :2], boxes[best, :2])
        high = np.minimum(boxes[waiting, 2:], boxes[best, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        waiting = waiting[shared <= most * (area[waiting] + area[best] - shared)]
    return kept


def session_of(model: bytes | str) -> "onnxruntime.InferenceSession":
    """A model's bytes, or the path of its file, on one CPU thread: pictures are worked on in parallel already."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
