"""If this fails, ONNX Runtime is given another network than the torch module that gradients pass through."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from tests.encode.tiny import noise
from tests.real import weights_here
from unface.encode import TorchBacked, load_encoder, tensor_of
from unface.encode.torch_encoder import AugNet, EfficientNetLite0, MobileNetV2, graph_of


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
