"""The denoiser of a diffusion prior: a UNet whose weights carry the names of diffusers' UNet2DModel.

What is trained here opens in diffusers, and an unconditional UNet2DModel trained elsewhere opens here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from unface.errors import UnfaceError

_LARGEST = 1024
"""Pixels of a side."""
_Number = TypeVar("_Number", int, float)
_FIXED: Mapping[str, Any] = {
    "in_channels": 3,
    "out_channels": 3,
    "center_input_sample": False,
    "time_embedding_type": "positional",
    "time_embedding_dim": None,
    "mid_block_type": "UNetMidBlock2D",
    "mid_block_scale_factor": 1,
    "downsample_type": "conv",
    "upsample_type": "conv",
    "act_fn": "silu",
    "attn_norm_num_groups": None,
    "resnet_time_scale_shift": "default",
    "add_attention": True,
    "class_embed_type": None,
    "num_class_embeds": None,
}
"""Settings of UNet2DModel that have one value here; a checkpoint with another is refused by name."""


@dataclass(frozen=True)
class UNetConfig:
    """What diffusers' ``config.json`` says of a UNet2DModel, as far as it varies here; the defaults are the recipe's.

    23.1 million weights; a picture of 64² takes 13.0 billion floating-point operations forward, 39 to learn from.
    """

    size: int = 64
    channels: tuple[int, ...] = (64, 128, 256, 320)
    attention: tuple[bool, ...] = (False, False, True, True)
    layers: int = 1
    head_dim: int | None = 64
    groups: int = 32
    eps: float = 1e-5
    downsample_padding: int = 1
    flip_sin_to_cos: bool = True
    freq_shift: int = 0

    def to_diffusers(self) -> dict[str, Any]:
        """The content of ``config.json``."""
        downs = ["AttnDownBlock2D" if attended else "DownBlock2D" for attended in self.attention]
        ups = ["AttnUpBlock2D" if attended else "UpBlock2D" for attended in reversed(self.attention)]
        return {
            "_class_name": "UNet2DModel",
            **_FIXED,
            "sample_size": self.size,
            "block_out_channels": list(self.channels),
            "down_block_types": downs,
            "up_block_types": ups,
            "layers_per_block": self.layers,
            "attention_head_dim": self.head_dim,
            "norm_num_groups": self.groups,
            "norm_eps": self.eps,
            "downsample_padding": self.downsample_padding,
            "flip_sin_to_cos": self.flip_sin_to_cos,
            "freq_shift": self.freq_shift,
            "dropout": 0.0,
        }

    @classmethod
    def from_diffusers(cls, config: Mapping[str, Any], name: str) -> "UNetConfig":
        """Read from ``config.json``; absent settings have diffusers' own defaults."""
        if config.get("_class_name") != "UNet2DModel":
            raise UnfaceError(f"{name}: is a {config.get('_class_name')!r}; expected an unconditional UNet2DModel")
        for key, wanted in _FIXED.items():
            if config.get(key, wanted) != wanted:
                raise UnfaceError(f"{name}: {key} is {config[key]!r}; only {wanted!r} can be read")
        downs = config.get("down_block_types", ["DownBlock2D"] + ["AttnDownBlock2D"] * 3)
        ups = config.get("up_block_types", ["AttnUpBlock2D"] * 3 + ["UpBlock2D"])
        for key, kinds in (("down_block_types", downs), ("up_block_types", ups)):
            if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
                raise UnfaceError(f"{name}: {key} is {kinds!r}; expected a list of names")
        channels = config.get("block_out_channels", [224, 448, 672, 896])
        if not isinstance(channels, list) or not all(isinstance(each, int) for each in channels):
            raise UnfaceError(f"{name}: block_out_channels is {channels!r}; expected a list of whole numbers")
        known = {"DownBlock2D": False, "AttnDownBlock2D": True}
        if set(downs) - set(known) or [kind.replace("Up", "Down") for kind in reversed(ups)] != downs:
            raise UnfaceError(
                f"{name}: blocks are {', '.join(downs)} and {', '.join(ups)}; expected [Attn]DownBlock2D and, in "
                "reverse order, [Attn]UpBlock2D"
            )
        size, step = config.get("sample_size"), 2 ** (len(downs) - 1) if downs else 1
        if not isinstance(size, int) or not 1 <= size <= _LARGEST or size % step:
            raise UnfaceError(f"{name}: sample_size is {size!r}; expected a multiple of {step} up to {_LARGEST}")
        head_dim = config.get("attention_head_dim", 8)
        return cls(
            size=size,
            channels=tuple(channels),
            attention=tuple(known[kind] for kind in downs),
            layers=number(config, "layers_per_block", 2, (1, 64), name),
            head_dim=None if head_dim is None else number(config, "attention_head_dim", 8, (1, 1 << 16), name),
            groups=number(config, "norm_num_groups", 32, (1, 1 << 16), name),
            eps=number(config, "norm_eps", 1e-5, (0.0, 1.0), name),
            downsample_padding=number(config, "downsample_padding", 1, (0, 1), name),
            flip_sin_to_cos=bool(config.get("flip_sin_to_cos", True)),
            freq_shift=number(config, "freq_shift", 0, (0, 1), name),
        )


def number(config: Mapping[str, Any], key: str, default: _Number, ends: tuple[_Number, _Number], name: str) -> _Number:
    """A setting from ``ends[0]`` to ``ends[1]``, whole where those are; 0.0 itself is left out."""
    value = config.get(key, default)
    kind, least = ("whole number", f"from {ends[0]}") if isinstance(default, int) else ("number", f"above {ends[0]:g}")
    is_one = isinstance(value, type(default) | int) and not isinstance(value, bool)
    if not is_one or not ends[0] <= value <= ends[1] or (value == 0 and isinstance(default, float)):
        raise UnfaceError(f"{name}: {key} is {value!r}; expected a {kind} {least} to {ends[1]:g}")
    return type(default)(value)


class UNet(nn.Module):
    """(n, 3, size, size) noisy pictures from −1 to 1 and their (n,) timesteps → what the schedule says it predicts."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        first, embedded = config.channels[0], 4 * config.channels[0]
        self.conv_in = nn.Conv2d(3, first, 3, padding=1)
        self.time_embedding = nn.ModuleDict(
            {"linear_1": nn.Linear(first, embedded), "linear_2": nn.Linear(embedded, embedded)}
        )
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        skips, width = [first], first
        for level, (channels, attended) in enumerate(zip(config.channels, config.attention, strict=True)):
            inputs = [width] + [channels] * (config.layers - 1)
            last = level == len(config.channels) - 1
            block = _Block(config, inputs, channels, attended)
            if not last:
                block.downsamplers = nn.ModuleList([_Halve(channels, config.downsample_padding)])
            self.down_blocks.append(block)
            skips += [channels] * (config.layers + (not last))
            width = channels
        self.mid_block = _Block(config, [width, width], width, attended=True, attentions=1)
        for level in reversed(range(len(config.channels))):
            channels, inputs = config.channels[level], []
            for _ in range(config.layers + 1):
                inputs.append(width + skips.pop())
                width = channels
            block = _Block(config, inputs, channels, config.attention[level])
            if level:
                block.upsamplers = nn.ModuleList([_Double(channels)])
            self.up_blocks.append(block)
        self.conv_norm_out = nn.GroupNorm(config.groups, first, eps=config.eps)
        self.conv_out = nn.Conv2d(first, 3, 3, padding=1)

    def initialise(self, seed: int) -> "UNet":
        """Fresh weights by seed alone: what ends a residual branch starts at zero, as in DDPM."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # Made on the CPU, so that every machine starts with the same weights.
            self.load_state_dict(UNet(self.config).state_dict())
        for name, parameter in self.named_parameters():
            if name.endswith((".conv2.weight", ".conv2.bias", "to_out.0.weight", "to_out.0.bias")):
                nn.init.zeros_(parameter)
        nn.init.zeros_(self.conv_out.weight)
        return self

    def forward(self, x: Tensor, timesteps: Tensor) -> Tensor:
        embedded = self.time_embedding["linear_1"](_sinusoids(timesteps, self.config).to(self.conv_in.weight.dtype))
        embedded = self.time_embedding["linear_2"](functional.silu(embedded))
        skips = [self.conv_in(x)]
        for block in self.down_blocks:
            skips += block(skips[-1], embedded)
        x = self.mid_block(skips[-1], embedded)[-1]
        for block in self.up_blocks:
            x = block(x, embedded, skips)[-1]
        predicted: Tensor = self.conv_out(functional.silu(self.conv_norm_out(x)))
        return predicted


class _Block(nn.Module):
    """Residual layers of one resolution, each followed by attention where there is some, and a change of size."""

    def __init__(
        self, config: UNetConfig, inputs: list[int], channels: int, attended: bool, attentions: int | None = None
    ) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(_Residual(config, given, channels) for given in inputs)
        count = (len(inputs) if attentions is None else attentions) if attended else 0
        self.attentions = nn.ModuleList(_Attention(config, channels) for _ in range(count))
        self.downsamplers, self.upsamplers = nn.ModuleList(), nn.ModuleList()

    def forward(self, x: Tensor, embedded: Tensor, skips: list[Tensor] | None = None) -> list[Tensor]:
        """What each layer gives; ``skips``, taken from the end, join the inputs."""
        made = []
        for number, resnet in enumerate(self.resnets):
            x = resnet(x if skips is None else torch.cat([x, skips.pop()], dim=1), embedded)
            if number < len(self.attentions):
                x = self.attentions[number](x)
            made.append(x)
        return made + [resized(x) for resized in (*self.downsamplers, *self.upsamplers)]


class _Residual(nn.Module):
    def __init__(self, config: UNetConfig, given: int, channels: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(config.groups, given, eps=config.eps)
        self.conv1 = nn.Conv2d(given, channels, 3, padding=1)
        self.time_emb_proj = nn.Linear(4 * config.channels[0], channels)
        self.norm2 = nn.GroupNorm(config.groups, channels, eps=config.eps)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(given, channels, 1) if given != channels else None

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        h = self.conv1(functional.silu(self.norm1(x)))
        h = h + self.time_emb_proj(functional.silu(embedded))[:, :, None, None]
        h = self.conv2(functional.silu(self.norm2(h)))
        added: Tensor = h + (x if self.conv_shortcut is None else self.conv_shortcut(x))
        return added


class _Attention(nn.Module):
    def __init__(self, config: UNetConfig, channels: int) -> None:
        super().__init__()
        if config.head_dim and channels % config.head_dim:
            raise ValueError(f"{channels} channels cannot be split into heads of {config.head_dim}")
        self.heads = channels // (config.head_dim or channels)
        self.group_norm = nn.GroupNorm(config.groups, channels, eps=config.eps)
        self.to_q, self.to_k, self.to_v = (nn.Linear(channels, channels) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.group_norm(x).flatten(2).transpose(1, 2)
        parts = (
            part(tokens).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.to_q, self.to_k, self.to_v)
        )
        attended = functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        added: Tensor = x + self.to_out[0](attended).transpose(1, 2).unflatten(2, x.shape[2:])
        return added


class _Halve(nn.Module):
    def __init__(self, channels: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        # Without padding of its own, diffusers pads below and to the right alone.
        halved: Tensor = self.conv(x if self.conv.padding != (0, 0) else functional.pad(x, (0, 1, 0, 1)))
        return halved


class _Double(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        doubled: Tensor = self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return doubled


def _sinusoids(timesteps: Tensor, config: UNetConfig) -> Tensor:
    half = config.channels[0] // 2
    exponents = torch.arange(half, dtype=torch.float32, device=timesteps.device) / (half - config.freq_shift)
    angles = timesteps[:, None].float() * torch.exp(-math.log(10_000) * exponents)
    parts = (angles.cos(), angles.sin()) if config.flip_sin_to_cos else (angles.sin(), angles.cos())
    return torch.cat(parts, dim=1)
