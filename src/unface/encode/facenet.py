"""FaceNet (Sandberg's Inception-ResNet-v1) from its frozen TensorFlow graph, run by OpenCV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.encode.frame import tensor_of
from unface.errors import UnfaceError
from unface.models import Card


class FaceNetEncoder:
    """One picture at a time: OpenCV fixes the batch when it reads such a graph."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        import cv2

        del threads  # OpenCV's are set for the whole process
        self.card, self.name, self.dim = card, card.name, card.dim
        try:
            self._network = cv2.dnn.readNetFromTensorflow(str(path))
        except cv2.error:
            raise UnfaceError(f"{path.name}: not a TensorFlow graph that OpenCV reads; fetch it again") from None

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, 512) vectors of RGB crops."""
        vectors = np.empty((len(images), self.dim), dtype=np.float32)
        for row, image in enumerate(images):
            self._network.setInput(tensor_of([image], self.card.input))
            vectors[row] = self._network.forward()[0]
        return vectors
