"""Encoders as torch modules: published state dicts in plain modules of ours, and transformers."""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn
from torch.nn import functional

from unface.encode.onnx import session_of
from unface.encode.prepare import tensor_of
from unface.errors import UnfaceError
from unface.models import Card

if TYPE_CHECKING:
    import onnx

_OPSET, _IR = 13, 8

_FUNCTIONS: dict[object, str] = {operator.add: "Add", torch.relu: "Relu", torch.tanh: "Tanh"}

# An operator's name, its weights in order, its options.
Operator = tuple[str, list[torch.Tensor], dict[str, Any]]


class TorchEncoder:
    """A frozen module on the CPU; modules of ours are run by ONNX Runtime, which is several times as fast."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        self.card, self.name, self.dim = card, card.name, card.dim
        if threads is not None:
            torch.set_num_threads(threads)
        self._module = _module(card, path).eval()
        self._module.requires_grad_(False)
        foreign = card.architecture == "transformers"
        self._session = None if foreign else session_of(graph_of(self._module).SerializeToString(), threads)

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        vectors = self._run(tensor_of(images, self.card.input))
        if vectors.shape != (len(images), self.dim):
            raise UnfaceError(
                f"{self.name}: gives {vectors.shape[1:]} numbers, its card says {self.dim}; correct 'dim'"
            )
        return vectors

    def torch_module(self) -> nn.Module:
        """The module itself."""
        return self._module

    def _run(self, batch: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
        if self._session is not None:
            (vectors,) = self._session.run(None, {self._session.get_inputs()[0].name: batch})
        else:
            with torch.inference_mode():
                vectors = self._module(torch.from_numpy(batch)).float().numpy()
        return np.asarray(vectors, dtype=np.float32)


def _module(card: Card, path: Path) -> nn.Module:
    match card.architecture:
        case "transformers":
            return _transformers_model(path.parent, card)
        case "mobilenet_v2":
            return _filled(MobileNetV2(), path, drop="classifier.")
        case "efficientnet_lite0":
            return _filled(EfficientNetLite0(), path, drop="_fc.")
        case _:
            return _filled(AugNet(), path, prefix="module.pre.")


def _filled(module: nn.Module, path: Path, *, drop: str | None = None, prefix: str = "") -> nn.Module:
    """The module with a file's weights, every one of which must fit; the classifier on top is dropped."""
    try:
        # weights_only: a pickle that would run code is refused.
        state = torch.load(path, map_location="cpu", weights_only=True)
        wanted = {
            name.removeprefix(prefix): value
            for name, value in state.items()
            if drop is None or not name.startswith(drop)
        }
        module.load_state_dict(wanted)
    except Exception as error:  # torch, zipfile and pickle raise nearly anything
        raise UnfaceError(
            f"{path.name}: not the weights expected here ({type(error).__name__}); fetch it again"
        ) from None
    return module


def _transformers_model(folder: Path, card: Card) -> nn.Module:
    """(n, 3, size, size) → (n, dim): CLIP's and SigLIP's projected picture, or a ViT's class token."""
    try:
        from transformers import AutoModel
    except ImportError:
        raise UnfaceError(f"{card.name}: needs transformers; install it, or choose an encoder without") from None
    try:
        # Never with trust_remote_code: nothing that lies beside the weights is run.
        model, loading = AutoModel.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        words = " ".join(str(error).split())[:120]
        raise UnfaceError(f"{card.name}: {folder.name} holds no model that transformers reads ({words})") from None
    absent = [*loading["missing_keys"], *loading["mismatched_keys"]]
    if absent:  # transformers would go on with random numbers in their place
        raise UnfaceError(f"{card.name}: {len(absent)} weights are missing or of another shape, {absent[0]} the first")
    return _Vector(model, card.pool == "cls")


class _Vector(nn.Module):
    """The one tensor of a model's output that is the vector; of a model for text and pictures, the picture's half."""

    def __init__(self, model: nn.Module, class_token: bool) -> None:
        super().__init__()
        self.class_token = class_token
        self.vision = getattr(model, "vision_model", model)
        self.projection = getattr(model, "visual_projection", nn.Identity())

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        output = self.vision(pixel_values=pictures)
        vectors: torch.Tensor = output.last_hidden_state[:, 0] if self.class_token else output.pooler_output
        projected: torch.Tensor = self.projection(vectors)
        return projected


def graph_of(module: nn.Module) -> "onnx.ModelProto":
    """A module in evaluation mode from (n, 3, h, w) float32 to vectors, for pictures of any number and size."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, tensors = [], []
    steps = list(_Layers().trace(module).nodes)
    for step in steps[1:-1]:
        kind, weights, options = _operator(module, step)
        named = {f"{step.name}.{number}": weight for number, weight in enumerate(weights)}
        tensors += [numpy_helper.from_array(weight.detach().numpy(), name) for name, weight in named.items()]
        inputs = [one.name for one in step.all_input_nodes]
        nodes.append(helper.make_node(kind, [*inputs, *named], [step.name], **options))
    picture = helper.make_tensor_value_info(steps[0].name, TensorProto.FLOAT, ["batch", 3, "height", "width"])
    vector = helper.make_tensor_value_info(steps[-2].name, TensorProto.FLOAT, None)
    made = helper.make_graph(nodes, "module", [picture], [vector], tensors)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)


class _Layers(fx.Tracer):
    """Looks into our modules down to single layers, of which padding by the picture's size is one."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, SameConv) or super().is_leaf_module(m, module_qualified_name)


def _operator(module: nn.Module, step: fx.Node) -> Operator:
    if step.op == "call_module":
        return _layer(module.get_submodule(str(step.target)))
    if step.op == "call_method" and step.target == "mean":
        return "ReduceMean", [], {"axes": step.kwargs["dim"], "keepdims": 0}
    if step.target is functional.relu6:
        return _relu6()
    return _FUNCTIONS[step.target], [], {}


def _layer(layer: nn.Module) -> Operator:
    match layer:
        case nn.Conv2d():
            weights = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
            options: dict[str, Any] = {"strides": layer.stride, "group": layer.groups}
            same = isinstance(layer, SameConv)
            return "Conv", weights, {**options, **({"auto_pad": "SAME_UPPER"} if same else {"pads": layer.padding * 2})}
        case nn.BatchNorm2d(running_mean=torch.Tensor() as mean, running_var=torch.Tensor() as variance):
            return "BatchNormalization", [layer.weight, layer.bias, mean, variance], {"epsilon": layer.eps}
        case nn.ReLU6():
            return _relu6()
        case nn.MaxPool2d():
            kernel, stride, pad = layer.kernel_size, layer.stride, layer.padding
            return "MaxPool", [], {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        case nn.Linear():
            return "Gemm", [layer.weight, layer.bias], {"transB": 1}
        case nn.Identity():
            return "Identity", [], {}
    raise TypeError(f"{type(layer).__name__} is not written as ONNX")


def _relu6() -> Operator:
    return "Clip", [torch.tensor(0.0), torch.tensor(6.0)], {}


# expansion, channels, blocks, stride of the first; for EfficientNet also the kernel
_MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
_EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class MobileNetV2(nn.Module):
    """MobileNetV2 (Sandler et al. 2018) up to its pooled features: (n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv_norm_relu6(3, 32, 3, stride=2)]
        channels = 32
        for expansion, out, blocks, stride in _MOBILENET:
            for block in range(blocks):
                layers.append(_Inverted(channels, out, expansion, stride if block == 0 else 1))
                channels = out
        layers.append(_conv_norm_relu6(channels, 1280, 1))
        self.features = nn.Sequential(*layers)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.features(pictures)
        return features.mean(dim=(2, 3))


class _Inverted(nn.Module):
    def __init__(self, channels: int, out: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = channels * expansion
        widen = [_conv_norm_relu6(channels, inner, 1)] if expansion != 1 else []
        narrow = [nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.conv = nn.Sequential(*widen, _conv_norm_relu6(inner, inner, 3, stride=stride, groups=inner), *narrow)
        self.residual = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return x + y if self.residual else y


def _conv_norm_relu6(channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6())


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 (Tan and Le 2019, without squeeze-and-excitation), pooled: (n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, stride=2)
        self._bn0 = _norm(32)
        blocks: list[nn.Module] = []
        channels = 32
        for expansion, out, count, stride, kernel in _EFFICIENTNET:
            for block in range(count):
                blocks.append(_Block(channels, out, expansion, stride if block == 0 else 1, kernel))
                channels = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(channels, 1280, 1)
        self._bn1 = _norm(1280)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = functional.relu6(self._bn0(self._conv_stem(pictures)))
        for block in self._blocks:
            x = block(x)
        return functional.relu6(self._bn1(self._conv_head(x))).mean(dim=(2, 3))


class _Block(nn.Module):
    def __init__(self, channels: int, out: int, expansion: int, stride: int, kernel: int) -> None:
        super().__init__()
        inner = channels * expansion
        self.widens, self.residual = expansion != 1, stride == 1 and channels == out
        if self.widens:
            self._expand_conv, self._bn0 = SameConv(channels, inner, 1), _norm(inner)
        self._depthwise_conv, self._bn1 = SameConv(inner, inner, kernel, stride=stride, groups=inner), _norm(inner)
        self._project_conv, self._bn2 = SameConv(inner, out, 1), _norm(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        narrow: torch.Tensor = self._bn2(self._project_conv(y))
        return x + narrow if self.residual else narrow


class SameConv(nn.Conv2d):
    """TensorFlow's "same" padding: what is odd goes to the right and the bottom."""

    def __init__(self, channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> None:
        super().__init__(channels, out, kernel, stride, groups=groups, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        missing = [max((-(-length // stride) - 1) * stride + kernel - length, 0) for length in (x.shape[3], x.shape[2])]
        sides = [side for total in missing for side in (total // 2, total - total // 2)]
        return super().forward(functional.pad(x, sides))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class AugNet(nn.Module):
    """AugNet (Chen et al. 2021): a ResNet-50 trained to ignore augmentation, (n, 3, h, w) → (n, 768) in [−1, 1]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = _stage(64, 64, 3, 1)
        self.layer2 = _stage(256, 128, 4, 2)
        self.layer3 = _stage(512, 256, 6, 2)
        self.layer4 = _stage(1024, 512, 3, 2)
        self.fc = nn.Linear(2048, 768)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.bn1(self.conv1(pictures))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return torch.tanh(self.fc(x.mean(dim=(2, 3))))


class _Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    rest = [_Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)]
    return nn.Sequential(_Bottleneck(channels, width, stride), *rest)
