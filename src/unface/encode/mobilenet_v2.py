"""MobileNetV2 (Sandler et al. 2018) up to its pooled features, with the names of torchvision's state dict."""

import torch
from torch import nn

# expansion, channels, blocks, stride of the first
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class MobileNetV2(nn.Module):
    """(n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv(3, 32, 3, stride=2)]
        channels = 32
        for expansion, out, blocks, stride in _STAGES:
            for block in range(blocks):
                layers.append(_Inverted(channels, out, expansion, stride if block == 0 else 1))
                channels = out
        layers.append(_conv(channels, 1280, 1))
        self.features = nn.Sequential(*layers)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.features(pictures)
        return features.mean(dim=(2, 3))


class _Inverted(nn.Module):
    def __init__(self, channels: int, out: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = channels * expansion
        widen = [_conv(channels, inner, 1)] if expansion != 1 else []
        narrow = [nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.conv = nn.Sequential(*widen, _conv(inner, inner, 3, stride=stride, groups=inner), *narrow)
        self.residual = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return x + y if self.residual else y


def _conv(channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6())
