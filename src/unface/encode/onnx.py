"""Encoders as ONNX graphs, run by ONNX Runtime; graphs are rewritten to take any number of pictures at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.encode.prepare import tensor_of
from unface.errors import UnfaceError
from unface.models import Card
from unface.seeds import stream

if TYPE_CHECKING:
    import onnx
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
            paired = self._run(batch)
        except UnfaceError:
            raise
        except Exception:  # ONNX Runtime's errors have no common class
            return False
        return bool(np.abs(paired - alone).max() <= _AGREEMENT * np.abs(alone).max())


def session_of(model: bytes, threads: int | None) -> "onnxruntime.InferenceSession":
    """The graph on the CPU; without ``threads``, on all cores."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # shapes written for one picture would be complained about at every batch
    if threads is not None:
        options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def opened_graph(path: Path, output: str | None) -> "onnx.ModelProto":
    """The model with a free first dimension and one output: the named tensor, or the first of its own."""
    import onnx

    try:
        model = onnx.load(str(path))
    except Exception as error:  # protobuf's own errors have no common class
        raise UnfaceError(f"{path.name}: not a readable ONNX file ({type(error).__name__}); fetch it again") from None
    _free_batch(model)
    _keep_output(model, output, path.name)
    return model


def constants(model: "onnx.ModelProto") -> dict[str, NDArray[np.generic]]:
    """The tensors written into the file, by name."""
    from onnx import numpy_helper

    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def inputs(model: "onnx.ModelProto") -> "list[onnx.ValueInfoProto]":
    """What has to be given; older files list their weights among the inputs."""
    written = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in written]


def _free_batch(model: "onnx.ModelProto") -> None:
    """First dimensions of inputs and outputs become free, and reshapes to (1, …) keep the batch they are given."""
    from onnx import numpy_helper

    for value in (*inputs(model), *model.graph.output):
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]  # shapes of the inside, written down for one picture
    written = constants(model)
    for node in list(model.graph.node):
        shape = written.get(node.input[1]) if node.op_type == "Reshape" else None
        if shape is None or shape.ndim != 1 or shape[0] != 1:
            continue
        kept = shape.copy()
        kept[0] = 0  # "as in the input"
        name = f"{node.input[1]}.batch"
        if name not in written:
            written[name] = kept
            model.graph.initializer.append(numpy_helper.from_array(kept, name))
        node.input[1] = name


def _keep_output(model: "onnx.ModelProto", output: str | None, name: str) -> None:
    import onnx

    if output is None or output == model.graph.output[0].name:
        del model.graph.output[1:]
        return
    made = {made for node in model.graph.node for made in node.output}
    if output not in made:
        raise UnfaceError(f"{name}: has no tensor {output!r}; correct 'output' on the card")
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
