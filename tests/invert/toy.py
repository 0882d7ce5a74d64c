"""A small linear world: a prior whose pictures are linear in the latent, an encoder linear in the pixels."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.encode.tiny import DIM, MATRIX, SIZE, card
from unface.encode import space_of, tensor_of
from unface.invert import Train
from unface.invert.measure import Juror, People
from unface.invert.run import Case
from unface.invert.view import View, as_pictures
from unface.judge.template import unit_rows
from unface.models import Card
from unface.result.inversion import TargetPeople
from unface.seeds import stream

LATENT, SLOTS = 5, 2
CALIBRATE = 24  # people


class ToyEncoder:
    """tests.encode.tiny's network without a file: pixels times a matrix."""

    def __init__(self, **changes: object) -> None:
        self.card: Card = card(**changes)
        self.name, self.dim = self.card.name, DIM

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        batch = tensor_of(images, self.card.input).reshape(len(images), -1).astype(np.float32)
        return np.asarray(batch @ MATRIX, np.float32)

    def torch_module(self) -> nn.Module:
        layer = nn.Linear(len(MATRIX), DIM, bias=False)
        layer.weight = nn.Parameter(torch.from_numpy(MATRIX.T.copy()))
        return nn.Sequential(nn.Flatten(), layer)


class ToyPrior:
    """Pictures = mean picture + basis · mean over slots of the latent; nothing is clipped near the mean."""

    def __init__(self, dtype: torch.dtype = torch.float32, size: int = SIZE) -> None:
        draw = stream(0, "toy prior")
        self.name, self.slots, self.latent_dim, self.sizes = "toy", SLOTS, LATENT, (size,)
        self.device = torch.device("cpu")
        self._mean = torch.tensor(draw.uniform(0.3, 0.7, 3 * size * size), dtype=dtype)
        self._basis = torch.tensor(0.05 * draw.standard_normal((LATENT, 3 * size * size)), dtype=dtype)

    def mean_latent(self) -> Tensor:
        return torch.zeros(LATENT, dtype=self._mean.dtype)

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> Tensor:
        drawn = stream(seed, "toy sample").standard_normal((count, LATENT))
        return torch.tensor(truncation * drawn, dtype=self._mean.dtype)

    def decode(self, latents: Tensor, size: int) -> Tensor:
        each = latents.mean(dim=1) if latents.ndim == 3 else latents
        return (self._mean + each @ self._basis).reshape(-1, 3, size, size).clamp(0, 1)


def toy_case(people: int = 12, each: int = 3, *, train: int = 40, noise: float = 0.02) -> Case:
    """Generated people whose latents are known: pictures of one person differ a little, all lie on the prior.

    The judge sees other numbers of the same pixels than the attacked encoder does.
    """
    prior, encoder, judge = ToyPrior(), ToyEncoder(), ToyJudge()
    draw = stream(1, "toy people")
    count = people + CALIBRATE + train
    centres = draw.standard_normal((count, 1, LATENT))
    latents = torch.tensor(centres + noise * draw.standard_normal((count, each, LATENT)), dtype=torch.float32)
    pictures = as_pictures(prior.decode(latents.reshape(-1, LATENT), SIZE))
    owners = np.repeat(np.arange(count), each)
    raw, seen = unit_rows(encoder.encode(list(pictures))).astype(np.float32), judge.embed(list(pictures))
    targets, learned = owners < people, owners >= people + CALIBRATE
    calibrate = ~targets & ~learned
    facts = TargetPeople(
        source="toy",
        generated=True,
        targets=people,
        pictures=people * each,
        train=people,
        calibrate=people,
        sha256="ab",
    )
    return Case(
        "tiny",
        space_of(encoder),
        False,
        People(owners[targets], np.arange(people) * each, raw[targets], {"judge": seen[targets]}),
        (Juror.calibrated("judge", seen[calibrate], owners[calibrate]),),
        facts,
        embed=lambda made: {"judge": judge.embed(list(made))},
        view=View(encoder),
        prior=prior,
        train=Train(raw[learned], owners[learned], {"judge": seen[learned]}),
        template_jury={"judge": Juror.calibrated("judge", seen[calibrate], owners[calibrate], independent=False)},
    )


class ToyJudge:
    """A recogniser of toy faces: other numbers of the pixels, less the mean picture's."""

    name = "judge"

    def __init__(self) -> None:
        self._matrix = stream(7, "toy judge").standard_normal((len(MATRIX), 12))
        self._mean = self._numbers([as_pictures(ToyPrior().decode(torch.zeros(1, LATENT), SIZE))[0]])

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return unit_rows(self._numbers(frames) - self._mean).astype(np.float32)

    def _numbers(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
        return np.stack(frames).reshape(len(frames), -1).astype(np.float64) @ self._matrix
