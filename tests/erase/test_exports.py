"""If these fail, what serves vectors in another form releases others than the projection."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.erase.people import people
from unface.erase import ISP, LEACE, Eraser, Projection, fit_projection


def run(path: Path, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: NDArray[np.float32] = session.run(["erased"], {"vectors": vectors})[0]
    return found


ERASERS = [ISP(20), ISP(50), ISP(80), ISP(0), LEACE(20), LEACE(80), LEACE(), ISP(20, normalise=False)]


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_exported_model_is_apply(eraser: Eraser, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    path = tmp_path / "p.onnx"
    found.export(path)
    for rows in (1, 7, len(made)):
        assert run(path, made.vectors[:rows]) == pytest.approx(found.apply(made.vectors[:rows]), abs=1e-6)
    assert run(path, made.vectors) != pytest.approx(made.unit().vectors, abs=1e-6) or found.rank == 0
    assert list(tmp_path.iterdir()) == [path]


MAPPED = [
    "product = MatMul(read, right)",
    "kept = Sub({given}, product)",
    "moved = Add(kept, offset)",
    "after = ReduceSumSquare(moved)",
    "little = LessOrEqual(after, {least})",
    "vanished = Or(nothing, little)",
    "scaled_square = Where(vanished, one, after)",
    "scaled_length = Sqrt(scaled_square)",
    "scaled = Div(moved, scaled_length)",
    "whole = Where(vanished, zero, scaled)",
    "erased = Cast(whole)",
]


def operators(model: Any) -> list[str]:
    return [f"{node.output[0]} = {node.op_type}({', '.join(node.input)})" for node in model.graph.node]


def test_a_model_of_a_normalised_space_scales_its_input_first() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    from unface.erase.exported import onnx_model

    assert operators(onnx_model(fit_projection(LEACE(20), people(120, 3, 100).unit()))) == [
        "given = Cast(vectors)",
        "before = ReduceSumSquare(given)",
        "nothing = Equal(before, zero)",
        "over = Sub(before, one)",
        "off = Abs(over)",
        "near = LessOrEqual(off, rounding)",
        "as_it_is = Or(nothing, near)",
        "unit_square = Where(as_it_is, one, before)",
        "unit_length = Sqrt(unit_square)",
        "unit = Div(given, unit_length)",
        "unit_single = Cast(unit)",
        "unit_double = Cast(unit_single)",
        "read = MatMul(unit_double, left)",
        *(step.format(given="unit_double", least="share") for step in MAPPED),
    ]


def test_the_model_says_what_it_is_and_is_these_operators() -> None:
    """Whoever changes them changes what services have loaded; all between the two casts is in float64."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from unface.erase.exported import onnx_model

    made = people(120, 3, 100)
    found = LEACE(20).fit(made.vectors, made.identities).projection_
    model = onnx_model(found)
    nodes = model.graph.node
    assert operators(model) == [
        "given = Cast(vectors)",
        "before = ReduceSumSquare(given)",
        "nothing = Equal(before, zero)",
        "least = Mul(before, share)",
        "read = MatMul(given, left)",
        *(step.format(given="given", least="least") for step in MAPPED),
    ]
    assert [nodes[0].attribute[0].i, nodes[-1].attribute[0].i] == [onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT]
    assert {constant.data_type for constant in model.graph.initializer} == {onnx.TensorProto.DOUBLE}
    for end, name in ((model.graph.input[0], "vectors"), (model.graph.output[0], "erased")):
        kind = end.type.tensor_type
        assert (end.name, kind.elem_type) == (name, onnx.TensorProto.FLOAT)
        assert [kind.shape.dim[0].dim_param, kind.shape.dim[1].dim_value] == ["batch", 100]
    assert model.graph.name == "unface leace, rank 20"
    assert (model.producer_name, model.ir_version, model.opset_import[0].version) == ("unface", 8, 17)
    assert model.opset_import[0].domain == ""
    assert {one.key: one.value for one in model.metadata_props} == {"unface.projection.sha256": found.sha256}


def test_the_same_projection_is_exported_as_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    for name in ("one", "two"):
        axis().export(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_vectors_that_vanish_come_out_as_zeros(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    found = axis()
    found.export(tmp_path / "p.onnx")
    given = np.array([[5, 0, 0], [5, 1e-7, 0], [0, 0, 0], [5, 0, -1]], np.float32)
    assert run(tmp_path / "p.onnx", given).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, -1]]


def axis(*, normalise: bool = True) -> Projection:
    vectors = np.array([[1, 0, 0], [-1, 0, 0]], np.float32)
    return ISP(1, normalise=normalise).fit(vectors, [0, 1]).projection_


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_module_is_apply(eraser: Eraser) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    module = found.torch_module()
    given = torch.tensor(made.vectors)
    assert module(given).dtype == torch.float32
    assert module(given).numpy() == pytest.approx(found.apply(made.vectors), abs=1e-6)
    assert module(given[3]).numpy() == pytest.approx(found.apply(made.vectors[3]), abs=1e-6)
    assert module(given.reshape(40, 9, 100)).reshape(-1, 100).numpy() == pytest.approx(module(given).numpy(), abs=1e-6)


@pytest.mark.parametrize("eraser", [ISP(20), ISP(80)], ids=repr)
def test_no_more_is_left_along_what_was_removed_than_rounding_what_is_kept_leaves(eraser: Eraser) -> None:
    """In float32 inside, what is left would go with what was removed; that is seen where vectors lie far along it."""
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    far = made.vectors + 1e4 * found.directions[:, 0].astype(np.float32)
    left = found.torch_module()(torch.from_numpy(far).double()).numpy() @ found.directions
    assert np.abs(left).max() < 1e-11


@pytest.mark.parametrize("normalise", [True, False])
def test_vectors_that_vanish_become_zeros_and_leave_gradients_finite(normalise: bool) -> None:
    given = torch.tensor([[5, 0, 0], [5, 1e-7, 0], [0, 0, 0], [5, 0, -1]], requires_grad=True)
    out = axis(normalise=normalise).torch_module()(given)
    assert out.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, -1]]
    out.square().sum().backward()
    assert given.grad is not None
    assert torch.isfinite(given.grad).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_the_type_of_what_is_given_is_kept_and_the_arithmetic_is_in_float64(name: str) -> None:
    dtype = getattr(torch, name)
    made = people(120, 3, 100)
    found = ISP(20).fit(made.vectors, made.identities).projection_
    given = torch.tensor(made.vectors).to(dtype)
    out = found.torch_module()(given)
    assert out.dtype == dtype
    exact = torch.from_numpy(found.apply(given.double().numpy()))
    assert torch.allclose(out.double(), exact.to(dtype).double(), atol=torch.finfo(dtype).eps + 1e-6, rtol=0)


def test_it_has_nothing_to_train_and_its_state_can_be_saved() -> None:
    module = axis().torch_module()
    assert list(module.parameters()) == []
    assert {name: value.dtype for name, value in module.state_dict().items()} == {"left": torch.float64}
    made = people(120, 3, 100)
    thin = LEACE(20).fit(made.vectors, made.identities).projection_
    state = {name: tuple(value.shape) for name, value in thin.torch_module().state_dict().items()}
    assert state == {"left": (100, 20), "right": (20, 100), "offset": (100,)}


def before(projection: Projection, index: Any) -> Any:
    for step in reversed(projection.faiss_transform()):
        index = faiss.IndexPreTransform(step, index)
    return index


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_transforms_in_order_are_apply_within_rounding(eraser: Eraser) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    vectors = made.vectors
    for step in found.faiss_transform():
        vectors = step.apply(vectors)
    wanted = found.apply(made.vectors)
    assert vectors == pytest.approx(wanted, abs=4e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("eraser", [ISP(20), LEACE(20), ISP(20, normalise=False)], ids=repr)
def test_raw_queries_find_what_erased_ones_find_also_after_the_index_was_saved(eraser: Eraser, tmp_path: Path) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    erased = found.apply(made.vectors)
    index = faiss.IndexFlatL2(100)
    index.add(erased)
    faiss.write_index(before(found, index), str(tmp_path / "index"))
    opened = faiss.read_index(str(tmp_path / "index"))
    near, at = opened.search(made.vectors, 5)
    assert np.array_equal(at[:, 0], np.arange(len(made)))
    assert np.array_equal(at[:, 1], index.search(erased, 2)[1][:, 1])
    assert near[:, 0] == pytest.approx(0, abs=1e-4 * float(np.square(erased).sum(axis=1).max()))
