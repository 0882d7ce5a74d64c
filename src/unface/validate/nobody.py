"""``nobody``: pictures of people who do not exist, made here by the generator, so that nobody's face is needed.

Pictures by this generator are not in the package, since its licence is unclear; its weights are fetched on request.
"""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unface.errors import UnfaceError
from unface.output.write import write_file
from unface.progress import Progress
from unface.validate.ports import Picture

if TYPE_CHECKING:
    from unface.prior import Prior

NOBODY = "nobody"
_IMAGES = 4  # of each enrolled person: one is enrolled, three are judged by
_SIZE = 256
_TRUNCATION = 0.8
_BATCH = 8
_JUDGES = ("arcface-mbf", "sface")
_ASKED = "drawing faces to ask with"


@dataclass(frozen=True)
class Drawing:
    """How people are drawn; those to enrol and those to ask with are never the same."""

    seed: int
    device: str
    accept_licence: bool
    threads: int | None
    progress: Progress

    def enrolled(self, people: int, out: Path) -> Path:
        """A folder <person>/<picture>.jpg by ``unface synth``; a finished one is used again."""
        if (out / "synth.json").is_file():
            return out
        prior = self._prior()
        from unface.faces import load_detector
        from unface.judge import load_panel
        from unface.synth import Recipe, synthesise

        panel = load_panel(
            _JUDGES,
            device=self.device,
            accept_licence=self.accept_licence,
            threads=self.threads,
            progress=self.progress,
        )
        detector = load_detector(accept_licence=self.accept_licence)
        recipe = Recipe(people, _IMAGES, _SIZE, self.seed, _TRUNCATION)
        synthesise(recipe, prior, panel, detector, out, threads=self.threads, progress=self.progress)
        return out

    def queries(self, count: int, out: Path) -> Path:
        """One plain picture each of ``count`` other people, not compared with anyone; those that are there are kept."""
        paths = [out / f"q{number:05d}" / "0.jpg" for number in range(count)]
        missing = [number for number, path in enumerate(paths) if not path.is_file()]
        if not missing:
            return out
        generator = self.generator()
        latents = generator.sample(count, self.seed + 1_000_003)  # enrolled people have the seed itself
        self.progress.start(_ASKED, count)
        self.progress.advance(_ASKED, count - len(missing))
        for start in range(0, len(missing), _BATCH):
            numbers = missing[start : start + _BATCH]
            for number, pixels in zip(numbers, generator.drawn(latents[numbers]), strict=True):
                paths[number].parent.mkdir(parents=True, exist_ok=True)
                write_file(paths[number], _encoded(pixels, "JPEG", quality=92), option="--out")
            self.progress.advance(_ASKED, len(numbers))
        return out

    def generator(self) -> "GeneratedFaces":
        """For attacks that draw faces of their own. On a CPU a small head draws them at half the size, and faster."""
        return GeneratedFaces(self._prior(head=self.device == "cpu"))

    def _prior(self, *, head: bool = False) -> "Prior":
        if find_spec("torch") is None:
            raise UnfaceError(
                "nobody: people who do not exist are drawn with torch, not installed; run pip install 'unface[torch]', "
                "or give a folder of <person>/<picture>"
            )
        from unface.prior import load_prior

        return load_prior(
            device=self.device,
            accept_licence=self.accept_licence,
            threads=self.threads,
            progress=self.progress,
            head=head,
        )


class GeneratedFaces:
    """A prior as attacks take it: latents of W+ as arrays, pictures as bytes without loss; see ``Generator``."""

    def __init__(self, prior: "Prior", truncation: float = _TRUNCATION) -> None:
        self.name, self._prior, self._truncation = prior.name, prior, truncation

    def sample(self, count: int, seed: int) -> NDArray[np.float64]:
        """(count, slots, dim): one latent of W in all slots."""
        latents = self._prior.sample(count, seed, self._truncation).double().cpu().numpy()
        return np.repeat(latents[:, None], self._prior.slots, axis=1)

    def pictures(self, latents: NDArray[np.float64]) -> tuple[Picture, ...]:
        """As PNG: what is sent has whole grey levels, unlike the tensors that Map²V's code hands to the network."""
        contents = [
            _encoded(pixels, "PNG", compress_level=1)
            for start in range(0, len(latents), 2 * _BATCH)
            for pixels in self.drawn(latents[start : start + 2 * _BATCH])
        ]
        return tuple(Picture(hashlib.sha256(content).hexdigest()[:16], content) for content in contents)

    def drawn(self, latents: NDArray[np.float64]) -> NDArray[np.uint8]:
        """(n, size, size, 3) RGB."""
        import torch

        prior = self._prior
        given = torch.from_numpy(np.asarray(latents, np.float32)).to(prior.device)
        with torch.inference_mode():
            drawn = prior.decode(given, min(_SIZE, prior.sizes[-1])).clamp(0, 1).mul(255).round().byte()
        pixels: NDArray[np.uint8] = drawn.permute(0, 2, 3, 1).cpu().numpy()
        return pixels


def _encoded(pixels: NDArray[np.uint8], form: str, **options: int) -> bytes:
    encoded = BytesIO()
    Image.fromarray(pixels).save(encoded, form, **options)
    return encoded.getvalue()
