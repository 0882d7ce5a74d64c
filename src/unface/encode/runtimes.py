"""Encoders whose weights only one library runs: dlib's own, OpenCV for a TensorFlow graph, LiteRT for TFLite files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.encode.prepare import framed, tensor_of
from unface.errors import UnfaceError
from unface.models import Card
from unface.threads import available_cores


class DlibEncoder:
    """dlib_face_recognition_resnet_model_v1, on 150-pixel chips."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        try:
            import dlib
        except ImportError:
            raise UnfaceError(f"{card.name}: needs dlib; pip install 'unface[dlib]'") from None
        del threads  # dlib decides by itself
        self.card, self.name, self.dim = card, card.name, card.dim
        self._network = dlib.face_recognition_model_v1(str(path))

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, 128) vectors of RGB chips."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        chips = [np.ascontiguousarray(framed(image, self.card.input)) for image in images]
        return np.asarray(self._network.compute_face_descriptor(chips), dtype=np.float32)


class FaceNetEncoder:
    """FaceNet (Sandberg's Inception-ResNet-v1), one picture at a time: OpenCV fixes the batch when it reads a graph."""

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


class TfliteEncoder:
    """A TensorFlow Lite file, one picture at a time, as such files are made."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            raise UnfaceError(f"{card.name}: needs a TensorFlow Lite runtime; pip install 'unface[tflite]'") from None
        self.card, self.name, self.dim = card, card.name, card.dim
        self._network = Interpreter(str(path), num_threads=threads or available_cores())
        self._network.allocate_tensors()
        self._input = self._network.get_input_details()[0]["index"]
        self._output = self._network.get_output_details()[0]["index"]

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures."""
        vectors = np.empty((len(images), self.dim), dtype=np.float32)
        for row, image in enumerate(images):
            self._network.set_tensor(self._input, tensor_of([image], self.card.input))
            self._network.invoke()
            vectors[row] = self._network.get_tensor(self._output)[0]
        return vectors
