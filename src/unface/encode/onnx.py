"""Encoders as ONNX graphs, run by ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.encode.frame import tensor_of
from unface.encode.onnx_graph import opened_graph
from unface.errors import UnfaceError
from unface.models import Card
from unface.seeds import stream

if TYPE_CHECKING:
    import onnxruntime
    import torch

_AGREEMENT = 1e-3  # of the largest number; float32 kernels of two batch sizes differ by 1e-6


class OnnxEncoder:
    """An encoder from an ONNX file. Files made for one picture at a time are rewritten to take many, and tried."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        self.card, self.name, self.dim = card, card.name, card.dim
        self._path = path
        self._session = session_of(opened_graph(path, card.output).SerializeToString(), threads)
        self._input = self._session.get_inputs()[0].name
        self._most = 0 if self._batches_agree() else 1

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        step = self._most or len(images)
        parts = [
            self._run(tensor_of(images[start : start + step], self.card.input)) for start in range(0, len(images), step)
        ]
        return np.concatenate(parts)

    def torch_module(self) -> "torch.nn.Module":
        """The same graph as a torch module that gradients pass through."""
        from unface.encode.onnx_torch import module_of

        return module_of(opened_graph(self._path, self.card.output), self.card)

    def _run(self, batch: NDArray[np.generic]) -> NDArray[np.float32]:
        (vectors,) = self._session.run(None, {self._input: batch})
        if self.card.pool == "cls":
            vectors = vectors[:, 0]
        vectors = vectors.reshape(len(batch), -1)
        if vectors.shape[1] != self.dim:
            raise UnfaceError(f"{self.name}: gives {vectors.shape[1]} numbers, its card says {self.dim}; correct 'dim'")
        return np.asarray(vectors, dtype=np.float32)

    def _batches_agree(self) -> bool:
        """Whether two noisy pictures together give what each gives alone."""
        size = self.card.input.size or 64
        noise = stream(0, "batch check").integers(0, 256, (2, size, size, 3), dtype=np.uint8)
        batch = tensor_of(list(noise), self.card.input)
        alone = np.concatenate([self._run(batch[:1]), self._run(batch[1:])])
        try:
            together = self._run(batch)
        except UnfaceError:
            raise
        except Exception:  # ONNX Runtime's errors have no common class
            return False
        return bool(np.abs(together - alone).max() <= _AGREEMENT * np.abs(alone).max())


def session_of(model: bytes, threads: int | None) -> "onnxruntime.InferenceSession":
    """The graph on the CPU; without ``threads``, on all cores."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # shapes written for one picture would be complained about at every batch
    if threads is not None:
        options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
