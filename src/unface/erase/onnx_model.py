"""A Projection as an ONNX model, for whoever applies it far from Python."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unface.erase.projection import Projection
from unface.erase.rows import VANISHED
from unface.errors import UnfaceError
from unface.output.write import write_file

if TYPE_CHECKING:
    import onnx

# What ONNX Runtime reads since 1.13 (2022).
_OPSET, _IR = 17, 8


def save_onnx(projection: Projection, path: Path) -> None:
    """Write the model, by a rename once all is written."""
    write_file(path, onnx_model(projection).SerializeToString(deterministic=True))


def onnx_model(projection: Projection) -> "onnx.ModelProto":
    """``vectors`` (batch, d) → ``erased`` (batch, d), float32; vectors that vanish come out as zeros, as in apply."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise UnfaceError("export: the onnx package is not installed; pip install 'unface[onnx]'") from None
    built = _steps(projection, TensorProto.FLOAT, TensorProto.DOUBLE)
    shape: list[str | int | None] = ["batch", projection.dim]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [output], **options) for kind, inputs, output, options in built.steps],
        f"unface {projection.kind}, rank {projection.rank}",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("erased", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in built.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    model.producer_name = "unface"
    helper.set_model_props(model, {"unface.projection.sha256": projection.sha256})
    checker.check_model(model)
    return model


@dataclass
class _Steps:
    """Operators in order as (kind, inputs, output, options), and the constants they use."""

    steps: list[tuple[str, list[str], str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def then(self, kind: str, *inputs: str, name: str, **options: list[int] | int) -> str:
        self.steps.append((kind, list(inputs), name, options))
        return name

    def constant(self, name: str, value: NDArray[np.float64] | float) -> str:
        self.constants[name] = np.asarray(value, np.float64)
        return name


def _steps(projection: Projection, single: int, double: int) -> _Steps:
    """In float64 between two casts, for the reason that LinearMap gives."""
    built, linear = _Steps(), projection.linear
    given = built.then("Cast", "vectors", name="given", to=double)
    mapped = built.then("MatMul", given, built.constant("left", linear.left), name="read")
    if linear.right is not None:
        mapped = built.then("MatMul", mapped, built.constant("right", linear.right), name="product")
    if linear.subtract:
        mapped = built.then("Sub", given, mapped, name="kept")
    if linear.offset is not None:
        mapped = built.then("Add", mapped, built.constant("offset", linear.offset), name="moved")
    before = built.then("ReduceSumSquare", given, name="before", axes=[1], keepdims=1)
    after = built.then("ReduceSumSquare", mapped, name="after", axes=[1], keepdims=1)
    least = built.then("Mul", before, built.constant("share", VANISHED**2), name="least")
    vanished = built.then("LessOrEqual", after, least, name="vanished")
    if projection.normalise:
        square = built.then("Where", vanished, built.constant("one", 1), after, name="square")
        length = built.then("Sqrt", square, name="length")
        mapped = built.then("Div", mapped, length, name="scaled")
    whole = built.then("Where", vanished, built.constant("zero", 0), mapped, name="whole")
    built.then("Cast", whole, name="erased", to=single)
    return built
