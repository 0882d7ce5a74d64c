"""The studio: latents become pictures on the prior's device, threads compress them and find faces, judges look."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unface.prior import Prior
from unface.seeds import stream
from unface.synth.camera import Camera, Shot
from unface.synth.decoding import decode_size, decoded
from unface.synth.judge import Judge
from unface.synth.palette import Palette
from unface.synth.people import Candidates
from unface.synth.photograph import photographed
from unface.synth.recipe import Recipe
from unface.synth.variation import PLAIN, Variation

_CANDIDATES = 32  # at once


@dataclass(frozen=True, eq=False)
class Studio:
    """``pool`` is for what the device does not do: while it works on one batch, the device makes the next."""

    recipe: Recipe
    prior: Prior
    palette: Palette
    judges: Sequence[Judge]
    camera: Camera
    pool: Executor

    def shots(self, latents: torch.Tensor, variations: Sequence[Variation]) -> list[Future[Shot]]:
        """Pictures of (n, slots, dim) latents, being compressed and looked at."""
        with torch.inference_mode():
            faces = decoded(self.prior, latents, decode_size(self.prior, self.recipe.size))
            pictures = photographed(faces, variations, self.palette.backgrounds, self.recipe.size).cpu().numpy()
        return [
            self.pool.submit(self.camera, picture, one.quality)
            for picture, one in zip(pictures, variations, strict=True)
        ]

    def vectors(self, shots: Sequence[Shot]) -> tuple[NDArray[np.float32], ...]:
        """(n, dim) by judge, of those pictures alone on which there is a face."""
        faces = [shot.frames for shot in shots if shot.frames is not None]
        return tuple(judge.embed([frames[place] for frames in faces]) for place, judge in enumerate(self.judges))

    @property
    def chunk(self) -> int:
        """Candidates that are drawn together."""
        return min(_CANDIDATES, self.recipe.identities)

    def candidates(self, number: int) -> Candidates:
        """The people of one chunk, plainly portrayed."""
        latents = self._drawn(number)
        shots = self.shots(latents[:, None].expand(-1, self.prior.slots, -1), [PLAIN] * len(latents))
        seen = [shot.result() for shot in shots]
        return Candidates(np.array([shot.frames is not None for shot in seen]), self.vectors(seen))

    def latents(self, candidates: Sequence[int]) -> torch.Tensor:
        """(n, dim) of W, of candidates by number."""
        chunks = {number: self._drawn(number) for number in {one // self.chunk for one in candidates}}
        return torch.stack([chunks[one // self.chunk][one % self.chunk] for one in candidates])

    def _drawn(self, number: int) -> torch.Tensor:
        seed = int(stream(self.recipe.seed, "synth", "candidates", number).integers(2**31))
        return self.prior.sample(self.chunk, seed, self.recipe.truncation)
