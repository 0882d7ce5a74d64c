"""A small UNet with weights that depend on their names alone, as a checkpoint in diffusers' layout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from unface.prior.unet import UNet, UNetConfig
from unface.seeds import stream

CONFIG = UNetConfig(size=8, channels=(8, 16), attention=(False, True), layers=1, head_dim=8, groups=4)
DIFFUSERS_UNET: dict[str, Any] = {
    "_class_name": "UNet2DModel",
    "sample_size": 8,
    "block_out_channels": [8, 16],
    "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
    "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
    "layers_per_block": 2,
    "norm_num_groups": 4,
    "downsample_padding": 0,
    "flip_sin_to_cos": False,
    "freq_shift": 1,
    "norm_eps": 1e-6,
}
"""Written by hand in the form of google/ddpm-celebahq-256's."""


def shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of UNet2DModel(**DIFFUSERS_UNET).state_dict(), written down without our module."""
    found: dict[str, tuple[int, ...]] = {}

    def layer(name: str, *shape: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = shape, shape[:1]

    def residual(name: str, given: int, channels: int) -> None:
        layer(f"{name}.norm1", given)
        layer(f"{name}.conv1", channels, given, 3, 3)
        layer(f"{name}.time_emb_proj", channels, 32)
        layer(f"{name}.norm2", channels)
        layer(f"{name}.conv2", channels, channels, 3, 3)
        if given != channels:
            layer(f"{name}.conv_shortcut", channels, given, 1, 1)

    def attention(name: str, channels: int) -> None:
        layer(f"{name}.group_norm", channels)
        for part in ("to_q", "to_k", "to_v", "to_out.0"):
            layer(f"{name}.{part}", channels, channels)

    layer("conv_in", 8, 3, 3, 3)
    layer("time_embedding.linear_1", 32, 8)
    layer("time_embedding.linear_2", 32, 32)
    for name, given, channels in (
        ("down_blocks.0.resnets.0", 8, 8),
        ("down_blocks.0.resnets.1", 8, 8),
        ("down_blocks.1.resnets.0", 8, 16),
        ("down_blocks.1.resnets.1", 16, 16),
        ("mid_block.resnets.0", 16, 16),
        ("mid_block.resnets.1", 16, 16),
        ("up_blocks.0.resnets.0", 32, 16),
        ("up_blocks.0.resnets.1", 32, 16),
        ("up_blocks.0.resnets.2", 24, 16),
        ("up_blocks.1.resnets.0", 24, 8),
        ("up_blocks.1.resnets.1", 16, 8),
        ("up_blocks.1.resnets.2", 16, 8),
    ):
        residual(name, given, channels)
    for name in ("down_blocks.1.attentions.0", "down_blocks.1.attentions.1", "mid_block.attentions.0"):
        attention(name, 16)
    for number in range(3):
        attention(f"up_blocks.0.attentions.{number}", 16)
    layer("down_blocks.0.downsamplers.0.conv", 8, 8, 3, 3)
    layer("up_blocks.0.upsamplers.0.conv", 16, 16, 3, 3)
    layer("conv_norm_out", 8)
    layer("conv_out", 3, 8, 3, 3)
    return found


def drawn(name: str, shape: tuple[int, ...]) -> Tensor:
    """Random weights of a sane size, by name."""
    scale = float(np.prod(shape[1:])) ** -0.5 if len(shape) > 1 else 0.3
    numbers = stream(0, "tiny unet", name).standard_normal(shape) * scale
    return torch.from_numpy(numbers + ("norm" in name and name.endswith("weight"))).float()


def diffusers_folder(folder: Path, **scheduler: object) -> Path:
    """A checkpoint as diffusers writes one."""
    for part in ("unet", "scheduler"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "unet" / "config.json").write_text(json.dumps(DIFFUSERS_UNET))
    (folder / "scheduler" / "scheduler_config.json").write_text(
        json.dumps({"_class_name": "DDPMScheduler", **scheduler})
    )
    state = {name: drawn(name, shape) for name, shape in shapes().items()}
    save_file(state, folder / "unet" / "diffusion_pytorch_model.safetensors")
    return folder


def lively_unet(config: UNetConfig = CONFIG) -> UNet:
    """Random weights everywhere: as a training begins, residual branches would pass nothing on."""
    unet = UNet(config)
    unet.load_state_dict({name: drawn(name, tuple(value.shape)) for name, value in unet.state_dict().items()})
    return unet
