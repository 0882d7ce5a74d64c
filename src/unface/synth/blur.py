"""Gaussian blur of a batch, each picture by a width of its own."""

import math
from collections.abc import Sequence

import torch
from torch.nn import functional


def blurred(pictures: torch.Tensor, sigmas: Sequence[float]) -> torch.Tensor:
    """(n, 3, h, w) with standard deviations in pixels; 0 leaves a picture as it is."""
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
