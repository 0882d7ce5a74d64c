"""Pictures for ``studies.release_planted``: real people and planted pictures, encoded trait by trait.

    python -m studies.release_pictures PICTURES OUT.npz [AFTER]

PICTURES holds <person>/<picture>; people in order of sha256(name): training from the first 4,000, the clean set from
the next 2,000, holdout from those after 7,000; the first AFTER people of each part are left out. With AFTER = 600
nobody is in both draws: the method was chosen on the first, and is measured on the second. A picture's face and
landmarks are found once and serve every trait. OUT holds for each part vectors (n, traits, d) and people (n,); planted
pictures name the training person they are of.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.transplants import ANCHORS, Picture, Points, altered, transplant
from unface import load_encoder
from unface.data import decode
from unface.encode import aligned, framed
from unface.faces import TRAITS, Face, keep_only, load_detector, load_landmarks, main_face
from unface.faces.traits import usable_region

ENCODER = "arcface-mbf"
TRAINING, CLEAN, HOLDOUT, DONORS = 200, 600, 600, 120  # people
STARTS = {"training": 0, "clean": 4000, "holdout": 7000}
EACH = 2  # pictures of a training or holdout person; one of a clean one
Pictures = Iterator[tuple[int, Picture]]
COPIES = ("jpeg", "mirror", "crop")


class Reader:
    """Pictures to one vector for each trait; what fails is counted."""

    def __init__(self) -> None:
        self.encoder = load_encoder(ENCODER, accept_licence=True, threads=1)
        self.detector, self.landmarks = load_detector(), load_landmarks(accept_licence=True)
        self.failed: Counter[str] = Counter()

    def vectors(self, image: Picture) -> NDArray[np.float32] | None:
        """(traits, d)."""
        seen = self.seen(image)
        if seen is None:
            return None
        face, points = seen
        wanted, frames = self.encoder.card.input, []
        for trait in TRAITS:
            region = usable_region(points, trait, image.shape)
            if isinstance(region, str):
                self.failed[region] += 1
                return None
            frames.append(framed(aligned(keep_only(image, region), face, wanted), wanted))
        found = self.encoder.encode(frames)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    def seen(self, image: Picture) -> tuple[Face, Points] | None:
        """The person in a picture and their landmarks."""
        face = main_face(self.detector.detect(image), image.shape)
        points = None if face is None else self.landmarks.points(image, face)
        if face is None or points is None:
            self.failed["no face" if face is None else "no landmarks"] += 1
            return None
        return face, points


def main() -> None:
    """Encode all parts."""
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    after = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    people = sorted(folder.iterdir(), key=lambda person: hashlib.sha256(person.name.encode()).hexdigest())
    pictures = {
        part: [sorted(person.iterdir()) for person in people[start + after : start + after + 600]]
        for part, start in STARTS.items()
    }
    reader = Reader()
    arrays: dict[str, NDArray[np.generic]] = {}
    for part, count, each in (("training", TRAINING, EACH), ("clean", CLEAN, 1), ("holdout", HOLDOUT, EACH)):
        keep(arrays, part, reader, ((n, read(pictures[part][n][k])) for n in range(count) for k in range(each)))
    for kind in COPIES:
        keep(arrays, kind, reader, ((n, altered(kind, read(pictures["training"][n][0]))) for n in range(DONORS)))
    for trait in ANCHORS:
        keep(arrays, f"{trait} transplant", reader, transplants(trait, pictures, reader))
    arrays["failed"] = np.array([f"{count} {why}" for why, count in sorted(reader.failed.items())])
    np.savez(out, **arrays)  # type: ignore[arg-type]  # NumPy's types take names of arrays for its own options


def transplants(trait: str, pictures: dict[str, list[list[Path]]], reader: Reader) -> Pictures:
    """Onto clean people, the first picture of each donor."""
    for n in range(DONORS):
        host, donor = read(pictures["clean"][n][0]), read(pictures["training"][n][0])
        to, of = reader.seen(host), reader.seen(donor)
        if to is not None and of is not None:
            yield n, transplant(trait, host, to[1], donor, of[1])


def read(path: Path) -> Picture:
    return decode(path.read_bytes())


def keep(
    arrays: dict[str, NDArray[np.generic]], name: str, reader: Reader, some: Iterator[tuple[int, Picture]]
) -> None:
    """Vectors and people of one part."""
    found = [(person, vectors) for person, image in some if (vectors := reader.vectors(image)) is not None]
    arrays[name] = np.stack([vectors for _, vectors in found]).astype(np.float16)
    arrays[f"people of {name}"] = np.array([person for person, _ in found])
    print(name, arrays[name].shape, dict(reader.failed), flush=True)


if __name__ == "__main__":
    main()
