"""A small encoder as an ONNX file with its card: linear in the pixels, so that its vectors are known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from unface.models import Card, Input, Licence
from unface.seeds import stream

SIZE, DIM = 16, 8
MATRIX = stream(0, "tiny").normal(size=(3 * SIZE * SIZE, DIM)).astype(np.float32) / 100


def card(**changes: object) -> Card:
    given: dict[str, object] = {
        "size": SIZE,
        "layout": "NCHW",
        "channels": "RGB",
        "dtype": "float32",
        "mean": (127.5, 127.5, 127.5),
        "std": (128.0, 128.0, 128.0),
        "alignment": "none",
        "resize": "stretch",
    }
    on_card = {name: changes.pop(name) for name in list(changes) if name not in given}
    fields: dict[str, object] = {
        "name": "tiny",
        "task": "encoder",
        "architecture": "onnx",
        "family": "general",
        "output": None,
        "pool": "none",
        "dim": DIM,
        "licence": Licence("CC0", False),
        "paper": "",
        "cautions": (),
        "sources": (),
        "file": "tiny.onnx",
        "bytes": 0,
        "sha256": "ab" * 32,
        **on_card,
    }
    return Card(input=Input(**{**given, **changes}), **fields)  # type: ignore[arg-type]


def expected(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """The vectors of pictures of SIZE × SIZE, by hand."""
    pixels = (np.stack(images).astype(np.float64) - 127.5) / 128
    return pixels.transpose(0, 3, 1, 2).reshape(len(images), -1) @ MATRIX.astype(np.float64)


def noise(count: int, size: int = SIZE, seed: int = 0) -> list[NDArray[np.uint8]]:
    return list(stream(seed, "noise").integers(0, 256, (count, size, size, 3), dtype=np.uint8))


def write_onnx(path: Path, *, kind: str = "fixed") -> Path:
    """``fixed``: for one picture, with a reshape to (1, …); ``mixing``: pictures of a batch influence each other."""
    flat = helper.make_node("Reshape", ["picture", "shape"], ["flat"])
    nodes = [flat, helper.make_node("MatMul", ["flat", "matrix"], ["vector"])]
    outputs = [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, DIM])]
    if kind == "mixing":
        nodes.append(helper.make_node("ReduceMean", ["vector"], ["mean"], axes=[0], keepdims=1))
        nodes.append(helper.make_node("Add", ["vector", "mean"], ["mixed"]))
        outputs = [helper.make_tensor_value_info("mixed", TensorProto.FLOAT, [1, DIM])]
    shape = np.array([1, 3 * SIZE * SIZE], dtype=np.int64)
    constants = [numpy_helper.from_array(MATRIX, "matrix"), numpy_helper.from_array(shape, "shape")]
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    graph = helper.make_graph(nodes, "tiny", [picture], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path
