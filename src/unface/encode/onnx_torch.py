"""ONNX graphs as torch modules: the operators that face recognisers use, so that gradients reach the picture."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from unface.encode.onnx_graph import constants, inputs
from unface.encode.vit_s14 import holds_vit_s14, vision_transformer
from unface.errors import UnfaceError
from unface.models import Card

if TYPE_CHECKING:
    import onnx

Tensor = torch.Tensor
Attributes = Mapping[str, Any]


def module_of(model: "onnx.ModelProto", card: Card) -> torch.nn.Module:
    """A frozen module of the graph: (n, 3, size, size) float32 → (n, dim)."""
    if card.input.dtype != "float32" or card.input.layout != "NCHW":
        raise UnfaceError(
            f"{card.name}: takes {card.input.dtype} {card.input.layout}; gradients need float32 NCHW pictures"
        )
    if holds_vit_s14(model):
        return vision_transformer(model).eval().requires_grad_(False)
    unknown = sorted({node.op_type for node in model.graph.node} - {*_OPERATORS, "Constant"})
    if unknown:
        raise UnfaceError(f"{card.name}: its graph has {', '.join(unknown)}, which are not read into torch")
    return _Graph(model, card.pool == "cls").eval().requires_grad_(False)


class _Step:
    """One operator: what it reads, what it makes, and its constants by input position."""

    def __init__(self, node: "onnx.NodeProto", fixed: Mapping[str, NDArray[np.generic]]) -> None:
        from onnx import helper

        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes: Attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        self.run = _OPERATORS[node.op_type]
        # Shapes, axes and bounds are numbers to torch, not tensors.
        self.numbers = {place: fixed[name].tolist() for place, name in enumerate(self.inputs) if name in fixed}


class _Graph(torch.nn.Module):
    def __init__(self, model: "onnx.ModelProto", class_token: bool) -> None:
        super().__init__()
        fixed = constants(model)
        self.class_token = class_token
        self._names = {name: f"constant_{number}" for number, name in enumerate(fixed)}
        for name, array in fixed.items():
            self.register_buffer(self._names[name], torch.from_numpy(np.array(array)))
        small = {name: array for name, array in fixed.items() if array.size <= 8}
        self._steps = [_Step(node, small) for node in _needed(model) if node.op_type != "Constant"]
        self._input, self._output = inputs(model)[0].name, model.graph.output[0].name

    def forward(self, pictures: Tensor) -> Tensor:
        made: dict[str, Tensor] = {name: getattr(self, buffer) for name, buffer in self._names.items()}
        made[self._input] = pictures
        for step in self._steps:
            given = [made[name] if name else None for name in step.inputs]
            results = step.run(given, step.attributes, step.numbers)
            made.update(zip(step.outputs, results if isinstance(results, tuple) else (results,), strict=False))
        vectors = made[self._output]
        return (vectors[:, 0] if self.class_token else vectors).flatten(1)


def _needed(model: "onnx.ModelProto") -> "list[onnx.NodeProto]":
    """The operators that the output depends on, in order."""
    wanted, kept = {model.graph.output[0].name}, []
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


Given = Sequence[Any]
Numbers = Mapping[int, Any]
Operator = Callable[[Given, Attributes, Numbers], Tensor | tuple[Tensor, ...]]


def _conv(given: Given, attributes: Attributes, _: Numbers) -> Tensor:
    x, weight = given[0], given[1]
    bias = given[2] if len(given) > 2 else None
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise UnfaceError("a convolution pads by itself, which is not read into torch")
    top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
    if (top, left) != (bottom, right):
        x, top, left = functional.pad(x, [left, right, top, bottom]), 0, 0
    return functional.conv2d(
        x,
        weight,
        bias,
        attributes.get("strides", [1, 1]),
        [top, left],
        attributes.get("dilations", [1, 1]),
        attributes.get("group", 1),
    )


def _gemm(given: Given, attributes: Attributes, _: Numbers) -> Tensor:
    a = given[0].T if attributes.get("transA") else given[0]
    b = given[1].T if attributes.get("transB") else given[1]
    product: Tensor = attributes.get("alpha", 1.0) * (a @ b)
    return product + attributes.get("beta", 1.0) * given[2] if len(given) > 2 else product


def _batch_norm(given: Given, attributes: Attributes, _: Numbers) -> Tensor:
    x, scale, bias, mean, variance = given
    return functional.batch_norm(x, mean, variance, scale, bias, eps=attributes.get("epsilon", 1e-5))


def _reshape(given: Given, _: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    return x.reshape([x.shape[place] if size == 0 else size for place, size in enumerate(numbers[1])])


def _slice(given: Given, _: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    starts, ends = numbers[1], numbers[2]
    axes, steps = numbers.get(3, range(len(starts))), numbers.get(4, [1] * len(starts))
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise UnfaceError("a slice runs backwards, which is not read into torch")
        places: list[slice] = [slice(None)] * x.ndim
        places[axis] = slice(start, end, step)
        x = x[tuple(places)]
    return x


def _split(given: Given, attributes: Attributes, numbers: Numbers) -> tuple[Tensor, ...]:
    sizes = attributes.get("split") or numbers[1]
    pieces: tuple[Tensor, ...] = given[0].split(list(sizes), dim=attributes.get("axis", 0))
    return pieces


def _squeeze(given: Given, attributes: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    return x.squeeze(tuple(attributes.get("axes") or numbers[1]))


def _reduced(how: Callable[..., Tensor]) -> Operator:
    def run(given: Given, attributes: Attributes, numbers: Numbers) -> Tensor:
        axes = attributes.get("axes") or numbers[1]
        return how(given[0], dim=list(axes), keepdim=bool(attributes.get("keepdims", 1)))

    return run


def _clip(given: Given, attributes: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    return x.clamp(attributes.get("min", numbers.get(1)), attributes.get("max", numbers.get(2)))


def _expand(given: Given, _: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    # Either side may be 1: the batch stays where the file says one picture.
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(numbers[1])))


def _prelu(given: Given, _: Attributes, __: Numbers) -> Tensor:
    x, slope = given
    return torch.where(x >= 0, x, slope * x)


_OPERATORS: dict[str, Operator] = {
    "Add": lambda g, a, n: g[0] + g[1],
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": lambda g, a, n: torch.cat(list(g), dim=a["axis"]),
    "Conv": _conv,
    "Div": lambda g, a, n: g[0] / g[1],
    "Dropout": lambda g, a, n: g[0],
    "Erf": lambda g, a, n: torch.erf(g[0]),
    "Expand": _expand,
    "Flatten": lambda g, a, n: g[0].flatten(a.get("axis", 1)),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda g, a, n: g[0].mean(dim=(2, 3), keepdim=True),
    "Identity": lambda g, a, n: g[0],
    "MatMul": lambda g, a, n: g[0] @ g[1],
    "Mul": lambda g, a, n: g[0] * g[1],
    "PRelu": _prelu,
    "Pow": lambda g, a, n: g[0] ** g[1],
    "ReduceL2": _reduced(torch.linalg.vector_norm),
    "ReduceMean": _reduced(torch.mean),
    "Relu": lambda g, a, n: torch.relu(g[0]),
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": lambda g, a, n: g[0].softmax(dim=a.get("axis", -1)),
    "Split": _split,
    "Sqrt": lambda g, a, n: g[0].sqrt(),
    "Squeeze": _squeeze,
    "Sub": lambda g, a, n: g[0] - g[1],
    "Transpose": lambda g, a, n: g[0].permute(a["perm"]),
}
