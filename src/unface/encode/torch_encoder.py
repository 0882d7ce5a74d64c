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
from unface.encode.torch_trunks import AugNet, EfficientNetLite0, MobileNetV2, SameConv
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
