"""ONNX graphs as torch modules, so that gradients reach the picture.

The operators that face recognisers use are read one by one; DINOv2's ViT-S/14 is a plain module filled by name. Of a
quantised graph the clamp stays, which is its rectifier too, and the rounding goes: it has no gradient.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from unface.encode.onnx import constants, inputs
from unface.errors import UnfaceError
from unface.models import Card

if TYPE_CHECKING:
    import onnx

Tensor = torch.Tensor
Attributes = Mapping[str, Any]

_DEPTH, _WIDTH, _HEADS, _PATCH, _GRID = 12, 384, 6, 14, 16
_CLS_POSITION, _PATCH_POSITIONS = "onnx::Concat_1957", "onnx::Reshape_1962"


def module_of(model: "onnx.ModelProto", card: Card) -> nn.Module:
    """A frozen module of the graph: (n, 3, size, size) float32 → (n, dim), whatever layout and type the graph takes."""
    if _holds_vit_s14(model):
        return _vision_transformer(model).eval().requires_grad_(False)
    fixed = constants(model)
    try:
        nodes = _unquantised(_needed(model), fixed)
    except ValueError as error:
        raise UnfaceError(f"{card.name}: {error}, which is not read into torch") from None
    unknown = sorted({node.op_type for node in nodes} - _OPERATORS.keys())
    if unknown:
        raise UnfaceError(f"{card.name}: its graph has {', '.join(unknown)}, which are not read into torch")
    graph = _Graph(nodes, fixed, inputs(model)[0].name, model.graph.output[0].name)
    graph.class_token, graph.channels_last = card.pool == "cls", card.input.layout == "NHWC"
    return graph.eval().requires_grad_(False)


class _Step:
    """One operator: what it reads, what it makes, and its constants by input position."""

    def __init__(self, node: "onnx.NodeProto", fixed: Mapping[str, NDArray[np.generic]]) -> None:
        from onnx import helper

        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes: Attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        self.run = _OPERATORS[node.op_type]
        # Shapes, axes and bounds are numbers to torch, not tensors.
        self.numbers = {place: fixed[name].tolist() for place, name in enumerate(self.inputs) if name in fixed}


class _Graph(nn.Module):
    class_token, channels_last = False, False

    def __init__(
        self, nodes: "Sequence[onnx.NodeProto]", fixed: Mapping[str, NDArray[np.generic]], given: str, made: str
    ) -> None:
        super().__init__()
        read = {name for node in nodes for name in node.input if name in fixed}
        self._names = {name: f"constant_{number}" for number, name in enumerate(sorted(read))}
        for name, buffer in self._names.items():
            self.register_buffer(buffer, torch.from_numpy(np.array(fixed[name])))
        small = {name: fixed[name] for name in read if fixed[name].size <= 8}
        self._steps = [_Step(node, small) for node in nodes]
        self._input, self._output = given, made
        last = {name: number for number, step in enumerate(self._steps) for name in step.inputs}
        self._spent: list[list[str]] = [[] for _ in nodes]
        for name, number in last.items():
            if name and name != made:
                self._spent[number].append(name)

    def forward(self, pictures: Tensor) -> Tensor:
        made: dict[str, Tensor] = {name: getattr(self, buffer) for name, buffer in self._names.items()}
        made[self._input] = pictures.permute(0, 2, 3, 1) if self.channels_last else pictures
        for step, spent in zip(self._steps, self._spent, strict=True):
            given = [made[name] if name else None for name in step.inputs]
            results = step.run(given, step.attributes, step.numbers)
            made.update(zip(step.outputs, results if isinstance(results, tuple) else (results,), strict=False))
            for name in spent:  # what nothing needs any more would fill the memory
                made.pop(name, None)
        vectors = made[self._output]
        return (vectors[:, 0] if self.class_token else vectors).flatten(1)


def _needed(model: "onnx.ModelProto") -> "list[onnx.NodeProto]":
    """The operators that the output depends on, in order; constants are read apart."""
    wanted, kept = {model.graph.output[0].name}, []
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return [node for node in kept[::-1] if node.op_type != "Constant"]


def _unquantised(nodes: "list[onnx.NodeProto]", fixed: dict[str, NDArray[np.generic]]) -> "list[onnx.NodeProto]":
    """The operators in real numbers; weights that the file keeps in 8 bits or half precision join ``fixed``.

    QuantizeLinear becomes the clamp to the range that its integers can say, and DequantizeLinear of it nothing.
    """
    from onnx import helper

    kept: list[onnx.NodeProto] = []
    quantised: dict[str, list[str]] = {}
    for node in nodes:
        name, made = node.input[0], node.output[0]
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        if node.op_type == "Cast" and name in fixed:
            fixed[made] = fixed[name].astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
        elif node.op_type == "DequantizeLinear" and name in fixed:
            scale, zero = (fixed[other] for other in node.input[1:])
            fixed[made] = _dequantised(fixed[name], scale, zero, attributes.get("axis", 1))
        elif node.op_type == "DequantizeLinear":
            if quantised.get(name) != list(node.input[1:]):
                raise ValueError(f"{name} is quantised by one scale and read by another")
            kept.append(helper.make_node("Identity", [name], [made]))
        elif node.op_type == "QuantizeLinear":
            scale, zero = (fixed[other] for other in node.input[1:])
            if scale.size != 1:
                raise ValueError(f"{name} has a scale for each channel")
            quantised[made] = list(node.input[1:])
            limits = [f"{made}.least", f"{made}.most"]
            ends = np.iinfo(str(zero.dtype))
            for limit, end in zip(limits, (ends.min, ends.max), strict=True):
                fixed[limit] = np.array((end - int(zero)) * float(scale), dtype=np.float32)
            kept.append(helper.make_node("Clip", [name, *limits], [made]))
        else:
            kept.append(node)
    return kept


def _dequantised(
    integers: NDArray[np.generic], scale: NDArray[np.generic], zero: NDArray[np.generic], axis: int
) -> NDArray[np.generic]:
    shape = [1] * integers.ndim
    if scale.size > 1:
        shape[axis] = -1
    centred = integers.astype(np.int32) - zero.astype(np.int32).reshape(shape)
    return centred.astype(np.float32) * scale.astype(np.float32).reshape(shape)


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


def _max_pool(given: Given, attributes: Attributes, _: Numbers) -> Tensor:
    top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
    padded = functional.pad(given[0], [left, right, top, bottom], value=-torch.inf)
    kernel = attributes["kernel_shape"]
    return functional.max_pool2d(padded, kernel, attributes.get("strides", [1] * len(kernel)))


def _expand(given: Given, _: Attributes, numbers: Numbers) -> Tensor:
    x: Tensor = given[0]
    shape = numbers[1] if 1 in numbers else given[1].tolist()
    # Either side may be 1: the batch stays where the file says one picture.
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(shape)))


def _prelu(given: Given, _: Attributes, __: Numbers) -> Tensor:
    x, slope = given
    if slope.numel() in (1, x.shape[1]) and slope.numel() == max(slope.shape[-3:-2], default=1):
        return torch.prelu(x, slope.flatten())  # one kernel, and bfloat16 stays bfloat16
    return torch.where(x >= 0, x, slope * x)


_OPERATORS: dict[str, Operator] = {
    "Add": lambda g, a, n: g[0] + g[1],
    "BatchNormalization": _batch_norm,
    "Cast": lambda g, a, n: g[0],  # pictures are real numbers from the start; constants were cast when they were read
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
    "MaxPool": _max_pool,
    "Mul": lambda g, a, n: g[0] * g[1],
    "PRelu": _prelu,
    "Pow": lambda g, a, n: g[0] ** g[1],
    "ReduceL2": _reduced(torch.linalg.vector_norm),
    "ReduceMean": _reduced(torch.mean),
    "Relu": lambda g, a, n: torch.relu(g[0]),
    "Reshape": _reshape,
    "Shape": lambda g, a, n: torch.tensor(g[0].shape),
    "Slice": _slice,
    "Softmax": lambda g, a, n: g[0].softmax(dim=a.get("axis", -1)),
    "Split": _split,
    "Sqrt": lambda g, a, n: g[0].sqrt(),
    "Squeeze": _squeeze,
    "Sub": lambda g, a, n: g[0] - g[1],
    "Transpose": lambda g, a, n: g[0].permute(a["perm"]),
}


class _VisionTransformer(nn.Module):
    """DINOv2's ViT-S/14: pictures (n, 3, 224, 224) to the class token of the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, _WIDTH, _PATCH, _PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, _WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, 1 + _GRID * _GRID, _WIDTH))
        self.layers = nn.Sequential(*(_Layer() for _ in range(_DEPTH)))
        self.norm = nn.LayerNorm(_WIDTH, eps=1e-6)

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, 384)."""
        patches = self.patches(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(pictures), -1, -1), patches], dim=1) + self.positions
        vectors: Tensor = self.norm(self.layers(tokens)[:, 0])
        return vectors


class _Layer(nn.Module):
    """Attention, then two dense layers; each is scaled and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(_WIDTH, eps=1e-6), nn.LayerNorm(_WIDTH, eps=1e-6)
        self.query, self.key, self.value = (nn.Linear(_WIDTH, _WIDTH) for _ in range(3))
        self.dense = nn.Linear(_WIDTH, _WIDTH)
        self.fc1, self.fc2 = nn.Linear(_WIDTH, 4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH)
        self.scale1, self.scale2 = nn.Parameter(torch.ones(_WIDTH)), nn.Parameter(torch.ones(_WIDTH))

    def forward(self, tokens: Tensor) -> Tensor:
        seen = self.norm1(tokens)
        heads = (part(seen).unflatten(2, (_HEADS, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        attended = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        tokens = tokens + self.scale1 * self.dense(attended)
        dense: Tensor = self.fc2(functional.gelu(self.fc1(self.norm2(tokens))))
        return tokens + self.scale2 * dense


def _holds_vit_s14(model: "onnx.ModelProto") -> bool:
    """Whether the graph is the one whose weights are known here by name."""
    return {_CLS_POSITION, _PATCH_POSITIONS} <= {entry.name for entry in model.graph.initializer}


def _vision_transformer(model: "onnx.ModelProto") -> _VisionTransformer:
    """The module with the graph's weights."""
    from onnx import numpy_helper

    given = {entry.name: torch.from_numpy(numpy_helper.to_array(entry).copy()) for entry in model.graph.initializer}
    state = {
        "patches.weight": given["backbone.embeddings.patch_embeddings.projection.weight"],
        "patches.bias": given["backbone.embeddings.patch_embeddings.projection.bias"],
        "token": given["backbone.embeddings.cls_token"],
        "positions": _positions(given[_CLS_POSITION], given[_PATCH_POSITIONS]),
        "norm.weight": given["backbone.layernorm.weight"],
        "norm.bias": given["backbone.layernorm.bias"],
    }
    factors = _factors(model.graph)
    for layer in range(_DEPTH):
        root, mine = f"backbone.encoder.layer.{layer}.", f"layers.{layer}."
        for norm in ("norm1", "norm2"):
            state |= {f"{mine}{norm}.{part}": given[f"{root}{norm}.{part}"] for part in ("weight", "bias")}
        for number in "12":
            state[f"{mine}scale{number}"] = given[f"{root}layer_scale{number}.lambda1"]
        for ours, theirs in _DENSE.items():
            state[f"{mine}{ours}.weight"] = given[factors[f"/{root}{theirs}".replace(".", "/")]].T
            state[f"{mine}{ours}.bias"] = given[f"{root}{theirs}.bias"]
    module = _VisionTransformer()
    module.load_state_dict(state)
    return module


_DENSE = {
    "query": "attention.attention.query",
    "key": "attention.attention.key",
    "value": "attention.attention.value",
    "dense": "attention.output.dense",
    "fc1": "mlp.fc1",
    "fc2": "mlp.fc2",
}


def _factors(graph: "onnx.GraphProto") -> dict[str, str]:
    """The constant factor of each product, by the product's place: exporting took the names off dense weights."""
    return {
        node.name.removesuffix("/MatMul").replace("layer.", "layer/"): node.input[1]
        for node in graph.node
        if node.op_type == "MatMul"
    }


def _positions(token: Tensor, patches: Tensor) -> Tensor:
    """The table of 37 × 37 places, drawn at 16 × 16 as the graph draws it."""
    side = round(patches.shape[1] ** 0.5)
    table = patches.reshape(1, side, side, _WIDTH).permute(0, 3, 1, 2)
    drawn = functional.interpolate(table, size=(_GRID, _GRID), mode="bicubic", align_corners=False)
    return torch.cat([token, drawn.flatten(2).transpose(1, 2)], dim=1)
