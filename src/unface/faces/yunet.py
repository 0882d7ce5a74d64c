"""YuNet, the small detector that OpenCV runs; its five points come in the order we use."""

from pathlib import Path
from threading import local
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.faces.face import Face

if TYPE_CHECKING:
    import cv2

_LONGEST = 640  # pixels; it was trained for faces of 10 to 300 in pictures like that
_SCORE = 0.6
_OVERLAP = 0.3


class YuNet:
    """A detector from face_detection_yunet_2023mar.onnx."""

    name = "yunet"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_thread = local()  # OpenCV's object holds the picture it works on

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        import cv2

        height, width = image.shape[:2]
        shrink = min(1.0, _LONGEST / max(height, width))
        size = (max(round(width * shrink), 1), max(round(height * shrink), 1))
        small = image if shrink == 1 else cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        network = self._network()
        network.setInputSize(size)
        _, found = network.detect(cv2.cvtColor(small, cv2.COLOR_RGB2BGR))
        rows = np.empty((0, 15)) if found is None else np.asarray(found, dtype=np.float64)
        scale = np.array([width / size[0], height / size[1]])
        faces = [
            Face((row[:4].reshape(2, 2) * scale).reshape(4), row[4:14].reshape(5, 2) * scale, float(row[14]))
            for row in rows
        ]
        return sorted(faces, key=lambda face: -face.score)

    def _network(self) -> "cv2.FaceDetectorYN":
        import cv2

        if not hasattr(self._of_thread, "network"):
            cv2.utils.logging.setLogLevel(2)  # errors: OpenCV 5 warns of every network that runs on the CPU
            self._of_thread.network = cv2.FaceDetectorYN.create(str(self._path), "", (320, 320), _SCORE, _OVERLAP, 5000)
        network: cv2.FaceDetectorYN = self._of_thread.network
        return network
