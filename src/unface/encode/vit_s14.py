"""DINOv2's ViT-S/14 as a plain torch module, filled from the ONNX graph it is published in."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

_DEPTH, _WIDTH, _HEADS, _PATCH, _GRID = 12, 384, 6, 14, 16
_CLS_POSITION, _PATCH_POSITIONS = "onnx::Concat_1957", "onnx::Reshape_1962"


class VisionTransformer(nn.Module):
    """Pictures (n, 3, 224, 224) to the class token of the last layer."""

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
        found: Tensor = self.norm(self.layers(tokens)[:, 0])
        return found


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


def holds_vit_s14(model: "ModelProto") -> bool:
    """Whether the graph is the one whose weights are known here by name."""
    return {_CLS_POSITION, _PATCH_POSITIONS} <= {entry.name for entry in model.graph.initializer}


def vision_transformer(model: "ModelProto") -> VisionTransformer:
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
    module = VisionTransformer()
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


def _factors(graph: "GraphProto") -> dict[str, str]:
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
