"""MobileStyleGAN (arXiv:2104.04767) as a torch module: 23 affine maps of w steer separable convolutions in wavelets."""

import math
from collections.abc import Mapping as Named
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.prior.style import Mapping, Synthesis

Constants = Named[str, NDArray[np.float32]]


def read_mapping(path: Path) -> Mapping:
    """The mapping of ``MappingNetwork.bin``."""
    arrays = [torch.from_numpy(array) for array in constants(path).values() if array.size > 1]
    try:
        return Mapping([array for array in arrays if array.ndim == 2], [array for array in arrays if array.ndim == 1])
    except (IndexError, ValueError, RuntimeError) as error:
        raise UnfaceError(f"{path.name}: not MobileStyleGAN's mapping ({reason(error)}); fetch it again") from None


def read_synthesis(path: Path) -> "MobileSynthesis":
    """The synthesis of ``SynthesisNetwork.bin``."""
    try:
        return MobileSynthesis(constants(path))
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise UnfaceError(f"{path.name}: not MobileStyleGAN's synthesis ({type(error).__name__}: {error})") from None


class MobileSynthesis(Synthesis):
    """Slot 0 steers the first convolution, three each block (upsampling, two convolutions), the last the colours."""

    def __init__(self, written: Constants) -> None:
        super().__init__()
        self.blocks = sum(name.endswith(".up.modulation.weight") for name in written)
        self.slots, self.latent_dim = 3 * self.blocks + 2, written["m.conv1.conv.modulation.weight"].shape[1]
        self.sizes = tuple((8 << self.blocks) >> halvings for halvings in (3, 2, 1, 0))
        # These two kinds have no names of their own in the file, but an order.
        pointwise = [array for name, array in written.items() if name.endswith("_copy")]
        noise = [
            array for array in written.values() if array.ndim == 4 and array.shape[:2] == (1, 1) and array.size > 1
        ]
        self.start = _fixed(written["m.input.input"])
        self.first = Convolution(written, "m.conv1", None, pointwise[0], noise[0])
        self.ups = torch.nn.ModuleList(
            Affine(written, f"m.layers.{block}.up.modulation") for block in range(self.blocks)
        )
        self.convolutions = torch.nn.ModuleList(
            Convolution(written, name, written[f"{name}.conv.weight_dw"][:, 0], pointwise[place], noise[place])
            for place in range(1, 2 * self.blocks + 1)
            for name in [f"m.layers.{(place - 1) // 2}.conv{2 - place % 2}"]
        )
        last = f"m.layers.{self.blocks - 1}.to_img"
        colours = written[f"{last}.conv.weight"]
        self.steer_colours = Affine(written, f"{last}.conv.modulation", colours.shape[1] ** -0.5)
        self.colours, self.colours_bias = _fixed(colours), _fixed(written[f"{last}.bias"])

    def forward(self, latents: Tensor, size: int) -> Tensor:
        x = self.features(latents, self.blocks)
        # The low band is twice the mean of 2 × 2 pixels, and the high bands have no part in it.
        bands = slice(None) if size == self.sizes[-1] else slice(3)
        colours = steered(x, self.colours[bands], self.steer_colours(latents[:, -1]))
        colours = colours.view(len(x), -1, *x.shape[2:]) + self.colours_bias[:, bands]
        if size == self.sizes[-1]:
            return from_haar(colours)
        return functional.avg_pool2d(0.5 * colours, x.shape[-1] // size)

    def features(self, latents: Tensor, blocks: int) -> Tensor:
        """(n, channels, 4 · 2^blocks, 4 · 2^blocks) after so many blocks, of (n, slots, latent_dim)."""
        x: Tensor = self.first(self.start.expand(len(latents), -1, -1, -1), latents[:, 0])
        for block in range(blocks):
            x = from_haar(x * self.ups[block](latents[:, 3 * block + 1]))
            x = self.convolutions[2 * block](x, latents[:, 3 * block + 2])
            x = self.convolutions[2 * block + 1](x, latents[:, 3 * block + 3])
        return x


class Affine(torch.nn.Module):
    """What one slot's latents multiply each channel by: (n, latent_dim) → (n, channels, 1, 1)."""

    def __init__(self, written: Constants, name: str, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = _fixed(written[f"{name}.weight"] * np.float32(gain))
        self.bias = _fixed(written[f"{name}.bias"][0] * np.float32(gain))

    def forward(self, latents: Tensor) -> Tensor:
        return functional.linear(latents, self.weight, self.bias)[:, :, None, None]


class Convolution(torch.nn.Module):
    """Steered channels, a 3 × 3 convolution (dense, or depthwise then 1 × 1), fixed noise, bias, leaky rectifier."""

    def __init__(
        self,
        written: Constants,
        name: str,
        depthwise: NDArray[np.float32] | None,
        dense: NDArray[np.float32],
        noise: NDArray[np.float32],
    ) -> None:
        super().__init__()
        self.steer = Affine(written, f"{name}.conv.modulation", (9 * dense.shape[1]) ** -0.5)
        self.depthwise = None if depthwise is None else _fixed(depthwise)
        self.dense = _fixed(dense)  # in the file, the demodulation is folded into it
        self.noise, self.bias = _fixed(noise), _fixed(written[f"{name}.bias"])

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        if self.depthwise is None:
            x = functional.conv2d(x * self.steer(latents), self.dense, self.bias.flatten(), padding=1)
            return functional.leaky_relu(x + self.noise, 0.2)
        # Written with the strides of a plain tensor: in others, cuDNN would turn the pictures around and back.
        x = functional.conv2d(x, self.depthwise[:, 0].unsqueeze(1), padding=1, groups=len(self.depthwise))
        mixed = steered(x, self.dense, self.steer(latents))
        # In place: nobody else holds it, and a picture's worth of memory is kept for the way back once, not thrice.
        mixed += (self.noise + self.bias).flatten(2)
        return functional.leaky_relu_(mixed, 0.2).view(len(x), -1, *x.shape[2:])


def steered(x: Tensor, dense: Tensor, steer: Tensor) -> Tensor:
    """A 1 × 1 convolution of channels that are steered first: (n, out, h · w), one product for each picture.

    Steering commutes with a depthwise convolution before it, so that it need not be a pass over the pictures.
    """
    return torch.bmm(dense[:, :, 0, 0] * steer[:, None, :, 0, 0], x.flatten(2))


def from_haar(x: Tensor) -> Tensor:
    """(n, 4c, h, w) → (n, c, 2h, 2w): c low bands, then for each of them its three high bands."""
    low, high = x[:, : x.shape[1] // 4], x[:, x.shape[1] // 4 :]
    rows, columns, both = high[:, 0::3], high[:, 1::3], high[:, 2::3]
    up, down, upper, lower = low + rows, low - rows, columns + both, columns - both
    corners = torch.stack((up + upper, up - upper, down + lower, down - lower), dim=2)
    return functional.pixel_shuffle(0.5 * corners.flatten(1, 2), 2)


def _fixed(array: NDArray[np.float32]) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.from_numpy(np.ascontiguousarray(array)), requires_grad=False)


def constants(weights: Path) -> dict[str, NDArray[np.float32]]:
    """The float constants of an OpenVINO graph by name, in its order: ``<name>.bin``, described by ``<name>.xml``."""
    content = _read(weights)
    arrays: dict[str, NDArray[np.float32]] = {}
    for layer in _graph(weights.with_suffix(".xml")).iterfind("./layers/layer[@type='Const']"):
        name, data = layer.get("name", ""), layer.find("data")
        if data is None or data.get("element_type") != "f32":
            continue
        try:
            shape = tuple(int(size) for size in data.attrib["shape"].split(",") if size.strip())
            offset, size = int(data.attrib["offset"]), int(data.attrib["size"])
        except (KeyError, ValueError):
            raise UnfaceError(f"{weights.stem}.xml: constant {name!r} has no shape, offset and size") from None
        if min(shape, default=0) < 0 or size != 4 * math.prod(shape) or not 0 <= offset <= len(content) - size:
            raise UnfaceError(
                f"{weights.name}: constant {name!r} is {size} bytes at {offset} for shape {shape}, which do not fit "
                f"in {len(content)} bytes; fetch both files again"
            )
        arrays[name] = np.frombuffer(content, "<f4", size // 4, offset).reshape(shape).astype(np.float32)
    return arrays


def _graph(path: Path) -> ElementTree.Element:
    try:
        text = _read(path).decode("utf-8")
        if "<!DOCTYPE" in text:  # entities, which can be made to grow without end, are declared there and nowhere else
            raise UnfaceError(f"{path.name}: has a document type, which no graph needs; fetch it again")
        return ElementTree.fromstring(text)
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        raise UnfaceError(f"{path.name}: not a readable graph ({type(error).__name__}); fetch it again") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnfaceError(f"{path.name}: cannot be opened ({reason(error)}); fetch it again") from None
