"""What variations are made of: other people's latents, the directions they spread along, and their backgrounds."""

from dataclasses import dataclass

import torch

from unface.faces import Detector
from unface.prior import Prior
from unface.seeds import stream
from unface.synth.blur import blurred
from unface.synth.decoding import decode_size, decoded
from unface.synth.pose import turning
from unface.synth.recipe import Recipe

_STRANGERS = 2048
_DIRECTIONS = 24
_MOST_BACKGROUNDS = 64
_OUT_OF_FOCUS = 6.0  # standard deviation in 1/256 of the picture


@dataclass(frozen=True, eq=False)
class Palette:
    """``strangers`` (n, dim) in W; ``directions`` (k, dim), each as long as people spread along it, and the one of them
    that turns the head; ``backgrounds`` (n, 3, s, s), out of focus.

    The first slots of W+ hold pose and shape, the middle ones the features, the late ones colour and light: ``early``
    is the end of the first, ``late`` the beginning of the last. In MobileStyleGAN, 5 and 13 of 23.
    """

    strangers: torch.Tensor
    directions: torch.Tensor
    turning: torch.Tensor
    backgrounds: torch.Tensor
    early: int
    late: int


def palette_of(prior: Prior, recipe: Recipe, detector: Detector) -> Palette:
    """Drawn by the recipe's seed, from people who are none of its own."""
    drawn = prior.sample(_STRANGERS, _seed(recipe, "strangers"), recipe.truncation)
    places = min(max(recipe.identities, 4), _MOST_BACKGROUNDS)
    rooms = prior.sample(places, _seed(recipe, "backgrounds"), 1.0)
    directions = principal_directions(drawn, _DIRECTIONS)
    seen = decoded(prior, rooms, decode_size(prior, recipe.size))
    return Palette(
        strangers=drawn,
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


def _seed(recipe: Recipe, name: str) -> int:
    return int(stream(recipe.seed, "synth", name).integers(2**31))
