"""If these fail, an encoder from a file gives other vectors than its network, or a hostile file is run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from tests.encode.tiny import DIM, MATRIX, SIZE, card, expected, noise, write_onnx
from tests.real import weights_here
from tests.refusals.table import refused
from unface.encode import TorchBacked, load_encoder, tensor_of
from unface.encode.onnx import OnnxEncoder
from unface.encode.torch_encoder import AugNet, EfficientNetLite0, MobileNetV2, SameConv, TorchEncoder, graph_of
from unface.models import card as shipped
from unface.models import cards
from unface.seeds import stream


def test_a_detector_is_no_encoder() -> None:
    with refused("encoder", "yunet"):
        load_encoder("yunet")


def test_an_unknown_name_is_one_sentence() -> None:
    with refused("weights", "arcface-mbv"):
        load_encoder("arcface-mbv")


def test_missing_libraries_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder._LIBRARIES", ("PIL", "surely_not_there"))
    with refused("encoder", None, "'unface[images]'"):
        load_encoder("sface")


def test_an_encoder_that_needs_torch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder.find_spec", lambda name: None if name == "torch" else object())
    with refused("encoder", "augnet-r50"):
        load_encoder("augnet-r50")


def test_torchscript_is_a_program_and_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    program = replace(next(one for one in cards() if one.name == "sscd"), name="script", architecture="torchscript")
    monkeypatch.setattr("unface.encode.encoder.card", lambda name: program)
    with refused("encoder", "script"):
        load_encoder("script")


def test_vectors_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    images = noise(5)
    vectors = encoder.encode(images)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(images), rtol=1e-4, atol=1e-5)
    assert encoder.encode([]).shape == (0, DIM)


def test_a_file_made_for_one_picture_takes_many_at_once(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    sizes: list[int] = []
    run = encoder._run
    encoder._run = lambda batch: (sizes.append(len(batch)), run(batch))[1]  # type: ignore[method-assign, func-returns-value]
    encoder.encode(noise(5))
    assert sizes == [5]


def test_a_file_whose_pictures_influence_each_other_is_run_one_by_one(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx", kind="mixing"))
    images = noise(4)
    np.testing.assert_allclose(encoder.encode(images), 2 * expected(images), rtol=1e-4, atol=1e-5)


def test_a_tensor_from_the_inside_can_be_the_vector(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx", kind="mixing")
    encoder = OnnxEncoder(card(output="vector"), path)
    images = noise(4)
    np.testing.assert_allclose(encoder.encode(images), expected(images), rtol=1e-4, atol=1e-5)
    with refused("encoder", "tiny.onnx", "'absent'", "'output'"):
        OnnxEncoder(card(output="absent"), path)


def test_a_card_that_promises_another_length_is_one_sentence(tmp_path: Path) -> None:
    with refused("encoder", "tiny", "gives 8", "says 9", "'dim'"):
        OnnxEncoder(card(dim=9), write_onnx(tmp_path / "tiny.onnx"))


def test_a_file_that_is_no_onnx_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(b"\x08\x07 nothing of the kind")
    with refused("encoder", "tiny.onnx", "readable"):
        OnnxEncoder(card(), tmp_path / "tiny.onnx")


@pytest.mark.parametrize("name", ["arcface-mbf", "sface", "edgeface-s", "sscd-distilled"])
def test_shipped_encoders_give_the_same_one_by_one_and_together(name: str) -> None:
    import onnxruntime

    path = weights_here(name)
    encoder = OnnxEncoder(shipped(name), path, threads=1)
    images = noise(3, size=shipped(name).input.size)
    together = encoder.encode(images)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    plain = onnxruntime.InferenceSession(str(path), options)
    from unface.encode import tensor_of

    for row, image in enumerate(images):
        batch = tensor_of([image], shipped(name).input)
        (alone,) = plain.run(None, {plain.get_inputs()[0].name: batch})
        np.testing.assert_allclose(together[row], alone[0], atol=1e-4 * np.abs(alone).max())


def test_rewriting_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx")
    before = path.read_bytes()
    OnnxEncoder(card(), path).encode(noise(2))
    assert path.read_bytes() == before
    assert onnx.load(str(path)).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


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


def lively(module: nn.Module) -> nn.Module:
    """With norms that do something: as they are made they would pass all on."""
    torch.manual_seed(0)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                assert tensor is not None
                nn.init.uniform_(tensor, 0.5, 1.5)
    return module.eval()


@pytest.mark.parametrize("kind", [MobileNetV2, EfficientNetLite0, AugNet])
@pytest.mark.parametrize("shape", [(1, 3, 64, 64), (3, 3, 65, 98)])
def test_the_graph_gives_what_the_module_does_for_any_number_and_size(
    kind: type[nn.Module], shape: tuple[int, ...]
) -> None:
    module = lively(kind())
    pictures = torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    with torch.inference_mode():
        expected = module(pictures).numpy()
    session = onnxruntime.InferenceSession(graph_of(module).SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: pictures.numpy()})
    assert expected.std(axis=1).min() > 0
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_a_layer_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match="GELU is not written as ONNX"):
        graph_of(nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU()).eval())


@pytest.mark.parametrize("name", ["mobilenet-v2", "efficientnet-lite0", "augnet-r50"])
def test_published_weights_give_the_vectors_of_their_torch_module(name: str) -> None:
    weights_here(name)
    encoder = load_encoder(name, threads=1)
    assert isinstance(encoder, TorchBacked)
    images = noise(2, size=224)
    with torch.inference_mode():
        expected = encoder.torch_module()(torch.from_numpy(tensor_of(images, encoder.card.input))).numpy()
    np.testing.assert_allclose(encoder.encode(images), expected, atol=1e-4 * np.abs(expected).max())


transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}


def test_clip_gives_the_projected_picture(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config={**{name: SMALL[name] for name in list(SMALL)[:4]}, "vocab_size": 99},
        vision_config=SMALL,
        projection_dim=8,
    )
    whole = transformers.CLIPModel(config).eval()
    whole.save_pretrained(tmp_path)
    encoder = TorchEncoder(card(architecture="transformers"), tmp_path / "model.safetensors")
    images = noise(3)
    pictures = torch.from_numpy(tensor_of(images, card().input))
    with torch.inference_mode():
        expected = whole.visual_projection(whole.vision_model(pixel_values=pictures).pooler_output).numpy()
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-5)


def test_dinov2_gives_its_class_token(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = transformers.Dinov2Model(transformers.Dinov2Config(**SMALL)).eval()
    model.save_pretrained(tmp_path)
    encoder = TorchEncoder(card(architecture="transformers", pool="cls", dim=16), tmp_path / "model.safetensors")
    images = noise(3)
    with torch.inference_mode():
        expected = model(pixel_values=torch.from_numpy(tensor_of(images, card().input))).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-5)


def test_weights_that_do_not_fit_are_refused_and_not_made_up(tmp_path: Path) -> None:
    transformers.Dinov2Model(transformers.Dinov2Config(**SMALL)).save_pretrained(tmp_path)
    transformers.Dinov2Config(**{**SMALL, "num_hidden_layers": 3}).save_pretrained(tmp_path)
    with refused("encoder", "tiny", "weights"):
        TorchEncoder(card(architecture="transformers", pool="cls", dim=16), tmp_path / "model.safetensors")


def test_a_folder_without_a_config_is_one_sentence(tmp_path: Path) -> None:
    with refused("encoder", "tiny", "holds"):
        TorchEncoder(card(architecture="transformers"), tmp_path / "model.safetensors")
