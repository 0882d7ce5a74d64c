"""Our plain torch modules as ONNX graphs: on the CPU, ONNX Runtime takes a fraction of the time that torch does."""

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn
from torch.nn import functional

from unface.encode.efficientnet_lite0 import SameConv

if TYPE_CHECKING:
    import onnx

_OPSET, _IR = 13, 8

_FUNCTIONS: dict[object, str] = {operator.add: "Add", torch.relu: "Relu", torch.tanh: "Tanh"}

# An operator's name, its weights in order, its options.
Operator = tuple[str, list[torch.Tensor], dict[str, Any]]


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
