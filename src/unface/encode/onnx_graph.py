"""ONNX files as we need them: any number of pictures at a time, and the tensor that holds the vectors as the output."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError

if TYPE_CHECKING:
    import onnx


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
