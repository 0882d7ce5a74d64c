"""People with everything known: two hues, the upper half of a picture by an early slot, the lower by a middle one.

Judges read a hue each, as a point on the circle, so that cosines are of angles and every answer can be worked out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from unface.data import Space
from unface.faces import ARCFACE_112, Face
from unface.judge import PanelJudge, Thresholds
from unface.models import Input
from unface.seeds import stream
from unface.synth import Recipe, Synthesised, synthesise

WHOLE = Input(0, "NHWC", "RGB", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "stretch")
PLANE = np.array([(1, -1, 0), (1, 1, -2)]) / np.sqrt([[2], [6]])  # of colours without brightness
EARLY, MIDDLE = 0, 8


class ToyPrior:
    """A prior that stops after ``plug`` batches, as if it had been pulled."""

    name, slots, latent_dim, sizes, device = "mobilestylegan", 23, 4, (64, 128), torch.device("cpu")

    def __init__(self, plug: int | None = None) -> None:
        self.plug = plug
        self.batches = 0

    def mean_latent(self) -> torch.Tensor:
        return torch.zeros(4)

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> torch.Tensor:
        drawn = stream(seed, "toy").standard_normal((count, 4)).astype(np.float32)
        return torch.from_numpy(drawn) * truncation

    def decode(self, latents: torch.Tensor, size: int) -> torch.Tensor:
        if self.batches == self.plug:
            raise RuntimeError("pulled the plug")
        self.batches += 1
        each = latents if latents.ndim == 3 else latents[:, None].expand(-1, self.slots, -1)
        halves = [self._colour(each[:, EARLY, :2]), self._colour(each[:, MIDDLE, 2:])]
        return torch.cat([half[:, :, None, None].expand(-1, -1, size // 2, size) for half in halves], dim=2)

    def _colour(self, points: torch.Tensor) -> torch.Tensor:
        directions = points / points.norm(dim=1, keepdim=True)
        colour: torch.Tensor = 0.5 + 0.3 * directions @ torch.from_numpy(PLANE).float()
        return colour


@dataclass(frozen=True)
class Hue:
    """A recogniser that reads the hue of the upper or the lower half of a picture's middle."""

    name: str
    upper: bool
    wanted: Input = WHOLE

    @property
    def space(self) -> Space:
        return Space(self.name, None, 2, normalised=True)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        points = np.array([hue(frame, self.upper) for frame in frames], dtype=np.float32)
        return points.reshape(len(frames), 2)


class DarkIsNobody:
    """A detector that finds a face in the middle of every picture that is not dark."""

    name = "toy"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        if image.mean() < 114:
            return []
        scale = image.shape[0] / 112
        return [Face(np.array([20.0, 20.0, 70.0, 80.0]) * scale, ARCFACE_112 * scale, 0.9)]


def hue(picture: NDArray[np.uint8], upper: bool) -> NDArray[np.float64]:
    """(2,) on the circle."""
    size = len(picture)
    rows = slice(int(0.2 * size), int(0.35 * size)) if upper else slice(int(0.65 * size), int(0.8 * size))
    colour = picture[rows, int(0.4 * size) : int(0.6 * size)].reshape(-1, 3).mean(0)
    point: NDArray[np.float64] = PLANE @ colour
    return point / np.linalg.norm(point)


def degrees(angle: float) -> float:
    """The cosine of an angle."""
    return float(np.cos(np.radians(angle)))


def judges(apart: float = 25, same: float = 20) -> tuple[PanelJudge, PanelJudge]:
    """Two, with thresholds in degrees: people are further apart than the one, pictures nearer than the other."""
    thresholds = Thresholds(degrees(apart), degrees(same))
    return PanelJudge(Hue("upper", True), thresholds), PanelJudge(Hue("lower", False), thresholds)


def made(
    out: Path, recipe: Recipe, *, prior: ToyPrior | None = None, threads: int = 2, same: float = 20
) -> Synthesised:
    return synthesise(recipe, prior or ToyPrior(), judges(same=same), DarkIsNobody(), out, threads=threads)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def opened(content: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(BytesIO(content)).convert("RGB"))
