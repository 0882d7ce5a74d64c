"""``nobody``: pictures of people who do not exist, made here by the generator, so that nobody's face is needed.

Pictures by this generator are not in the package, since its licence is unclear; its weights are fetched on request.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from unface.errors import UnfaceError
from unface.output.write import write_file
from unface.progress import Progress

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
        # On a CPU a small head draws faces of half the size in a fraction of the time.
        prior = self._prior(head=self.device == "cpu")
        import torch
        from PIL import Image

        latents = prior.sample(count, self.seed + 1_000_003, _TRUNCATION)  # enrolled people have the seed itself
        self.progress.start(_ASKED, count)
        self.progress.advance(_ASKED, count - len(missing))
        for start in range(0, len(missing), _BATCH):
            numbers = missing[start : start + _BATCH]
            with torch.inference_mode():
                drawn = (
                    prior.decode(latents[numbers], min(_SIZE, prior.sizes[-1]))
                    .clamp(0, 1)
                    .mul(255)
                    .round()
                    .byte()
                    .cpu()
                )
            for number, pixels in zip(numbers, drawn.permute(0, 2, 3, 1).numpy(), strict=True):
                encoded = BytesIO()
                Image.fromarray(pixels).save(encoded, "JPEG", quality=92)
                paths[number].parent.mkdir(parents=True, exist_ok=True)
                write_file(paths[number], encoded.getvalue(), option="--out")
            self.progress.advance(_ASKED, len(numbers))
        return out

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
