"""A generator in INSwapper's layout whose pictures are known by heart."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from unface.seeds import stream

EMAP = stream(0, "emap").normal(size=(512, 512)).astype(np.float32)  # not symmetric: its sides matter
TILES = np.kron(np.eye(16), np.ones((1, 8))).astype(np.float32)  # (16, 128)
STRENGTH = np.float32(3.0)


def written(path: Path, *, emap: NDArray[np.float32] = EMAP, dim: int = 512, factor: float = 1.0) -> Path:
    """A generator in INSwapper's layout: the target with the source's first 256 numbers added as tiles of 8 pixels."""
    first, shape = np.arange(256), np.array([1, 1, 16, 16])
    constants = {
        "first": first, "shape": shape, "tiles": TILES, "upright": TILES.T.copy(),
        "strength": STRENGTH, "factor": np.float32(factor), "emap": emap,
    }  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["source", "first"], ["some"], axis=1),
        helper.make_node("Reshape", ["some", "shape"], ["grid"]),
        helper.make_node("MatMul", ["upright", "grid"], ["rows"]),
        helper.make_node("MatMul", ["rows", "tiles"], ["pattern"]),
        helper.make_node("Mul", ["pattern", "strength"], ["strong"]),
        helper.make_node("Add", ["target", "strong"], ["sum"]),
        helper.make_node("Mul", ["sum", "factor"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "swapper",
        [
            helper.make_tensor_value_info("target", TensorProto.FLOAT, [1, 3, 128, 128]),
            helper.make_tensor_value_info("source", TensorProto.FLOAT, [1, dim]),
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 3, 128, 128])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path
