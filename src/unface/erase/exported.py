"""A Projection in forms for other runtimes, by the steps of Kernel: an ONNX model, and FAISS transforms for queries."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unface.erase.kernel import UNIT, VANISHED
from unface.erase.projection import Projection
from unface.errors import UnfaceError
from unface.output.write import write_file

if TYPE_CHECKING:
    import faiss
    import onnx

# What ONNX Runtime reads since 1.13 (2022).
_OPSET, _IR = 17, 8


def save_onnx(projection: Projection, path: Path) -> None:
    """Write the model, by a rename once all is written."""
    write_file(path, onnx_model(projection).SerializeToString(deterministic=True))


def onnx_model(projection: Projection) -> "onnx.ModelProto":
    """``vectors`` (batch, d) → ``erased`` (batch, released), float32; vectors that vanish come out as zeros."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise UnfaceError("export: the onnx package is not installed; pip install 'unface[onnx]'") from None
    built = _steps(projection, TensorProto.FLOAT, TensorProto.DOUBLE)
    given: list[str | int | None] = ["batch", projection.dim]
    released: list[str | int | None] = ["batch", projection.released_dim]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [output], **options) for kind, inputs, output, options in built.steps],
        f"unface {projection.kind}, rank {projection.rank}",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("erased", TensorProto.FLOAT, released)],
        [numpy_helper.from_array(array, name) for name, array in built.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    model.producer_name = "unface"
    helper.set_model_props(model, {"unface.projection.sha256": projection.sha256})
    checker.check_model(model)
    return model


def faiss_transforms(projection: Projection) -> "list[faiss.VectorTransform]":
    """In the order in which they are applied, so that raw queries can be put to an index of erased vectors.

    In float32, as all of FAISS: good for queries, which are searched for and forgotten, and not for vectors that are
    kept (see LinearMap). A query of which nothing is left comes out as noise, not as zero.
    """
    try:
        import faiss
    except ImportError:
        raise UnfaceError("faiss_transform: FAISS is not installed; pip install 'unface[stores]'") from None
    if projection.gate is not None:
        raise UnfaceError(
            "faiss_transform: this projection has a face gate, and a FAISS pre-transform is one linear map for every "
            "vector; erase queries with Projection.apply, or its ONNX or torch form, before the search"
        )
    dim, released, kernel, linear = projection.dim, projection.released_dim, projection.kernel, projection.linear
    rows = linear(np.eye(dim))
    step = faiss.LinearTransform(dim, released, linear.offset is not None)
    if linear.offset is not None:
        rows -= linear.offset
        faiss.copy_array_to_vector(linear.offset.astype(np.float32), step.b)
    # Rows of the identity come out as rows of the map; FAISS multiplies from the other side.
    faiss.copy_array_to_vector(rows.T.astype(np.float32).ravel(), step.A)
    step.is_trained = True
    sides = ((dim, kernel.unit_input), (released, kernel.unit_output))
    before, after = ([faiss.NormalizationTransform(length, 2.0)] if unit else [] for length, unit in sides)
    return [*before, step, *after]


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
    """The steps of Kernel; in float64 between two casts, for the reason that LinearMap gives."""
    built, kernel, linear = _Steps(), projection.kernel, projection.linear
    one, zero, share = (
        built.constant(name, value) for name, value in (("one", 1), ("zero", 0), ("share", VANISHED**2))
    )

    def scaled(vectors: str, square: str, without: str, name: str) -> str:
        """To length one, but for those that have none."""
        square = built.then("Where", without, one, square, name=f"{name}_square")
        return built.then("Div", vectors, built.then("Sqrt", square, name=f"{name}_length"), name=name)

    given = built.then("Cast", "vectors", name="given", to=double)
    before = built.then("ReduceSumSquare", given, name="before", axes=[1], keepdims=1)
    nothing = built.then("Equal", before, zero, name="nothing")
    if kernel.unit_input:
        off = built.then("Abs", built.then("Sub", before, one, name="over"), name="off")
        near = built.then("LessOrEqual", off, built.constant("rounding", UNIT), name="near")
        as_it_is = built.then("Or", nothing, near, name="as_it_is")
        rounded = built.then("Cast", scaled(given, before, as_it_is, "unit"), name="unit_single", to=single)
        given, least = built.then("Cast", rounded, name="unit_double", to=double), share
    else:
        least = built.then("Mul", before, share, name="least")
    if kernel.gate is not None:
        along = built.then("MatMul", given, built.constant("gate", kernel.gate.weights[:, None]), name="along")
        score = built.then("Add", along, built.constant("gate_offset", kernel.gate.offset), name="score")
        face = built.then("Greater", score, zero, name="face")
    mapped = built.then("MatMul", given, built.constant("left", linear.left), name="read")
    if linear.right is not None:
        mapped = built.then("MatMul", mapped, built.constant("right", linear.right), name="product")
    if linear.subtract:
        mapped = built.then("Sub", given, mapped, name="kept")
    if linear.offset is not None:
        mapped = built.then("Add", mapped, built.constant("offset", linear.offset), name="moved")
    after = built.then("ReduceSumSquare", mapped, name="after", axes=[1], keepdims=1)
    little = built.then("LessOrEqual", after, least, name="little")
    vanished = built.then("Or", nothing, little, name="vanished")
    if kernel.unit_output:
        mapped = scaled(mapped, after, vanished, "scaled")
    whole = built.then("Where", vanished, zero, mapped, name="whole")
    if kernel.gate is not None:
        whole = built.then("Where", face, whole, given, name="gated")
    built.then("Cast", whole, name="erased", to=single)
    return built
