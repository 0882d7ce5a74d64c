"""A small network in an ONNX file, of any input and output."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper


def pooling_net(
    path: Path,
    shape: tuple[int | str, ...] = ("n", 3, 16, 16),
    kind: int = TensorProto.FLOAT,
    external: str = "",
    dim: int = 5,
) -> Path:
    """Mean over the picture, then a fixed linear map to ``dim`` numbers."""
    matrix = helper.make_tensor("w", TensorProto.FLOAT, (3, dim), np.ones(3 * dim, np.float32))
    if external:
        matrix.ClearField("float_data")
        matrix.data_location = TensorProto.EXTERNAL
        matrix.external_data.add(key="location", value=external)
    axes = [2, 3] if shape[1] == 3 else [1, 2]
    nodes = [
        helper.make_node("Cast", ["picture"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["x"], ["m"], axes=axes, keepdims=0),
        helper.make_node("MatMul", ["m", "w"], ["vector"]),
    ]
    given = helper.make_tensor_value_info("picture", kind, shape)
    vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, (None, dim))
    graph = helper.make_graph(nodes, "pooling", [given], [vector], [matrix])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
