"""Published networks as plain torch modules, up to their vectors, with the names of their published state dicts."""

import torch
from torch import nn
from torch.nn import functional

# expansion, channels, blocks, stride of the first; for EfficientNet also the kernel
_MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
_EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class MobileNetV2(nn.Module):
    """MobileNetV2 (Sandler et al. 2018) up to its pooled features: (n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv_norm_relu6(3, 32, 3, stride=2)]
        channels = 32
        for expansion, out, blocks, stride in _MOBILENET:
            for block in range(blocks):
                layers.append(_Inverted(channels, out, expansion, stride if block == 0 else 1))
                channels = out
        layers.append(_conv_norm_relu6(channels, 1280, 1))
        self.features = nn.Sequential(*layers)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.features(pictures)
        return features.mean(dim=(2, 3))


class _Inverted(nn.Module):
    def __init__(self, channels: int, out: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = channels * expansion
        widen = [_conv_norm_relu6(channels, inner, 1)] if expansion != 1 else []
        narrow = [nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.conv = nn.Sequential(*widen, _conv_norm_relu6(inner, inner, 3, stride=stride, groups=inner), *narrow)
        self.residual = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return x + y if self.residual else y


def _conv_norm_relu6(channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6())


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 (Tan and Le 2019, without squeeze-and-excitation), pooled: (n, 3, h, w) → (n, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, stride=2)
        self._bn0 = _norm(32)
        blocks: list[nn.Module] = []
        channels = 32
        for expansion, out, count, stride, kernel in _EFFICIENTNET:
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


class AugNet(nn.Module):
    """AugNet (Chen et al. 2021): a ResNet-50 trained to ignore augmentation, (n, 3, h, w) → (n, 768) in [−1, 1]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = _stage(64, 64, 3, 1)
        self.layer2 = _stage(256, 128, 4, 2)
        self.layer3 = _stage(512, 256, 6, 2)
        self.layer4 = _stage(1024, 512, 3, 2)
        self.fc = nn.Linear(2048, 768)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.bn1(self.conv1(pictures))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return torch.tanh(self.fc(x.mean(dim=(2, 3))))


class _Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    rest = [_Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)]
    return nn.Sequential(_Bottleneck(channels, width, stride), *rest)
