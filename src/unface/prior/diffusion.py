"""A diffusion prior: noise becomes a face in a few DDIM steps (arXiv:2010.02502), with gradients back to the noise."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from unface.errors import UnfaceError, reason
from unface.output.write import write_file
from unface.prior.unet import UNet, UNetConfig, number
from unface.seeds import stream

Gradient = Literal["true", "straight-through"]

CELEBA_FACE = (6.56 / 64, 7.55 / 64, 50.65 / 64)
"""Left, top and side of ArcFace's aligned crop, as shares of the square of CelebA's pictures that the recipe learns.

Measured: the median of YuNet's five points over 300 people, brought to ArcFace's template by scale and shift alone.
"""
TRAINING = "training.json"
_WEIGHTS = "diffusion_pytorch_model.safetensors"
_MOST_BETA = 0.999
# Names that attention had in checkpoints of diffusers before 0.15.
_RENAMED = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}


@dataclass(frozen=True)
class Schedule:
    """How much of a picture is left at each timestep, and what the network predicts: a DDIMScheduler's config.

    The defaults are the recipe's: the cosine schedule leaves nothing of the picture at the last timestep, so that
    plain noise is where sampling starts, and predicting v stays well conditioned there, which predicting noise is not.
    """

    timesteps: int = 1000
    betas: Literal["linear", "scaled_linear", "squaredcos_cap_v2"] = "squaredcos_cap_v2"
    first: float = 1e-4
    last: float = 0.02
    predicts: Literal["epsilon", "v_prediction", "sample"] = "v_prediction"
    spacing: Literal["leading", "trailing"] = "trailing"
    offset: int = 0
    clip: float | None = 1.0
    ends_at_one: bool = True

    def kept(self) -> Tensor:
        """(timesteps,) float64: ᾱ, the share of the picture in the variance."""
        count = self.timesteps
        if self.betas == "linear":
            betas = torch.linspace(self.first, self.last, count, dtype=torch.float64)
        elif self.betas == "scaled_linear":
            betas = torch.linspace(self.first**0.5, self.last**0.5, count, dtype=torch.float64) ** 2
        else:
            cosines = (
                torch.cos((torch.arange(count + 1, dtype=torch.float64) / count + 0.008) / 1.008 * torch.pi / 2) ** 2
            )
            betas = (1 - cosines[1:] / cosines[:-1]).clamp(max=0.999)
        return torch.cumprod(1 - betas, dim=0)

    def visited(self, steps: int) -> list[tuple[int, float, float]]:
        """(timestep, ᾱ there, ᾱ after the step), from noise to picture."""
        if not 1 <= steps <= self.timesteps:
            raise UnfaceError(f"{steps} DDIM steps were asked for; expected 1 to {self.timesteps}")
        kept = self.kept().tolist()
        if self.spacing == "leading":
            places = [number * (self.timesteps // steps) + self.offset for number in reversed(range(steps))]
        else:
            places = [round(self.timesteps - number * self.timesteps / steps) - 1 for number in range(steps)]
        final = 1.0 if self.ends_at_one else kept[0]
        stride = self.timesteps // steps
        return [(place, kept[place], kept[place - stride] if place >= stride else final) for place in places]

    def to_diffusers(self) -> dict[str, Any]:
        """The content of ``scheduler_config.json``."""
        return {
            "_class_name": "DDIMScheduler",
            "num_train_timesteps": self.timesteps,
            "beta_schedule": self.betas,
            "beta_start": self.first,
            "beta_end": self.last,
            "prediction_type": self.predicts,
            "timestep_spacing": self.spacing,
            "steps_offset": self.offset,
            "clip_sample": self.clip is not None,
            "clip_sample_range": 1.0 if self.clip is None else self.clip,
            "set_alpha_to_one": self.ends_at_one,
        }

    @classmethod
    def from_diffusers(cls, config: Mapping[str, Any], name: str) -> "Schedule":
        """Read from ``scheduler_config.json`` of a DDPM or DDIM scheduler; absent settings have diffusers' defaults."""
        if config.get("_class_name") not in ("DDPMScheduler", "DDIMScheduler"):
            raise UnfaceError(f"{name}: is a {config.get('_class_name')!r}; expected a DDPM or DDIM scheduler")
        known: dict[str, tuple[object, tuple[object, ...]]] = {
            "beta_schedule": ("linear", ("linear", "scaled_linear", "squaredcos_cap_v2")),
            "prediction_type": ("epsilon", ("epsilon", "v_prediction", "sample")),
            "timestep_spacing": ("leading", ("leading", "trailing")),
            "trained_betas": (None, (None,)),
            "thresholding": (False, (False,)),
            "rescale_betas_zero_snr": (False, (False,)),
        }
        for key, (default, allowed) in known.items():
            if config.get(key, default) not in allowed:
                raise UnfaceError(
                    f"{name}: {key} is {config[key]!r}; expected {' or '.join(repr(value) for value in allowed)}"
                )
        clip = number(config, "clip_sample_range", 1.0, (0.0, 1e6), name)
        return cls(
            timesteps=number(config, "num_train_timesteps", 1000, (1, 100_000), name),
            betas=config.get("beta_schedule", "linear"),
            first=number(config, "beta_start", 1e-4, (0.0, _MOST_BETA), name),
            last=number(config, "beta_end", 0.02, (0.0, _MOST_BETA), name),
            predicts=config.get("prediction_type", "epsilon"),
            spacing=config.get("timestep_spacing", "leading"),
            offset=number(config, "steps_offset", 0, (0, 1), name),
            clip=clip if config.get("clip_sample", True) else None,
            ends_at_one=bool(config.get("set_alpha_to_one", True)),
        )

    def split(self, predicted: Tensor, x: Tensor, kept: float | Tensor) -> tuple[Tensor, Tensor]:
        """The picture and the noise that ``x`` is made of, as the network sees it."""
        whole, rest = kept**0.5, (1 - kept) ** 0.5
        if self.predicts == "v_prediction":
            return whole * x - rest * predicted, rest * x + whole * predicted
        if self.predicts == "epsilon":
            return (x - rest * predicted) / whole, predicted
        return predicted, (x - whole * predicted) / rest

    def target(self, pictures: Tensor, noise: Tensor, kept: Tensor) -> Tensor:
        """What the network should say of √ᾱ · pictures + √(1−ᾱ) · noise."""
        if self.predicts == "v_prediction":
            return kept.sqrt() * noise - (1 - kept).sqrt() * pictures
        return noise if self.predicts == "epsilon" else pictures


class DiffusionPrior:
    """Faces by DDIM without added noise: the same noise always gives the same picture, and gradients reach it."""

    def __init__(self, name: str, unet: UNet, schedule: Schedule, device: str = "cpu", steps: int = 20) -> None:
        self.name, self.size, self.schedule, self.steps = name, unet.config.size, schedule, steps
        self.sizes: tuple[int, ...] = (self.size,)
        self._unet = unet.eval().requires_grad_(False).to(device)

    @property
    def device(self) -> torch.device:
        """Where noise and pictures live."""
        return self._unet.conv_in.weight.device

    def sample(self, count: int, seed: int, start: int = 0) -> Tensor:
        """(count, 3, size, size) standard normal noise, each by its own number from ``start`` on."""
        shape = (3, self.size, self.size)
        drawn = [
            stream(seed, "prior", "noise", number).standard_normal(shape, dtype=np.float32)
            for number in range(start, start + count)
        ]
        return (
            torch.from_numpy(np.stack(drawn)).to(self.device) if drawn else torch.empty(0, *shape, device=self.device)
        )

    def decode(self, noise: Tensor, size: int | None = None, gradient: Gradient = "true") -> Tensor:
        """(n, 3, size, size) RGB from 0 to 1 of noise of the same shape; ``size`` is the prior's own or None.

        ``gradient`` is how the noise learns from the picture: through all steps (``true``; one step's activations are
        held at a time and computed again on the way back), or as if decoding left it as it is (``straight-through``,
        DiffMI's), for the price of no backward pass through the network.
        """
        if noise.ndim != 4 or noise.shape[1:] != (3, self.size, self.size):
            raise UnfaceError(
                f"{self.name}: noise has shape {tuple(noise.shape)}; expected (n, 3, {self.size}, {self.size})"
            )
        if size not in (None, self.size):
            raise UnfaceError(f"{self.name}: cannot give {size} px; expected {self.size}")
        if gradient == "straight-through":
            with torch.no_grad():
                made = self._denoised(noise, self.steps)
            made = noise + (made - noise).detach()
        else:
            made = self._denoised(noise, self.steps)
        return (made * 0.5 + 0.5).clamp(0, 1)

    def _denoised(self, x: Tensor, steps: int) -> Tensor:
        for place in self.schedule.visited(steps):
            if torch.is_grad_enabled() and x.requires_grad:
                x = checkpoint(self._step, x, *place, use_reentrant=False)
            else:
                x = self._step(x, *place)
        return x

    def _step(self, x: Tensor, timestep: int, kept: float, after: float) -> Tensor:
        """Equation 12 of DDIM with σ = 0."""
        if x.is_cuda:  # one layout at every step, so that a compiled network is compiled once
            x = x.contiguous(memory_format=torch.channels_last)
        # On a GPU the network runs in bfloat16; what it is added to stays exact.
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            predicted = self._unet(x, torch.full((len(x),), timestep, device=x.device))
        picture, noise = self.schedule.split(predicted.to(x.dtype), x, kept)
        if self.schedule.clip is not None:
            picture = picture.clamp(-self.schedule.clip, self.schedule.clip)
        stepped: Tensor = after**0.5 * picture + (1 - after) ** 0.5 * noise
        return stepped


def load_diffusion(folder: str | Path, device: str = "cpu", steps: int = 20) -> DiffusionPrior:
    """A prior of a folder in diffusers' layout: ``unet`` (config.json, .safetensors) and ``scheduler``."""
    folder = Path(folder)
    unet_folder = folder / "unet" if (folder / "unet").is_dir() else folder
    config = UNetConfig.from_diffusers(_json(unet_folder / "config.json"), f"{folder.name}: config.json")
    scheduler = next(
        (
            path
            for path in (folder / "scheduler" / "scheduler_config.json", folder / "scheduler_config.json")
            if path.is_file()
        ),
        None,
    )
    if scheduler is None:
        raise UnfaceError(
            f"{folder.name}: has no scheduler_config.json; the UNet alone does not say how it was trained"
        )
    schedule = Schedule.from_diffusers(_json(scheduler), f"{folder.name}: {scheduler.name}")
    try:
        state = {_renamed(name): value.float() for name, value in load_file(unet_folder / _WEIGHTS).items()}
        with torch.device("meta"):  # shapes are compared before anything of the declared size is allocated
            UNet(config).load_state_dict({name: value.to("meta") for name, value in state.items()})
        unet = UNet(config)
        unet.load_state_dict(state)
    except (OSError, SafetensorError) as error:
        raise UnfaceError(f"{folder.name}: {_WEIGHTS} cannot be read ({reason(error)}); expected safetensors") from None
    except (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError) as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise UnfaceError(f"{folder.name}: weights do not fit config.json ({first})") from None
    return DiffusionPrior(folder.name, unet, schedule, device, steps)


def face_in(folder: str | Path) -> tuple[float, float, float]:
    """Where the aligned face lies in the pictures of a prior: what its training.json says, else as in CelebA's."""
    path = Path(folder) / TRAINING
    face = _json(path).get("face", CELEBA_FACE) if path.exists() else CELEBA_FACE
    try:
        left, top, side = (float(share) for share in face)
    except (TypeError, ValueError):
        left = top = side = -1.0
    if min(left, top) < 0 or side <= 0 or max(left, top) + side > 1:
        raise UnfaceError(f"{path.parent.name}/{TRAINING}: face is {face!r}; expected left, top and side as shares")
    return left, top, side


def save_diffusion(folder: Path, unet: UNetConfig, schedule: Schedule, weights: Mapping[str, Tensor]) -> None:
    """The same layout, in half precision; diffusers' DDIMPipeline opens it too."""
    half = {name: value.detach().to("cpu", torch.float16).contiguous() for name, value in weights.items()}
    texts = {
        "unet/config.json": unet.to_diffusers(),
        "scheduler/scheduler_config.json": schedule.to_diffusers(),
        "model_index.json": {
            "_class_name": "DDIMPipeline",
            "scheduler": ["diffusers", "DDIMScheduler"],
            "unet": ["diffusers", "UNet2DModel"],
        },
    }
    for name, content in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, (json.dumps(content, indent=2) + "\n").encode())
    write_file(folder / "unet" / _WEIGHTS, save(half))


def _renamed(name: str) -> str:
    *parents, module, kind = name.split(".")
    return ".".join([*parents, _RENAMED.get(module, module), kind])


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnfaceError(f"{path.parent.name}/{path.name}: cannot be read ({reason(error)})") from None
    if not isinstance(content, dict):
        raise UnfaceError(f"{path.parent.name}/{path.name}: is not a JSON object; expected diffusers' config")
    return content
