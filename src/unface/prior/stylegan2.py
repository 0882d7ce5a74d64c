"""StyleGAN2 (arXiv:1912.04958) from state dicts in the layout of StyleGAN2-ADA's checkpoints, skip architecture."""

import math
import re
from collections.abc import Mapping as Named
from pathlib import Path

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.prior.style import Mapping, StylePrior, Synthesis

State = Named[str, Tensor]
_SLOWED = 0.01  # the layout keeps the mapping's weights this much too large, so that they learn slowly


def read_stylegan2(path: Path, device: str = "cpu") -> StylePrior:
    """A prior of a ``.safetensors`` file, or of a state dict that torch has written."""
    state = _opened(path)
    if "mapping.embed.weight" in state:
        raise UnfaceError(f"{path.name}: generates by class; expected a generator that takes nothing but a latent")
    try:
        layers = range(max(1, len(_numbers(state, r"mapping\.fc(\d+)\.weight"))))
        weights = [state[f"mapping.fc{layer}.weight"] for layer in layers]
        biases = [state[f"mapping.fc{layer}.bias"] * _SLOWED for layer in layers]
        mapping = Mapping([weight * (_SLOWED * weight.shape[1] ** -0.5) for weight in weights], biases)
        synthesis, mean = StyleGAN2Synthesis(state), state["mapping.w_avg"]
        _require_fitting(mapping, synthesis, mean)
        return StylePrior(path.name, mapping, synthesis, mean, device)
    except KeyError as absent:
        raise UnfaceError(f"{path.name}: has no {absent}; expected the layout of StyleGAN2-ADA") from None
    except (IndexError, ValueError, RuntimeError) as error:
        raise UnfaceError(
            f"{path.name}: has weights of another shape ({reason(error)}); expected the layout of StyleGAN2-ADA"
        ) from None


def _require_fitting(mapping: Mapping, synthesis: "StyleGAN2Synthesis", mean: Tensor) -> None:
    """One picture in shapes alone, nothing computed: weights that do not fit each other fail here, not at the first."""
    latent = _shaped(mapping, torch.empty(1, mapping.dim, device="meta"))
    if mean.shape != latent.shape[1:]:
        raise ValueError(f"mean of {tuple(mean.shape)} for latents of {tuple(latent.shape[1:])}")
    largest = synthesis.sizes[-1]
    picture = _shaped(synthesis, latent[:, None].expand(-1, synthesis.slots, -1), largest)
    if picture.shape != (1, 3, largest, largest):
        raise ValueError(f"pictures of {tuple(picture.shape[1:])}")


def _shaped(module: torch.nn.Module, *given: Tensor | int) -> Tensor:
    weights = {name: weight.to("meta") for name, weight in module.named_parameters()}
    shaped: Tensor = functional_call(module, weights, given)
    return shaped


class StyleGAN2Synthesis(Synthesis):
    """A slot for each convolution, and one for the last colours; other colours share the next convolution's."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.start = _fixed(state["synthesis.b4.const"])
        largest = max(_numbers(state, r"synthesis\.b(\d+)\.conv1\.weight"), default=4)
        sides = [4 << step for step in range(largest.bit_length() - 2)]
        convolutions = [f"b{side}.conv{which}" for side in sides for which in (0, 1) if (side, which) != (4, 0)]
        self.convolutions = torch.nn.ModuleList(Convolution(state, f"synthesis.{name}") for name in convolutions)
        self.colours = torch.nn.ModuleList(Colours(state, f"synthesis.b{side}.torgb") for side in sides)
        # Four times: three of four pixels that it averages are zeros put in between.
        self.blur = _fixed(4 * state[f"synthesis.b{largest}.resample_filter"])
        self.slots, self.latent_dim = len(convolutions) + 1, state["synthesis.b4.torgb.affine.weight"].shape[1]
        self.sizes = tuple(largest >> halvings for halvings in (3, 2, 1, 0) if largest >> halvings)

    def forward(self, latents: Tensor, size: int) -> Tensor:
        x = self.convolutions[0](self.start.expand(len(latents), -1, -1, -1), latents[:, 0])
        picture: Tensor = self.colours[0](x, latents[:, 1])
        for step, colours in enumerate(self.colours[1:]):
            first = 2 * step + 1
            x = self.convolutions[first](x, latents[:, first], self.blur)
            x = self.convolutions[first + 1](x, latents[:, first + 1])
            picture = self._doubled(picture) + colours(x, latents[:, first + 2])
        return functional.avg_pool2d(picture, picture.shape[-1] // size)

    def _doubled(self, picture: Tensor) -> Tensor:
        return functional.conv_transpose2d(picture, _each(self.blur, 3), stride=2, padding=1, groups=3)


class Affine(torch.nn.Module):
    """(n, latent_dim) → (n, channels), what each channel is multiplied by."""

    def __init__(self, state: State, name: str, gain: float = 1.0) -> None:
        super().__init__()
        weight = state[f"{name}.weight"]
        self.weight = _fixed(weight * (gain * weight.shape[1] ** -0.5))
        self.bias = _fixed(state[f"{name}.bias"] * gain)

    def forward(self, latents: Tensor) -> Tensor:
        return functional.linear(latents, self.weight, self.bias)


class Convolution(torch.nn.Module):
    """Steered, demodulated 3 × 3 convolution, fixed noise, bias, leaky rectifier; given a blur, it doubles the size."""

    def __init__(self, state: State, name: str) -> None:
        super().__init__()
        self.steer = Affine(state, f"{name}.affine")
        self.weight, self.bias = _fixed(state[f"{name}.weight"]), _fixed(state[f"{name}.bias"][:, None, None])
        self.noise = _fixed(state[f"{name}.noise_const"] * state[f"{name}.noise_strength"])

    def forward(self, x: Tensor, latents: Tensor, blur: Tensor | None = None) -> Tensor:
        steered = self.steer(latents)
        x = x * steered[:, :, None, None]
        if blur is None:
            x = functional.conv2d(x, self.weight, padding=1)
        else:
            x = functional.conv_transpose2d(x, self.weight.transpose(0, 1), stride=2)
            x = functional.conv2d(x, _each(blur, x.shape[1]), padding=1, groups=x.shape[1])
        # Unit norm of each output's steered kernel, taken after the convolution: eq. 3 of the paper.
        norm = (steered.square() @ self.weight.square().sum(dim=(2, 3)).T + 1e-8).rsqrt()
        x = x * norm[:, :, None, None] + self.noise + self.bias
        return functional.leaky_relu(x, 0.2) * 2**0.5


class Colours(torch.nn.Module):
    """Steered 1 × 1 convolution to RGB, without demodulation."""

    def __init__(self, state: State, name: str) -> None:
        super().__init__()
        self.weight, self.bias = _fixed(state[f"{name}.weight"]), _fixed(state[f"{name}.bias"])
        if self.weight.ndim != 4:  # which shapes alone do not show: the meta device takes others
            raise ValueError(f"{name} of {tuple(self.weight.shape)}")
        self.steer = Affine(state, f"{name}.affine", gain=math.prod(self.weight.shape[1:]) ** -0.5)

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        return functional.conv2d(x * self.steer(latents)[:, :, None, None], self.weight, self.bias)


def _opened(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            # weights_only: a pickle that would run code is refused.
            state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: value.float() for name, value in state.items()}
    except Exception as error:  # torch, zipfile and pickle raise nearly anything
        raise UnfaceError(
            f"{path.name}: not a readable state dict ({type(error).__name__}); expected .safetensors, or what "
            "torch.save writes of a state dict"
        ) from None


def _numbers(state: State, pattern: str) -> list[int]:
    """What stands for the group in the names that the pattern fits."""
    return [int(match[1]) for match in (re.fullmatch(pattern, name) for name in state) if match]


def _each(kernel: Tensor, channels: int) -> Tensor:
    return kernel.expand(channels, 1, -1, -1)


def _fixed(values: Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(values.contiguous(), requires_grad=False)
