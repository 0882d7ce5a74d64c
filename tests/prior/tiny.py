"""Small random generators in the layouts of the real ones, so that most tests need no weights."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unface.prior.style import Mapping as MappingNetwork
from unface.seeds import stream

Constants = dict[str, NDArray[np.float32]]
CHANNELS = (16, 16, 8, 4)  # after the first convolution, and after each of three blocks (the real one has seven)
LATENT = 32


def mobile_constants() -> Constants:
    """What the file of MobileStyleGAN's synthesis holds, by the names and in the order that it has there."""
    draw = stream(0, "tiny", "mobile")
    made: Constants = {}

    def put(name: str, *shape: int, scale: float = 1.0, shift: float = 0.0) -> None:
        made[name] = (shift + scale * draw.standard_normal(shape)).astype(np.float32)

    def affine(name: str, channels: int, fan_in: int) -> None:
        put(f"{name}.modulation.weight", channels, LATENT, scale=0.1 * fan_in**0.5)
        put(f"{name}.modulation.bias", 1, channels, scale=0.1, shift=fan_in**0.5)

    put("m.input.input", 1, CHANNELS[0], 4, 4)
    affine("m.conv1.conv", CHANNELS[0], 9 * CHANNELS[0])
    put("Mul_first_copy", CHANNELS[0], CHANNELS[0], 3, 3, scale=(9 * CHANNELS[0]) ** -0.5)
    put("noise_first", 1, 1, 4, 4, scale=0.1)
    put("m.conv1.bias", 1, CHANNELS[0], 1, 1, scale=0.1)
    for block, (given, width) in enumerate(pairwise(CHANNELS)):
        affine(f"m.layers.{block}.up", given, 1)
        for which, channels in ((1, given // 4), (2, width)):
            name = f"m.layers.{block}.conv{which}"
            affine(f"{name}.conv", channels, 9 * channels)
            put(f"{name}.conv.weight_dw", channels, 1, 1, 3, 3, scale=0.5)
            put(f"Mul_{block}{which}_copy", width, channels, 1, 1, scale=channels**-0.5)
            put(f"noise_{block}{which}", 1, 1, 8 << block, 8 << block, scale=0.1)
            put(f"{name}.bias", 1, width, 1, 1, scale=0.1)
    last = len(CHANNELS) - 2
    affine(f"m.layers.{last}.to_img.conv", CHANNELS[-1], CHANNELS[-1])
    put(f"m.layers.{last}.to_img.conv.weight", 12, CHANNELS[-1], 1, 1, scale=0.05)
    put(f"m.layers.{last}.to_img.bias", 1, 12, 1, 1, scale=0.01)
    return made


def write_ir(folder: Path, stem: str, constants: Mapping[str, NDArray[np.generic]]) -> Path:
    """The two files of an OpenVINO graph that is nothing but constants; the path of the weights."""
    layers, content = [], b""
    for number, (name, array) in enumerate(constants.items()):
        kind = {"float32": "f32", "int64": "i64"}[str(array.dtype)]
        shape = ", ".join(map(str, array.shape))
        place = f'offset="{len(content)}" size="{array.nbytes}"'
        data = f'<data element_type="{kind}" shape="{shape}" {place}/>'
        layers.append(f'<layer id="{number}" name="{name}" type="Const">{data}</layer>')
        content += array.tobytes()
    (folder / f"{stem}.xml").write_text(f'<?xml version="1.0" ?><net><layers>{"".join(layers)}</layers></net>')
    path = folder / f"{stem}.bin"
    path.write_bytes(content)
    return path


def mapping(dim: int = LATENT) -> MappingNetwork:
    """One random layer."""
    weight = stream(0, "tiny", "mapping").standard_normal((dim, dim)).astype(np.float32) * dim**-0.5
    return MappingNetwork([torch.from_numpy(weight)], [torch.full((dim,), 0.3)])


def stylegan2_state(resolution: int = 16, width: int = 6, dim: int = 10) -> dict[str, Tensor]:
    """A state dict as StyleGAN2-ADA writes them; every number random, so that none can be left unused."""
    draw = stream(0, "tiny", "stylegan2")
    state: dict[str, Tensor] = {}

    def put(name: str, *shape: int, scale: float = 1.0, shift: float = 0.0) -> None:
        state[name] = torch.tensor(shift + scale * draw.standard_normal(shape), dtype=torch.float32)

    put("mapping.w_avg", dim, scale=0.3)
    for layer in range(2):
        put(f"mapping.fc{layer}.weight", dim, dim, scale=100)
        put(f"mapping.fc{layer}.bias", dim, scale=30)
    put("synthesis.b4.const", width, 4, 4)
    blur = torch.tensor([1.0, 3.0, 3.0, 1.0])
    for side in (4 << step for step in range(resolution.bit_length() - 2)):
        state[f"synthesis.b{side}.resample_filter"] = torch.outer(blur, blur) / 64
        for which in (0, 1) if side > 4 else (1,):
            name = f"synthesis.b{side}.conv{which}"
            state[f"{name}.resample_filter"] = torch.outer(blur, blur) / 64
            put(f"{name}.weight", width, width, 3, 3)
            put(f"{name}.bias", width, scale=0.2)
            put(f"{name}.noise_const", side, side)
            put(f"{name}.noise_strength", scale=0.3)
            put(f"{name}.affine.weight", width, dim)
            put(f"{name}.affine.bias", width, scale=0.3, shift=1)
        name = f"synthesis.b{side}.torgb"
        put(f"{name}.weight", 3, width, 1, 1, scale=0.2)
        put(f"{name}.bias", 3, scale=0.1)
        put(f"{name}.affine.weight", width, dim)
        put(f"{name}.affine.bias", width, scale=0.3, shift=1)
    return state
