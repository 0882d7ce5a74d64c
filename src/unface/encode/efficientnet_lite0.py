"""EfficientNet-Lite0 (Tan and Le 2019, without squeeze-and-excitation) up to its pooled features."""

import torch
from torch import nn
from torch.nn import functional

# expansion, channels, blocks, stride of the first, kernel
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class EfficientNetLite0(nn.Module):
    """(n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, stride=2)
        self._bn0 = _norm(32)
        blocks: list[nn.Module] = []
        channels = 32
        for expansion, out, count, stride, kernel in _STAGES:
            for block in range(count):
                blocks.append(_Block(channels, out, expansion, stride if block == 0 else 1, kernel))
                channels = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(channels, 1280, 1)
        self._bn1 = _norm(1280)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = functional.relu6(self._bn0(self._conv_stem(pictures)))
        for block in self._blocks:
            x = block(x)
        return functional.relu6(self._bn1(self._conv_head(x))).mean(dim=(2, 3))


class _Block(nn.Module):
    def __init__(self, channels: int, out: int, expansion: int, stride: int, kernel: int) -> None:
        super().__init__()
        inner = channels * expansion
        self.widens, self.residual = expansion != 1, stride == 1 and channels == out
        if self.widens:
            self._expand_conv, self._bn0 = SameConv(channels, inner, 1), _norm(inner)
        self._depthwise_conv, self._bn1 = SameConv(inner, inner, kernel, stride=stride, groups=inner), _norm(inner)
        self._project_conv, self._bn2 = SameConv(inner, out, 1), _norm(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        narrow: torch.Tensor = self._bn2(self._project_conv(y))
        return x + narrow if self.residual else narrow


class SameConv(nn.Conv2d):
    """TensorFlow's "same" padding: what is odd goes to the right and the bottom."""

    def __init__(self, channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> None:
        super().__init__(channels, out, kernel, stride, groups=groups, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        missing = [max((-(-length // stride) - 1) * stride + kernel - length, 0) for length in (x.shape[3], x.shape[2])]
        sides = [side for total in missing for side in (total // 2, total - total // 2)]
        return super().forward(functional.pad(x, sides))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)
