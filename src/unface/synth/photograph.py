"""A generated face photographed: before another background, cropped, lit and blurred; all on the prior's device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

Tensor = torch.Tensor

# FFHQ, which the priors know, has eyes and mouth in the same place of every picture: this ellipse holds head and neck.
_HEAD = (0.0, -0.04, 0.66, 0.86)  # centre and semi-axes, the picture running from -1 to 1
_SOFTNESS = 0.18
_SHOULDERS = 0.55  # from here down the person's own clothes stay


@dataclass(frozen=True, eq=False)
class Variation:
    """Everything that one try changes about a person's picture.

    In the latent: how far which slots go where. In the picture: place, crop, light, blur and compression.
    """

    late: float  # share of the way to another person's colour and light
    late_towards: int
    early: float  # share of the way to another person's pose and shape
    early_towards: int
    turned: float  # standard deviations along the direction that turns the head
    along: NDArray[np.float32]  # (k,) along all principal directions
    background: int | None
    zoom: float
    turn: float  # radians
    shift: tuple[float, float]  # shares of the picture
    mirrored: bool
    exposure: float  # stops
    contrast: float
    warmth: float  # red up and blue down, in shares
    side_light: tuple[float, float]  # exposure from one edge to the other, in stops
    blur: float  # standard deviation in 1/256 of the picture
    quality: int  # of JPEG


PLAIN = Variation(
    late=0.0,
    late_towards=0,
    early=0.0,
    early_towards=0,
    turned=0.0,
    along=np.zeros(0, dtype=np.float32),
    background=None,
    zoom=1.0,
    turn=0.0,
    shift=(0.0, 0.0),
    mirrored=False,
    exposure=0.0,
    contrast=1.0,
    warmth=0.0,
    side_light=(0.0, 0.0),
    blur=0.0,
    quality=95,
)
"""The picture as the prior gives it."""


def photographed(faces: Tensor, variations: Sequence[Variation], backgrounds: Tensor, size: int) -> Tensor:
    """(n, size, size, 3) 8-bit pictures of (n, 3, s, s) faces from 0 to 1."""
    placed = _before(faces, variations, backgrounds)
    cropped = _cropped(placed, variations, size)
    soft = blurred(_lit(cropped, variations), [one.blur * size / 256 for one in variations])
    return (soft.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _before(faces: Tensor, variations: Sequence[Variation], backgrounds: Tensor) -> Tensor:
    chosen = [number for number, one in enumerate(variations) if one.background is not None]
    if not chosen:
        return faces
    side = faces.shape[-1]
    behind = backgrounds[[variations[number].background or 0 for number in chosen]]
    shown = _head(side, faces.device)
    placed = faces.clone()
    placed[chosen] = shown * faces[chosen] + (1 - shown) * behind
    return placed


def _head(side: int, device: torch.device) -> Tensor:
    """(side, side): 1 on head and clothes, 0 far from them."""
    line = (torch.arange(side, device=device) + 0.5) * (2 / side) - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    left, top, wide, high = _HEAD
    distance = torch.sqrt(((x - left) / wide) ** 2 + ((y - top) / high) ** 2)
    # Below the chin the ellipse widens to the picture's corners.
    distance = distance - (y - _SHOULDERS).clamp(min=0) * 2
    return torch.sigmoid((1 - distance) / _SOFTNESS * 4)


def _cropped(faces: Tensor, variations: Sequence[Variation], size: int) -> Tensor:
    """Zoomed, turned, shifted and mirrored; outside of the picture its edge is reflected."""
    matrices = []
    for one in variations:
        cosine, sine = math.cos(one.turn) / one.zoom, math.sin(one.turn) / one.zoom
        way = -1.0 if one.mirrored else 1.0
        matrices.append([[way * cosine, -sine, 2 * one.shift[0]], [way * sine, cosine, 2 * one.shift[1]]])
    theta = torch.tensor(matrices, device=faces.device, dtype=faces.dtype)
    grid = functional.affine_grid(theta, [len(faces), 3, size, size], align_corners=False)
    # Bilinear sampling skips pixels where the picture shrinks to less than half.
    halves = max(int(math.log2(faces.shape[-1] / size)), 0)
    small = functional.avg_pool2d(faces, 2 ** max(halves - 1, 0))
    return functional.grid_sample(small, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def _lit(pictures: Tensor, variations: Sequence[Variation]) -> Tensor:
    """Exposed, lit from one side and warmed, in linear light as a lamp would do it; then contrasted."""
    device, size = pictures.device, pictures.shape[-1]

    def column(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, device=device, dtype=pictures.dtype).view(-1, 1, 1, 1)

    line = torch.linspace(-0.5, 0.5, size, device=device)
    stops = column([one.exposure for one in variations])
    stops = stops + column([one.side_light[0] for one in variations]) * line
    stops = stops + column([one.side_light[1] for one in variations]) * line.view(-1, 1)
    warmth = column([one.warmth for one in variations]) * torch.tensor([1.0, 0.0, -1.0], device=device).view(1, 3, 1, 1)
    linear = pictures.clamp(0, 1) ** 2.2 * torch.exp2(stops) * (1 + warmth)
    contrast = column([one.contrast for one in variations])
    return (linear.clamp(0, 1) ** (1 / 2.2) - 0.5) * contrast + 0.5


def blurred(pictures: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Gaussian blur of (n, 3, h, w), each by a standard deviation of its own in pixels; 0 leaves a picture as it is."""
    most = max(sigmas)
    if most <= 0:
        return pictures
    reach = min(max(math.ceil(3 * most), 1), pictures.shape[-1] - 1)
    offsets = torch.arange(-reach, reach + 1, device=pictures.device, dtype=pictures.dtype)
    widths = torch.tensor(sigmas, device=pictures.device, dtype=pictures.dtype).clamp(min=1e-3).view(-1, 1)
    kernels = torch.exp(-0.5 * (offsets / widths) ** 2)
    kernels = (kernels / kernels.sum(1, keepdim=True)).repeat_interleave(3, 0)
    count, _, height, width = pictures.shape
    flat = functional.pad(pictures, [reach] * 4, mode="reflect").view(1, count * 3, height + 2 * reach, -1)
    across = functional.conv2d(flat, kernels[:, None, None, :], groups=count * 3)
    down = functional.conv2d(across, kernels[:, None, :, None], groups=count * 3)
    return down.view(count, 3, height, width)
