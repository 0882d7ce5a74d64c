"""A small linear world: a prior whose pictures are linear in the latent, an encoder linear in the pixels."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.encode.tiny import DIM, MATRIX, SIZE, card
from unface.encode import tensor_of
from unface.models import Card
from unface.seeds import stream

LATENT, SLOTS = 5, 2


class ToyEncoder:
    """tests.encode.tiny's network without a file: pixels times a matrix."""

    def __init__(self, **changes: object) -> None:
        self.card: Card = card(**changes)
        self.name, self.dim = self.card.name, DIM

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        batch = tensor_of(images, self.card.input).reshape(len(images), -1).astype(np.float32)
        vectors: NDArray[np.float32] = batch @ MATRIX
        return vectors

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
