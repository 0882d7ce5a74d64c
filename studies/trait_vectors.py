"""Trait networks of three kinds, and what they make of the sets of ``studies.release_tables``.

    python -m studies.trait_vectors PICTURES SAMPLES KEEP [--kinds people student paper] [--device cuda] [--seconds 45]

For each of face, eyes, nose and mouth: "people" learns to tell people apart (the first 3,000 of PICTURES in order of
sha256(name), five pictures each), "paper" does so with the paper's ViT-B/32, and "student" learns from the trait alone
what arcface-mbf says of the whole face, on generated faces. All are by AdamW, for so many seconds each. Every second
picture is reduced to 64² first, the size that the generators draw. The last picture of each person but the members is
not learned: it shows how well a network names the people it knows.
KEEP/trait_vectors_KIND.npz holds vectors and facts. KEEP also holds crops and networks: a second call makes neither
again, and encodes what SAMPLES has got since. With --crops it ends with the crops.
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
from safetensors.torch import load_file, save_file

from studies.release_dose import AFTER, EACH, small
from studies.release_planted import Some
from studies.release_tables import (
    BACKBONE_EACH,
    BACKBONE_PEOPLE,
    FIRST_BACKBONE,
    PEOPLE,
    SCORED,
    SETS,
    Reader,
    drawn,
    enlarged,
    linking_of,
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

SMALL = Recipe(width=384, depth=6, heads=6, out=128, epochs=10_000, batch=256, learning_rate=5e-4, adam=True)
RECIPES = {
    "people": SMALL,
    "student": replace(SMALL, out=512),
    "paper": replace(SMALL, width=768, depth=12, heads=12, learning_rate=2e-4),
}
STORED = 112  # pixels: a trait of CelebA has no more
FIRST_LINKED, LINKED, LINKED_EACH = 7_600, 600, 2  # the holdout of ``studies.release_pictures PICTURES OUT.npz 600``
LINKING = "linking"  # only how well they are linked is kept of them
Crops = NDArray[np.uint8]  # (n, traits, STORED, STORED, 3)
Targets = NDArray[np.int64] | NDArray[np.float32]  # people (n,), or what a teacher says of the whole face (n, d)
Pictures = Iterable[tuple[int, Picture]]


def main() -> None:
    """Crop, train, encode."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("samples", type=Path)
    given.add_argument("keep", type=Path)
    given.add_argument("--kinds", nargs="+", choices=RECIPES, default=[*RECIPES])
    given.add_argument("--people", type=int, default=3_000)
    given.add_argument("--generated", type=int, default=8_000)
    given.add_argument("--linked", type=int, default=LINKED)
    given.add_argument("--device", default="cpu")
    given.add_argument("--seconds", type=float, default=45.0, help="for each network")
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
        LINKING: whole(everyone[FIRST_LINKED : FIRST_LINKED + asked.linked], LINKED_EACH),
        "ffhq": never_trained(Reader(asked.keep), everyone, asked.device),
    }
    cropped = {name: cropper.crops(name, pictures) for name, pictures in sets.items()}
    learned: dict[str, tuple[Crops, Targets]] = {}
    if {"people", "paper"} & {*asked.kinds}:
        learned["people"] = learned["paper"] = cropper.crops("people", mixed(everyone[: asked.people]))
    if "student" in asked.kinds:
        learned["student"] = cropper.crops("student", generated(asked.generated, asked.device), teacher=SCORED)
    if asked.crops:
        return
    for name in SETS:
        if next(asked.samples.rglob(f"{name}_samples.zip"), None) is not None:
            cropped[name] = cropper.crops(name, drawn(asked.samples, name))
    cropped = {name: one for name, one in cropped.items() if len(one[0])}
    for kind in asked.kinds:
        arrays: dict[str, NDArray[np.generic]] = {f"people of {name}": one[1] for name, one in cropped.items()}
        facts: dict[str, object] = {"failed": dict(cropper.failed), "recipe": RECIPES[kind].__dict__}
        for at, trait in enumerate(TRAITS):
            network = Network(asked.keep / f"{kind}_{trait}", RECIPES[kind], asked.device)
            network.learn(*learned[kind], at, asked.seconds)
            for name, (shown, _) in cropped.items():
                if name != LINKING:
                    arrays[f"{name} {trait}"] = network.vectors(shown[:, at])
            shown, people = cropped[LINKING]
            linked = Some(network.vectors(shown[:, at])[:, None].astype(np.float32), people.astype(np.int64))
            facts[trait] = network.facts | {"links": linking_of(linked, (trait,))[trait], "linked": len(people)}
            print(kind, trait, {key: value for key, value in network.facts.items() if key != "losses"}, flush=True)
            arrays["facts"] = np.array(json.dumps(facts))
            save(asked.keep / f"trait_vectors_{kind}.npz", arrays)


class Network:
    """One network, its weights at ``path``, and how it was trained."""

    def __init__(self, path: Path, recipe: Recipe, device: str) -> None:
        self.weights, self.about = path.with_suffix(".safetensors"), path.with_suffix(".json")
        self.recipe, self.device, self.facts = recipe, device, dict[str, object]()

    def learn(self, frames: Crops, targets: Targets, at: int, seconds: float) -> None:
        """Or read what an earlier call has learned."""
        if self.about.exists():
            self.network = Vit(self.recipe).to(self.device).eval()
            self.network.load_state_dict(load_file(self.weights))
            self.facts = json.loads(self.about.read_text(encoding="utf-8"))
            return
        known = np.ones(len(frames), bool)
        if targets.ndim == 1:
            targets = np.unique(targets, return_inverse=True)[1].astype(np.int64)
            last = len(targets) - 1 - np.unique(targets[::-1], return_index=True)[1]
            known[last[(np.arange(len(last)) >= PEOPLE) & (np.bincount(targets) > 1)]] = False
        began = time.monotonic()
        own = np.ascontiguousarray(frames[:, at])
        self.network, losses = train(own[known], targets[known], self.recipe, self.device, seconds)
        self.facts = {
            "pictures": int(known.sum()),
            "epochs": len(losses),
            "seconds": round(time.monotonic() - began, 1),
            "losses": [float(f"{loss:.4g}") for loss in losses],
        }
        if targets.ndim == 1:
            self.facts["people"] = int(targets.max()) + 1
            self.facts["names"] = named(self.vectors(own), targets.astype(np.int64), known) if not known.all() else None
        save_file(self.network.state_dict(), self.weights)
        self.about.write_text(json.dumps(self.facts), encoding="utf-8")

    def vectors(self, frames: Crops) -> NDArray[np.float16]:
        """(n, d), of length one."""
        made = []
        with torch.inference_mode():
            for start in range(0, len(frames), 256):
                pictures = torch.from_numpy(np.ascontiguousarray(frames[start : start + 256])).to(self.device)
                made.append(self.network(as_seen(pictures, self.recipe)).float().cpu().numpy())
        found = np.concatenate(made)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float16)


def named(vectors: NDArray[np.float16], people: NDArray[np.int64], known: NDArray[np.bool_]) -> float:
    """mAP of naming the person of a picture that was not learned, by the mean of the person's learned pictures."""
    sums = np.zeros((int(people.max()) + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, people[known], vectors[known].astype(np.float32))
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    cosines = vectors[~known].astype(np.float32) @ means.T
    right = cosines[np.arange(len(cosines)), people[~known]]
    return float(np.mean(1 / (cosines >= right[:, None]).sum(axis=1)))


class Cropper:
    """Pictures to their four traits, cut out; what fails is counted."""

    def __init__(self, keep: Path, seconds: float) -> None:
        self.keep, self.seconds, self.failed = keep, seconds, Counter[str]()
        self.detector, self.landmarks = load_detector(), load_landmarks(accept_licence=True)

    def crops(self, name: str, pictures: Pictures, teacher: str | None = None) -> tuple[Crops, Targets]:
        """What is there already is read."""
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
                wanted = replace(SMALL.input, size=STORED)
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


def save(path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)  # type: ignore[arg-type]  # NumPy's types take names of arrays for its own options
    part.replace(path)


if __name__ == "__main__":
    main()
