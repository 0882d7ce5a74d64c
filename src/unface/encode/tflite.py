"""Encoders as TensorFlow Lite files, one picture at a time, as such files are made."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.encode.frame import tensor_of
from unface.errors import UnfaceError
from unface.models import Card
from unface.threads import available_cores


class TfliteEncoder:
    """An encoder run by Google's LiteRT."""

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
