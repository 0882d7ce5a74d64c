"""Variation: everything that one try changes about a person's picture, drawn from a stream of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unface.seeds import stream
from unface.synth.palette import Palette

_WEAKER = 0.8  # of the latent's move, once more each time that too little of it was accepted
_SHARE_OF_BACKGROUNDS = 0.5
_SHARE_BLURRED = 0.4


@dataclass(frozen=True, eq=False)
class Variation:
    """In the latent: how far which slots go where. In the picture: place, crop, light, blur and compression."""

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


def draw(seed: int, candidate: int, number: int, palette: Palette, *, weaker: int = 0) -> Variation:
    """The try of that number of a person; ``weaker`` is how often those before went too far."""
    rng = stream(seed, "synth", "variation", candidate, number)
    strength = _WEAKER**weaker
    strangers = len(palette.strangers)
    return Variation(
        late=float(strength * rng.uniform(0.3, 1.0)),
        late_towards=int(rng.integers(strangers)),
        early=float(strength * rng.uniform(0.0, 0.5)),
        early_towards=int(rng.integers(strangers)),
        turned=float(strength * rng.uniform(-1.8, 1.8)),
        along=(strength * rng.normal(0, 0.3, len(palette.directions))).astype(np.float32),
        background=int(rng.integers(len(palette.backgrounds))) if rng.random() < _SHARE_OF_BACKGROUNDS else None,
        zoom=float(np.exp(rng.uniform(-0.05, 0.4))),
        turn=float(rng.normal(0, 0.1)),
        shift=(float(rng.normal(0, 0.03)), float(rng.normal(0, 0.03))),
        mirrored=bool(rng.random() < 0.5),
        exposure=float(rng.normal(0, 0.35)),
        contrast=float(np.exp(rng.normal(0, 0.12))),
        warmth=float(rng.normal(0, 0.06)),
        side_light=(float(rng.normal(0, 0.5)), float(rng.normal(0, 0.25))),
        blur=float(rng.uniform(0.3, 1.4)) if rng.random() < _SHARE_BLURRED else 0.0,
        quality=int(rng.integers(45, 96)),
    )


def moved(latent: torch.Tensor, variations: Sequence[Variation], palette: Palette, slots: int) -> torch.Tensor:
    """(n, slots, dim): a person's latent (dim,) once for each variation, its slots moved as that says."""
    device = latent.device
    towards = {
        name: palette.strangers[[getattr(one, f"{name}_towards") for one in variations]] for name in ("early", "late")
    }
    shares = {
        name: torch.tensor([getattr(one, name) for one in variations], device=device).view(-1, 1, 1)
        for name in ("early", "late")
    }
    along = torch.from_numpy(np.stack([one.along for one in variations])).to(device) @ palette.directions
    along = along + torch.tensor([[one.turned] for one in variations], device=device) * palette.turning
    latents = latent.expand(len(variations), slots, -1).clone()
    for name, part in (("early", slice(palette.early)), ("late", slice(palette.late, None))):
        latents[:, part] = torch.lerp(latents[:, part], towards[name][:, None], shares[name])
    # Principal directions change who someone is as well in the middle slots, where features are made.
    latents[:, : palette.early] += along[:, None]
    return latents
