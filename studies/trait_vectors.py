"""Small trait networks of both kinds, and what they make of the sets of ``studies.release_tables``.

    python -m studies.trait_vectors PICTURES SAMPLES KEEP [--device cuda] [--seconds 7] [--crops]

For each of face, eyes, nose and mouth one network learns to tell people apart (the first 2,000 of PICTURES in order of
sha256(name), five pictures each), and one learns from the trait alone what arcface-mbf says of the whole face, on
generated faces. Both are ViTs with patches of 32 pixels, smaller than the paper's and by AdamW, trained for so many
seconds each. Every second picture is reduced to 64² first, the size that the generators draw.
KEEP/trait_vectors.npz holds the vectors; KEEP also holds crops, so that a second call crops nothing again. With --crops
it ends with these.
"""

import argparse
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from studies.release_dose import AFTER, EACH, small
from studies.release_tables import (
    BACKBONE_EACH,
    BACKBONE_PEOPLE,
    FIRST_BACKBONE,
    SCORED,
    SETS,
    Reader,
    drawn,
    enlarged,
    never_trained,
    real,
)
from studies.trait_networks import Recipe, Vit, as_seen, train
from studies.transplants import Picture
from unface import load_encoder
from unface.data import decode
from unface.encode import aligned, framed
from unface.faces import TRAITS, cut_out, load_detector, load_landmarks, main_face
from unface.faces.traits import usable_region
from unface.prior import load_prior
from unface.threads import available_cores

RECIPE = Recipe(width=384, depth=6, heads=6, out=256, epochs=10_000, batch=256, learning_rate=5e-4, adam=True)
STORED = 112  # pixels: a trait of CelebA has no more
FIRST_LINKED, LINKED, LINKED_EACH = 7_600, 600, 2  # the holdout of ``studies.release_pictures PICTURES OUT.npz 600``
KINDS = ("people", "student")  # by cross-entropy over people, or of a recogniser on generated faces
Crops = NDArray[np.uint8]  # (n, traits, STORED, STORED, 3)
Pictures = Iterable[tuple[int, Picture]]


def main() -> None:
    """Crop, train, encode."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("samples", type=Path)
    given.add_argument("keep", type=Path)
    given.add_argument("--people", type=int, default=2_000)
    given.add_argument("--generated", type=int, default=6_000)
    given.add_argument("--linked", type=int, default=LINKED)
    given.add_argument("--device", default="cpu")
    given.add_argument("--seconds", type=float, default=7.0, help="for each of the eight networks")
    given.add_argument("--crop-seconds", type=float, default=math.inf, help="for each set, at most; fewer are cropped")
    given.add_argument("--crops", action="store_true")
    asked = given.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    everyone = sorted(asked.pictures.iterdir(), key=lambda person: hashlib.sha256(person.name.encode()).hexdigest())
    cropper = Cropper(asked.keep, asked.crop_seconds)
    sets = {
        "members": real(everyone, 0),
        "fresh": real(everyone, AFTER),
        "backbones": whole(everyone[FIRST_BACKBONE : FIRST_BACKBONE + BACKBONE_PEOPLE], BACKBONE_EACH),
        "linking": whole(everyone[FIRST_LINKED : FIRST_LINKED + asked.linked], LINKED_EACH),
        "ffhq": never_trained(Reader(asked.keep), everyone, asked.device),
    }
    cropped = {name: cropper.crops(name, pictures) for name, pictures in sets.items()}
    learned = cropper.crops("people", mixed(everyone[: asked.people]))
    taught = cropper.crops("student", generated(asked.generated, asked.device), teacher=SCORED)
    if asked.crops:
        return
    for name in SETS:
        if next(asked.samples.rglob(f"{name}_samples.zip"), None) is not None:
            cropped[name] = cropper.crops(name, drawn(asked.samples, name))
    cropped = {name: one for name, one in cropped.items() if len(one[0])}
    arrays: dict[str, NDArray[np.generic]] = {f"people of {name}": one[1] for name, one in cropped.items()}
    facts: dict[str, object] = {"failed": dict(cropper.failed), "recipe": RECIPE.__dict__, "device": asked.device}
    for at, trait in enumerate(TRAITS):
        for kind, (frames, targets) in zip(KINDS, (learned, taught), strict=True):
            recipe = RECIPE if kind == "people" else replace(RECIPE, out=targets.shape[1])
            if kind == "people":
                targets = np.unique(targets, return_inverse=True)[1].astype(np.int64)
            began = time.monotonic()
            network, losses = train(np.ascontiguousarray(frames[:, at]), targets, recipe, asked.device, asked.seconds)
            facts[f"{kind} {trait}"] = {
                "pictures": len(frames),
                "epochs": len(losses),
                "seconds": round(time.monotonic() - began, 1),
                "losses": [float(f"{loss:.4g}") for loss in losses],
            }
            print(kind, trait, len(frames), "pictures,", len(losses), "epochs, loss", losses[0], losses[-1], flush=True)
            for name, (shown, _) in cropped.items():
                arrays[f"{name} {kind} {trait}"] = vectors(network, shown[:, at], recipe, asked.device)
            arrays["facts"] = np.array(json.dumps(facts))
            save(asked.keep / "trait_vectors.npz", arrays)


class Cropper:
    """Pictures to their four traits, cut out; what fails is counted."""

    def __init__(self, keep: Path, seconds: float) -> None:
        self.keep, self.seconds, self.failed = keep, seconds, Counter[str]()
        self.detector, self.landmarks = load_detector(), load_landmarks(accept_licence=True)

    def crops(
        self, name: str, pictures: Pictures, teacher: str | None = None
    ) -> tuple[Crops, NDArray[np.int64] | NDArray[np.float32]]:
        """Crops, and people (n,) or what the teacher says of the whole face (n, d)."""
        path = self.keep / f"crops_{name}.npz"
        if not path.exists():
            encoder = None if teacher is None else load_encoder(teacher, accept_licence=True, threads=1)
            began = time.monotonic()

            def one(item: tuple[int, Picture]) -> tuple[Crops, NDArray[np.generic]] | str:
                face = main_face(self.detector.detect(item[1]), item[1].shape)
                points = None if face is None else self.landmarks.points(item[1], face)
                if face is None or points is None:
                    return "no face" if face is None else "no landmarks"
                regions = [usable_region(points, trait, item[1].shape) for trait in TRAITS]
                wanted = replace(RECIPE.input, size=STORED)
                frames = [framed(cut_out(item[1], part), wanted) for part in regions if not isinstance(part, str)]
                if len(frames) < len(TRAITS):
                    return next(part for part in regions if isinstance(part, str))
                if encoder is None:
                    return np.stack(frames), np.array(item[0])
                whole = encoder.card.input
                return np.stack(frames), encoder.encode([framed(aligned(item[1], face, whole), whole)])[0]

            made, failed = [], Counter[str]()
            with ThreadPoolExecutor(available_cores()) as pool:
                source = iter(pictures)
                while some := list(islice(source, 200)):
                    for found in pool.map(one, some):
                        if isinstance(found, str):
                            failed[found] += 1
                        else:
                            made.append(found)
                    if time.monotonic() - began > self.seconds:
                        break
            frames = np.array([one for one, _ in made], np.uint8)
            targets = np.array([other for _, other in made])
            reasons = np.array(json.dumps(failed))
            save(path, {"frames": frames, "targets": targets, "failed": reasons})
            print(
                f"{name}: {len(frames)} pictures, {time.monotonic() - began:.0f} s, failed {dict(failed)}", flush=True
            )
        with np.load(path, allow_pickle=False) as stored:
            self.failed.update(json.loads(str(stored["failed"])))
            return stored["frames"], stored["targets"]


def mixed(people: list[Path]) -> Iterator[tuple[int, Picture]]:
    """As CelebA has them, and every second one as the generators saw it."""
    for number, person in enumerate(people):
        for place, path in enumerate(sorted(person.iterdir())[:EACH]):
            yield number, enlarged(small(path)) if (number + place) % 2 else decode(path.read_bytes())


def whole(people: list[Path], each: int) -> Iterator[tuple[int, Picture]]:
    """As CelebA has them."""
    for number, person in enumerate(people):
        for path in sorted(person.iterdir())[:each]:
            yield number, decode(path.read_bytes())


def generated(count: int, device: str) -> Iterator[tuple[int, Picture]]:
    """MobileStyleGAN's faces at 128²; every second one reduced to about what a face of 64² pictures has."""
    prior = load_prior(device=device, accept_licence=True, threads=1, head=True)
    for start in range(0, count, 50):
        with torch.inference_mode():
            made = prior.decode(prior.sample(min(50, count - start), 1_000 + start, 1.0).to(device), 128)
        pictures = (made.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        for number, picture in enumerate(pictures, start):
            yield number, enlarged(np.ascontiguousarray(picture[::2, ::2]) if number % 2 else picture)


def vectors(network: Vit, frames: Crops, recipe: Recipe, device: str) -> NDArray[np.float16]:
    """Of length one."""
    made = []
    with torch.inference_mode():
        for start in range(0, len(frames), 256):
            pictures = torch.from_numpy(np.ascontiguousarray(frames[start : start + 256])).to(device)
            made.append(network(as_seen(pictures, recipe)).float().cpu().numpy())
    found = np.concatenate(made)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float16)


def save(path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)  # type: ignore[arg-type]  # NumPy's types take names of arrays for its own options
    part.replace(path)


if __name__ == "__main__":
    main()
