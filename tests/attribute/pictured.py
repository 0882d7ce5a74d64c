"""Drawn scenes as picture files, an encoder without weights, and a detector that knows where faces were drawn."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from tests.data.pictures import write_zip
from unface.attribute import LocatedPicture
from unface.faces import Face

SIZE, DIM = 112, 192


class Drawn:
    """Finds the face of every picture that was drawn, and none in any other; counts how often it looked."""

    name = "drawn"

    def __init__(self, pictures: Iterable[LocatedPicture]) -> None:
        self.faces = {one.image.tobytes(): one.face for one in pictures if one.image is not None}
        self.looked = 0

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        self.looked += 1
        face = self.faces.get(image.tobytes())
        return [] if face is None else [face]


def file_of(picture: LocatedPicture) -> str:
    return f"{picture.identity}/{picture.id.replace('/', '-')}.png"


def png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def blank() -> bytes:
    return png(np.full((250, 260, 3), 90, dtype=np.uint8))


def write_scenes(path: Path, pictures: Sequence[LocatedPicture], more: dict[str, bytes] | None = None) -> Path:
    """A zip of <identity>/<picture>.png."""
    files = {file_of(one): png(one.image) for one in pictures if one.image is not None}
    return write_zip(path, {**files, **(more or {})})


def write_encoder(path: Path, cell: int = 14, dim: int = DIM) -> Path:
    """The mean colours of square cells, the first so many of them; 8 × 8 cells if nobody says otherwise."""
    nodes = [
        helper.make_node("AveragePool", ["picture"], ["cells"], kernel_shape=[cell, cell], strides=[cell, cell]),
        helper.make_node("Flatten", ["cells"], ["all"], axis=1),
        helper.make_node("Gather", ["all", "first"], ["vector"], axis=1),
    ]
    first = numpy_helper.from_array(np.arange(dim), "first")
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])
    vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["n", dim])
    graph = helper.make_graph(nodes, "cells", [picture], [vector], [first])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path
