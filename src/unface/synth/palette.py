"""What variations are made of: other people's latents, the directions they spread along, and their backgrounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unface.faces import Detector, main_face
from unface.prior import Prior
from unface.seeds import stream
from unface.synth.photograph import Variation, blurred
from unface.synth.recipe import Recipe

_OTHERS = 2048
_DIRECTIONS = 24
_MOST_BACKGROUNDS = 64
_OUT_OF_FOCUS = 6.0  # standard deviation in 1/256 of the picture

_TRIED = 8  # leading directions: turning is among the largest differences between faces that are aligned
_FAR = 2.0  # standard deviations
_SMALLEST = 128  # pixels in which landmarks are found well

_WEAKER = 0.8  # of the latent's move, once more each time that too little of it was accepted
_SHARE_OF_BACKGROUNDS = 0.5
_SHARE_BLURRED = 0.4

_AT_ONCE = {"cpu": 4, "cuda": 32}  # pictures decoded


@dataclass(frozen=True, eq=False)
class Palette:
    """``others`` (n, dim) are other people's latents in W; ``directions`` (k, dim) are each as long as people spread
    along it, and ``turning`` is the one of them that turns the head; ``backgrounds`` (n, 3, s, s) are out of focus.

    The first slots of W+ hold pose and shape, the middle ones the features, the late ones colour and light: ``early``
    is the end of the first, ``late`` the beginning of the last. In MobileStyleGAN, 5 and 13 of 23.
    """

    others: torch.Tensor
    directions: torch.Tensor
    turning: torch.Tensor
    backgrounds: torch.Tensor
    early: int
    late: int


def palette_of(prior: Prior, recipe: Recipe, detector: Detector) -> Palette:
    """Drawn by the recipe's seed, from people who are none of its own."""
    drawn = prior.sample(_OTHERS, _seed(recipe, "strangers"), recipe.truncation)
    places = min(max(recipe.identities, 4), _MOST_BACKGROUNDS)
    rooms = prior.sample(places, _seed(recipe, "backgrounds"), 1.0)
    directions = principal_directions(drawn, _DIRECTIONS)
    seen = decoded(prior, rooms, decode_size(prior, recipe.size))
    return Palette(
        others=drawn,
        directions=directions,
        turning=turning(prior, directions, detector),
        backgrounds=blurred(seen, [_OUT_OF_FOCUS * seen.shape[-1] / 256] * places),
        early=round(prior.slots * 5 / 23),
        late=round(prior.slots * 13 / 23),
    )


def principal_directions(latents: torch.Tensor, count: int) -> torch.Tensor:
    """(count, dim) principal components of (n, dim) latents, as long as their standard deviation (GANSpace, 2020).

    No label says what they do; the leading ones turn the head, open the mouth, age and light a face.
    """
    centred = (latents - latents.mean(0)).double().cpu()
    covariance = centred.T @ centred / max(len(centred) - 1, 1)
    values, vectors = torch.linalg.eigh(covariance)
    count = min(count, len(values))
    leading = (vectors * values.clamp(min=0).sqrt()).flip(1)[:, :count].T
    # An eigenvector's sign is the library's whim: the largest number is made positive.
    largest = leading.gather(1, leading.abs().argmax(1, keepdim=True))
    directions: torch.Tensor = (leading * largest.sign()).to(latents)
    return directions


def turning(prior: Prior, directions: torch.Tensor, detector: Detector) -> torch.Tensor:
    """(dim,): of the leading directions the one along which the mean face's nose leaves the middle of its eyes most."""
    size = next((given for given in prior.sizes if given >= _SMALLEST), prior.sizes[-1])
    faces = decoded(prior, prior.mean_latent() + _FAR * directions[:_TRIED], size)
    pictures = (faces * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return directions[int(np.argmax([abs(_turned(picture, detector)) for picture in pictures]))]


def _turned(picture: NDArray[np.uint8], detector: Detector) -> float:
    """How far the nose is from between the eyes, in distances between them; 0 where there is no face."""
    face = main_face(detector.detect(picture), picture.shape)
    if face is None:
        return 0.0
    left, right, nose = face.landmarks[:3]
    along = right - left
    return float((nose - (left + right) / 2) @ along / max(float(along @ along), 1e-9))


def draw(seed: int, candidate: int, number: int, palette: Palette, *, weaker: int = 0) -> Variation:
    """The try of that number of a person; ``weaker`` is how often those before went too far."""
    rng = stream(seed, "synth", "variation", candidate, number)
    strength = _WEAKER**weaker
    others = len(palette.others)
    return Variation(
        late=float(strength * rng.uniform(0.3, 1.0)),
        late_towards=int(rng.integers(others)),
        early=float(strength * rng.uniform(0.0, 0.5)),
        early_towards=int(rng.integers(others)),
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
        name: palette.others[[getattr(one, f"{name}_towards") for one in variations]] for name in ("early", "late")
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


def decode_size(prior: Prior, size: int) -> int:
    """Pixels to decode at, so that a crop still has some to spare."""
    return next((given for given in prior.sizes if given > size), prior.sizes[-1])


def decoded(prior: Prior, latents: torch.Tensor, size: int) -> torch.Tensor:
    """(n, 3, size, size) pictures, a few at a time."""
    at_once = _AT_ONCE.get(latents.device.type, 4)
    with torch.inference_mode():
        return torch.cat([prior.decode(some, size) for some in torch.split(latents, at_once)])


def _seed(recipe: Recipe, name: str) -> int:
    return int(stream(recipe.seed, "synth", name).integers(2**31))
