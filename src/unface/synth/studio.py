"""The studio: latents become pictures on the prior's device, threads compress them and find faces, judges look.

Each person is photographed in rounds of tries until enough pictures are accepted.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from io import BytesIO

import numpy as np
import torch
from numpy.typing import NDArray

from unface.data import decode
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.judge import PanelJudge, face_frames, verdicts
from unface.prior import Prior
from unface.seeds import stream
from unface.synth.palette import Palette, decode_size, decoded, draw, moved
from unface.synth.people import Candidates, People
from unface.synth.photograph import PLAIN, Variation, photographed
from unface.synth.recipe import Recipe

_CANDIDATES = 32  # at once
_PER_PICTURE = 1.5  # tries for each picture still missing
_MOST = 48  # tries of one round
_TOO_FEW = 0.25  # accepted of a round: below that the next one moves the person less
_HOPELESS = 20  # such rounds
_IN_FLIGHT = 4  # people: one is judged while others are compressed and one is made


@dataclass(frozen=True, eq=False)
class Shot:
    """A file and the face on it as each judge takes it; no ``frames`` where no face was found."""

    jpeg: bytes
    frames: tuple[NDArray[np.uint8], ...] | None


@dataclass(frozen=True, eq=False)
class Studio:
    """``pool`` is for what the device does not do: while it works on one batch, the device makes the next."""

    recipe: Recipe
    prior: Prior
    palette: Palette
    judges: Sequence[PanelJudge]
    detector: Detector
    pool: Executor

    def shots(self, latents: torch.Tensor, variations: Sequence[Variation]) -> list[Future[Shot]]:
        """Pictures of (n, slots, dim) latents, being compressed and looked at."""
        with torch.inference_mode():
            faces = decoded(self.prior, latents, decode_size(self.prior, self.recipe.size))
            pictures = photographed(faces, variations, self.palette.backgrounds, self.recipe.size).cpu().numpy()
        return [
            self.pool.submit(self.shot, picture, one.quality) for picture, one in zip(pictures, variations, strict=True)
        ]

    def shot(self, picture: NDArray[np.uint8], quality: int) -> Shot:
        """A picture as it will lie in the folder. Judges see the file's pixels, not those it was made from."""
        jpeg = compressed(picture, quality)
        return Shot(jpeg, face_frames(decode(jpeg), self.detector, [judge.recogniser.wanted for judge in self.judges]))

    def vectors(self, shots: Sequence[Shot]) -> tuple[NDArray[np.float32], ...]:
        """(n, dim) by judge, of those pictures alone on which there is a face."""
        faces = [shot.frames for shot in shots if shot.frames is not None]
        return tuple(
            judge.recogniser.embed([frames[place] for frames in faces]) for place, judge in enumerate(self.judges)
        )

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


def compressed(picture: NDArray[np.uint8], quality: int) -> bytes:
    """As JPEG."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=quality)
    return file.getvalue()


@dataclass(eq=False)
class Sitting:
    """One person of ``People`` being photographed; ``kept`` are files, ``rejected`` counts the others by reason."""

    person: int
    candidate: int
    latent: torch.Tensor
    kept: list[bytes] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    weaker: int = 0
    shots: list[Future[Shot]] = field(default_factory=list)


def photograph(studio: Studio, people: People, wanted: Iterable[int]) -> Iterator[Sitting]:
    """Finished sittings of the wanted people, in no certain order.

    A batch is always of one person and depends on that person alone, so a run that was cut off makes the same bytes.
    """
    waiting: deque[Sitting] = deque()
    latents = studio.latents(people.numbers)
    todo = (Sitting(person, people.numbers[person], latents[person]) for person in wanted)
    while True:
        while len(waiting) < _IN_FLIGHT and (new := next(todo, None)) is not None:
            waiting.append(_tried(new, studio))
        if not waiting:
            return
        sitting = waiting.popleft()
        _judged(sitting, studio, people)
        if len(sitting.kept) == studio.recipe.images:
            yield sitting
        else:
            waiting.append(_tried(sitting, studio))


def _tried(sitting: Sitting, studio: Studio) -> Sitting:
    """The next round, under way."""
    missing = studio.recipe.images - len(sitting.kept)
    count = min(math.ceil(_PER_PICTURE * missing) + 1, _MOST)
    variations = [
        draw(studio.recipe.seed, sitting.candidate, sitting.tries + number, studio.palette, weaker=sitting.weaker)
        for number in range(count)
    ]
    latents = moved(sitting.latent, variations, studio.palette, studio.prior.slots)
    sitting.shots = studio.shots(latents, variations)
    return sitting


def _judged(sitting: Sitting, studio: Studio, people: People) -> None:
    """What of the round is kept; tries left over when the last picture is there count for nothing."""
    shots = [shot.result() for shot in sitting.shots]
    has_face = [shot.frames is not None for shot in shots]
    reasons = verdicts(has_face, studio.vectors(shots), sitting.person, people.vectors, studio.judges)
    before = len(sitting.kept)
    for shot, reason in zip(shots, reasons, strict=True):
        sitting.tries += 1
        if reason is None:
            sitting.kept.append(shot.jpeg)
        else:
            sitting.rejected[reason] += 1
        if len(sitting.kept) == studio.recipe.images:
            return
    if len(sitting.kept) - before < _TOO_FEW * len(shots):
        sitting.weaker += 1
    if sitting.weaker == _HOPELESS:
        why = ", ".join(f"{count} {reason}" for reason, count in sitting.rejected.most_common())
        raise UnfaceError(
            f"person {sitting.person}: {len(sitting.kept)} of {studio.recipe.images} pictures accepted in "
            f"{sitting.tries} tries ({why}); choose another --seed or a larger --size"
        )
