"""If this fails, a torch encoder is wired otherwise than it was trained, or gradients do not reach the picture."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from tests.encode.tiny import MATRIX, SIZE, card, noise, write_onnx
from tests.real import weights_here
from tests.refusals.table import refused
from unface.encode import TorchBacked, load_encoder, tensor_of
from unface.encode.onnx import OnnxEncoder
from unface.encode.torch_encoder import AugNet, EfficientNetLite0, MobileNetV2, SameConv, TorchEncoder
from unface.seeds import stream


@pytest.mark.parametrize("name", ["arcface-mbf", "sface", "edgeface-s", "dinov2-s-focus"])
def test_an_encoder_in_torch_equals_onnx_runtime_and_passes_gradients(name: str) -> None:
    weights_here(name)
    encoder = load_encoder(name, accept_licence=True, threads=1)
    assert isinstance(encoder, TorchBacked)
    images = noise(2, size=encoder.card.input.size or 112)
    vectors = encoder.encode(images)
    pictures = torch.from_numpy(tensor_of(images, encoder.card.input)).requires_grad_()
    found = encoder.torch_module()(pictures)
    np.testing.assert_allclose(found.detach().numpy(), vectors, atol=1e-4 * np.abs(vectors).max())
    found[0].square().sum().backward()
    assert pictures.grad is not None
    assert torch.isfinite(pictures.grad).all()
    assert (pictures.grad[0] != 0).any()
    assert (pictures.grad[1] == 0).all()


def test_the_gradient_of_a_linear_graph_is_its_matrix(tmp_path: Path) -> None:
    module = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx")).torch_module()
    pictures = torch.zeros(3, 3, SIZE, SIZE, requires_grad=True)
    module(pictures)[1, 2].backward()
    assert pictures.grad is not None
    np.testing.assert_array_equal(pictures.grad[1].reshape(-1).numpy(), MATRIX[:, 2])
    assert not [weight for weight in module.parameters() if weight.requires_grad]


OPERATORS = {
    "asymmetric pads": helper.make_node("Conv", ["x", "w"], ["y"], pads=[0, 1, 2, 0], strides=[2, 1]),
    "dilated groups": helper.make_node("Conv", ["x", "g"], ["y"], group=2, dilations=[2, 2]),
    "slope": helper.make_node("PRelu", ["x", "slope"], ["y"]),
    "slices": helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"]),
    "negative axis": helper.make_node("ReduceMean", ["x"], ["y"], axes=[-1], keepdims=0),
    "norm": helper.make_node("ReduceL2", ["x"], ["y"], axes=[2, 3], keepdims=1),
    "clip": helper.make_node("Clip", ["x", "low"], ["y"]),
    "expand": helper.make_node("Expand", ["x", "shape"], ["y"]),
    "softmax": helper.make_node("Softmax", ["x"], ["y"], axis=1),
}


@pytest.mark.parametrize("what", OPERATORS)
def test_operators_do_what_onnx_runtime_does(tmp_path: Path, what: str) -> None:
    draw = stream(0, "operators")
    fixed = {
        "w": draw.normal(size=(3, 4, 3, 3)).astype(np.float32),
        "g": draw.normal(size=(6, 2, 3, 3)).astype(np.float32),
        "slope": draw.normal(size=(4, 1, 1)).astype(np.float32),
        "starts": np.array([1, -4]),
        "ends": np.array([3, 1000]),
        "axes": np.array([1, 3]),
        "steps": np.array([1, 2]),
        "low": np.array(0.1, dtype=np.float32),
        "shape": np.array([1, 4, 7, 7]),
    }
    wanted = set(OPERATORS[what].input) - {"x"}
    graph = helper.make_graph(
        [OPERATORS[what]],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4, 7, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in fixed.items() if name in wanted],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    import onnxruntime

    from unface.encode.onnx_torch import module_of

    x = draw.normal(size=(2, 4, 7, 7)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = module_of(model, card())(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected.reshape(2, -1), rtol=1e-5, atol=1e-5)


def test_a_graph_with_other_operators_is_one_sentence(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx")
    model = onnx.load(str(path))
    model.graph.node.append(helper.make_node("Tanh", ["vector"], ["bent"]))
    model.graph.output[0].name = "bent"
    onnx.save(model, str(path))
    encoder = OnnxEncoder(card(), path)
    with refused("encoder", "tiny"):
        encoder.torch_module()


@pytest.mark.parametrize(("module", "dim"), [(MobileNetV2(), 1280), (EfficientNetLite0(), 1280), (AugNet(), 768)])
def test_plain_modules_take_any_size_and_give_one_vector(module: torch.nn.Module, dim: int) -> None:
    with torch.inference_mode():
        assert module.eval()(torch.zeros(2, 3, 65, 97)).shape == (2, dim)


def test_same_padding_puts_the_odd_pixel_right_and_below() -> None:
    layer = SameConv(1, 1, 3, stride=2)
    with torch.inference_mode():
        layer.weight[:] = 0
        layer.weight[0, 0, 0, 0] = 1  # the upper left corner of the window
        found = layer(torch.arange(16.0).reshape(1, 1, 4, 4))
    assert found[0, 0].tolist() == [[0, 2], [8, 10]]


@pytest.mark.parametrize("name", ["mobilenet-v2", "efficientnet-lite0", "augnet-r50"])
def test_published_weights_fit_without_a_rest(name: str) -> None:
    weights_here(name)
    encoder = load_encoder(name, threads=1)
    vectors = encoder.encode(noise(1, size=64))
    assert vectors.shape == (1, encoder.dim)
    assert np.isfinite(vectors).all()


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("evil"),))  # type: ignore[return-value]  # any callable will do for pickle


def test_a_pickle_that_runs_code_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"features.0.0.weight": Evil()}, tmp_path / "weights.pth")
    with refused("encoder", "weights.pth", "UnpicklingError"):
        TorchEncoder(card(architecture="mobilenet_v2"), tmp_path / "weights.pth")
    assert not (tmp_path / "evil").exists()


def test_weights_of_something_else_are_one_sentence(tmp_path: Path) -> None:
    torch.save(AugNet().state_dict(), tmp_path / "weights.pth")
    with refused("encoder", "weights.pth"):
        TorchEncoder(card(architecture="mobilenet_v2"), tmp_path / "weights.pth")
