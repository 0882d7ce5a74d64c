"""Tables 1, 3 and 4 of paper 003 (*Beyond Face Matching*), in its shape, with what can be had here.

    python -m studies.release_tables PICTURES SAMPLES KEEP [--networks TRAIT_KEEP TRAITS.npz] [--record WHERE]

PICTURES and SAMPLES are those of ``studies.release_dose``. Table 1 compares encoders on real pictures of 15 people who
are not used otherwise. Tables 3 and 4 score the faces that generators drew: four of SAMPLES, trained on CelebA, and
MobileStyleGAN, trained on FFHQ and drawn to the same crop. All of these are 64². Members are the first 25 people, who
are in all trainings; fresh are 25 people from the 7,001st on. Vectors are kept in KEEP.

--networks: the folder of ``studies.trait_vectors``, and what ``studies.release_pictures PICTURES OUT.npz 600`` wrote;
all tables again by networks that were trained for a trait, and how well they and arcface-mbf link the same people.
"""

import argparse
import hashlib
import json
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from studies.measured import Cell, Table, Value, markdown, write_findings
from studies.release_dose import AFTER, EACH, SIDE, small
from studies.release_planted import Some, mean_average_precision
from studies.transplants import Picture
from unface import load_encoder
from unface.data import decode
from unface.encode import Encoder, aligned, framed
from unface.faces import TRAITS, keep_only, load_detector, load_landmarks, main_face, similarity
from unface.faces.traits import usable_region
from unface.models import card
from unface.prior import load_prior
from unface.release.paper import PaperSet, nearest_mean, paper_score

Vectors = NDArray[np.float32]
BACKBONES = ("arcface-mbf", "sface", "edgeface-s", "mobilenet-v2", "sscd-int8")
METHODS = ("mobilenet-v2", "arcface-mbf")  # Table 4; the last one also with the mixture
SCORED = "arcface-mbf"
PEOPLE, DRAWN, SHOWN = 25, 125, 256  # SHOWN: pixels that 64² pictures are enlarged to, for the detector
FIRST_BACKBONE, BACKBONE_PEOPLE, BACKBONE_EACH, SPLITS = 6_200, 15, 3, 10
SETS = {
    "n250": "UNet, 250 pictures",
    "n1000": "UNet, 1,000",
    "n5000": "UNet, 5,000",
    "n20000": "UNet, 20,000",
    "ffhq": "MobileStyleGAN, FFHQ",
}
NETWORKS = {
    "paper": "ViT-B/32 (the paper's), cross-entropy",
    "people": "small ViT/32, cross-entropy",
    "student": "small ViT/32, student of arcface-mbf",
}
PUBLISHED = {
    "face": (0.9317, 0.9417, 0.8109, 0.8636),
    "eyes": (0.8422, 0.9085, 0.7374, 0.7698),
    "mouth": (0.8017, 0.8201, 0.6022, 0.6574),
    "nose": (0.7741, 0.8674, 0.7274, 0.7485),
    "fusion": (0.9585, 0.9534, 0.8210, 0.8403),
}


def main() -> None:
    """All tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("samples", type=Path)
    given.add_argument("keep", type=Path)
    given.add_argument("--networks", type=Path, nargs=2)
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    people = sorted(asked.pictures.iterdir(), key=lambda person: hashlib.sha256(person.name.encode()).hexdigest())
    reader = Reader(asked.keep)
    tables = {"table 3": third(reader, people, asked.samples)}
    print(*markdown(tables["table 3"]), sep="\n", flush=True)
    tables["table 4"] = fourth(reader, people, asked.samples, tables["table 3"])
    print(*markdown(tables["table 4"]), sep="\n", flush=True)
    tables["table 1"] = first(reader, people)
    print(*markdown(tables["table 1"]), sep="\n", flush=True)
    figures: dict[str, Cell] = {"failed": ", ".join(f"{count} {why}" for why, count in sorted(reader.failed.items()))}
    if asked.networks is not None:
        networks = {kind: trained for kind in NETWORKS if (trained := Trained.read(asked.networks[0], kind))}
        tables["networks"] = by_networks(networks, asked.networks[1])
        tables["table 1"].rows.extend(one.backbones() for one in networks.values())
        tables["table 4"].rows.extend(row for one in networks.values() for row in one.methods())
        for kind, one in networks.items():
            figures |= {f"{kind}_{name}": value for name, value in one.figures().items()}
        for name in ("networks", "table 1", "table 4"):
            print(*markdown(tables[name]), sep="\n", flush=True)
    if asked.record:
        command = "python -m studies.release_tables PICTURES SAMPLES KEEP"
        command += "" if asked.networks is None else " --networks TRAIT_KEEP TRAITS.npz"
        write_findings("release_paper", command=command, where=asked.record, tables=tables, figures=figures)


class Reader:
    """Pictures to one vector for each trait by each encoder; what fails is counted."""

    def __init__(self, keep: Path) -> None:
        self.keep, self.failed = keep, Counter[str]()
        self.detector, self.landmarks = load_detector(), load_landmarks(accept_licence=True)
        self.seconds: dict[str, float] = {}  # CPU time of each encoder for one picture

    def read(self, name: str, encoders: tuple[str, ...], pictures: Iterable[tuple[int, Picture]]) -> dict[str, Some]:
        """Vectors (n, traits, d) by encoder, of the pictures in which every trait was found."""
        path = self.keep / f"traits_{name}.npz"
        if not path.exists():
            self._write(path, encoders, pictures)
        with np.load(path, allow_pickle=False) as stored:
            self.failed.update(stored["failed"].tolist())
            self.seconds.update({one: float(stored[f"seconds {one}"]) for one in encoders})
            whose = np.unique(stored["people"], return_inverse=True)[1].astype(np.int64)
            return {one: Some(stored[one].astype(np.float32), whose) for one in encoders}

    def _write(self, path: Path, names: tuple[str, ...], pictures: Iterable[tuple[int, Picture]]) -> None:
        encoders: dict[str, Encoder] = {one: load_encoder(one, accept_licence=True, threads=1) for one in names}
        whose, failed, seconds = [], [], dict.fromkeys(names, 0.0)
        vectors: dict[str, list[Vectors]] = {one: [] for one in names}
        for person, image in pictures:
            shown = self._shown(image)
            if isinstance(shown, str):
                failed.append(shown)
                continue
            whose.append(person)
            for name, encoder in encoders.items():
                wanted = encoder.card.input
                frames = [framed(aligned(one, shown[0], wanted), wanted) for one in shown[1]]
                began = time.process_time()
                found = encoder.encode(frames)
                seconds[name] += time.process_time() - began
                vectors[name].append(found / np.linalg.norm(found, axis=1, keepdims=True))
        arrays = {name: np.stack(rows).astype(np.float16) for name, rows in vectors.items()}
        more = {f"seconds {name}": np.array(seconds[name] / len(whose)) for name in names}
        np.savez(path, people=np.array(whose), failed=np.array(failed, dtype=str), **arrays, **more)  # type: ignore[arg-type]
        print(path.stem, len(whose), "pictures,", len(failed), "failed", flush=True)

    def _shown(self, image: Picture):  # type: ignore[no-untyped-def]
        """The face, and the picture with one trait left in it, for each trait; or what failed."""
        face = main_face(self.detector.detect(image), image.shape)
        if face is None:
            return "no face"
        points = self.landmarks.points(image, face)
        if points is None:
            return "no landmarks"
        regions = [usable_region(points, trait, image.shape) for trait in TRAITS]
        bad = next((one for one in regions if isinstance(one, str)), None)
        return bad or (face, [keep_only(image, region) for region in regions])  # type: ignore[arg-type]


def enlarged(picture: Picture) -> Picture:
    """At a size at which the detector works."""
    return np.asarray(cv2.resize(picture, (SHOWN, SHOWN), interpolation=cv2.INTER_CUBIC))


def real(people: list[Path], start: int) -> Iterator[tuple[int, Picture]]:
    """As the generators saw them."""
    for number, person in enumerate(people[start : start + PEOPLE]):
        for path in sorted(person.iterdir())[:EACH]:
            yield number, enlarged(small(path))


def drawn(samples: Path, name: str) -> Iterator[tuple[int, Picture]]:
    """The first pictures of one generator."""
    with zipfile.ZipFile(next(samples.rglob(f"{name}_samples.zip"))) as archive:
        names = sorted(one for one in archive.namelist() if one.endswith(".jpg"))
        for number, one in enumerate(names[:DRAWN]):
            yield number, enlarged(decode(archive.read(one)))


def never_trained(reader: Reader, people: list[Path], device: str = "cpu") -> Iterator[tuple[int, Picture]]:
    """MobileStyleGAN's faces, moved to where CelebA's crop has eyes, nose and mouth, and made as small."""
    import torch

    points = [
        face.landmarks
        for _, picture in real(people, 0)
        if (face := main_face(reader.detector.detect(picture), picture.shape)) is not None
    ]
    targets = np.median(np.stack(points), axis=0) * SIDE / SHOWN
    prior = load_prior(device=device, accept_licence=True, threads=1, head=True)
    with torch.inference_mode():
        for number, latent in enumerate(prior.sample(DRAWN, 3, 1.0)):
            made = prior.decode(latent[None].to(device), 128)[0].permute(1, 2, 0).cpu().numpy()
            picture = np.rint(255 * made).astype(np.uint8)
            face = main_face(reader.detector.detect(picture), picture.shape)
            if face is not None:
                matrix = similarity(face.landmarks, targets)
                moved = cv2.warpAffine(
                    picture, matrix, (SIDE, SIDE), flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REFLECT
                )
                yield number, enlarged(np.asarray(moved, dtype=np.uint8))


def sets(reader: Reader, people: list[Path], samples: Path) -> dict[str, dict[str, Some]]:
    """By set and encoder."""
    found = {
        "members": reader.read("members", METHODS, real(people, 0)),
        "fresh": reader.read("fresh", METHODS, real(people, AFTER)),
    }
    for name in SETS:
        pictures = never_trained(reader, people) if name == "ffhq" else drawn(samples, name)
        found[name] = reader.read(name, METHODS if name == "n20000" else (SCORED,), pictures)
    return found


def third(reader: Reader, people: list[Path], samples: Path) -> Table:
    """mAP of the score by trait and generator, and with people who were never trained on in the members' place."""
    found = sets(reader, people, samples)
    cells: dict[str, list[Cell]] = {name: [*map(short, values[:2])] for name, values in PUBLISHED.items()}
    for name in SETS:
        one = found[name][SCORED].vectors
        for trait, cell in scored(found["members"][SCORED], found["fresh"][SCORED], one).items():
            cells[trait].append(cell)
    columns = {"trait": "", "paper, SGAN-XL, CelebA": ".3f", "paper, StyleGAN2, CelebA": ".3f"}
    columns |= dict.fromkeys(SETS.values(), ".3f/")
    return Table(columns=columns, rows=[[trait, *row] for trait, row in cells.items()])


def scored(ours: Some, fresh: Some, drawn: Vectors) -> dict[str, list[Value]]:
    """By trait: mAP of the score for members, and for people who were never trained on."""
    traits = {
        trait: PaperSet(ours.vectors[:, at], drawn[:, at], fresh.vectors[:, at]) for at, trait in enumerate(TRAITS)
    }
    runs = [paper_score(traits, ours.people, fresh.people, seed=seed) for seed in range(SPLITS)]
    parts = ("average_precision", "fresh")
    return {
        scores[0].trait: [short(float(np.mean([getattr(score, part) for score in scores]))) for part in parts]
        for scores in zip(*runs, strict=True)
    }


@dataclass(frozen=True)
class Trained:
    """Vectors by the four trait networks of one kind, and how they were trained."""

    name: str
    arrays: Mapping[str, NDArray[np.generic]]
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path, kind: str) -> "Trained | None":
        """Where all four traits are there."""
        path = folder / f"trait_vectors_{kind}.npz"
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        facts = json.loads(str(arrays.pop("facts")))
        return cls(NETWORKS[kind], arrays, facts) if all(trait in facts for trait in TRAITS) else None

    def some(self, part: str) -> Some:
        """(n, traits, d)."""
        vectors = np.stack([self.arrays[f"{part} {trait}"].astype(np.float32) for trait in TRAITS], axis=1)
        return Some(vectors, np.unique(self.arrays[f"people of {part}"], return_inverse=True)[1].astype(np.int64))

    def third(self) -> list[list[Cell]]:
        """Rows of the table of networks."""
        cells = [
            scored(self.some("members"), self.some("fresh"), self.some(one).vectors)
            if f"people of {one}" in self.arrays
            else {}
            for one in SETS
        ]
        rows: list[list[Cell]] = []
        for trait in (*TRAITS, "fusion"):
            facts = self.facts.get(trait, {})
            names = facts.get("names")
            ours: list[Cell] = [None if names is None else short(names), facts.get("links")]
            rows.append([self.name, trait, *ours, *(one.get(trait) for one in cells)])
        return rows

    def backbones(self) -> list[Cell]:
        """A row of Table 1."""
        each = [*linking_of(self.some("backbones")).values()]
        return [self.name, None, None, *each, short(float(np.mean(each)))]

    def methods(self) -> list[list[Cell]]:
        """Rows of Table 4."""
        parts = {name: self.some(name).vectors for name in ("members", "fresh", "n20000")}
        mixture = scored(self.some("members"), self.some("fresh"), parts["n20000"])
        return [
            [f"{self.name}, nearest distance", *by_distance(parts)],
            [f"{self.name}, mixture", *(mixture[trait] for trait in TRAITS)],
        ]

    def figures(self) -> dict[str, Cell]:
        """How long each network learned, from what."""
        each = [self.facts[trait] for trait in TRAITS]
        found: dict[str, Cell] = {part: each[0].get(part) for part in ("pictures", "people", "linked")}
        found["epochs"] = [min(one["epochs"] for one in each), max(one["epochs"] for one in each)]
        found["seconds"] = short(float(np.mean([one["seconds"] for one in each])))
        found["first_loss"], found["last_loss"] = ([one["losses"][at] for one in each] for at in (0, -1))
        return found


def by_networks(networks: Mapping[str, Trained], by_recogniser: Path) -> Table:
    """How well networks that were trained for a trait tell people apart, and the score by their vectors."""
    with np.load(by_recogniser, allow_pickle=False) as stored:
        same = linking_of(Some(stored["holdout"].astype(np.float32), stored["people of holdout"]))
    nothing: list[Cell] = [None] * len(SETS)
    rows: list[list[Cell]] = [[SCORED, trait, None, links, *nothing] for trait, links in same.items()]
    rows += [row for one in networks.values() for row in one.third()]
    columns = {"network": "", "trait": "", "mAP of naming known people": ".3f", "mAP of linking fresh people": ".3f"}
    return Table(columns={**columns, **dict.fromkeys(SETS.values(), ".3f/")}, rows=rows)


def linking_of(linked: Some, traits: Sequence[str] = TRAITS) -> dict[str, float]:
    """mAP of finding a person's other picture, by trait."""
    return {
        trait: short(mean_average_precision(np.ascontiguousarray(linked.vectors[:, at]), linked.people))
        for at, trait in enumerate(traits)
    }


def fourth(reader: Reader, people: list[Path], samples: Path, by_mixture: Table) -> Table:
    """The nearest distance alone, by other encoders, beside the mixture; the UNet trained on 20,000 pictures."""
    found = sets(reader, people, samples)
    rows: list[list[Cell]] = []
    for encoder in METHODS:
        parts = {name: found[name][encoder].vectors for name in ("members", "fresh", "n20000")}
        rows.append([f"{encoder}, nearest distance", *by_distance(parts)])
    place = [*by_mixture.columns].index(SETS["n20000"])
    ours = {str(row[0]): row[place] for row in by_mixture.rows}
    rows.append([f"{SCORED}, mixture (the paper's)", *(ours[trait] for trait in TRAITS)])
    return Table(columns={"method": "", **dict.fromkeys(TRAITS, ".3f/")}, rows=rows)


def by_distance(parts: Mapping[str, Vectors]) -> list[Cell]:
    """By trait: mAP for members, and for people who were never trained on, of each picture's nearest neighbour."""
    cells: list[Cell] = []
    for at in range(len(TRAITS)):
        one = {name: np.ascontiguousarray(vectors[:, at]) for name, vectors in parts.items()}
        near = -nearest_mean(one["n20000"], one["members"], 1)
        cell: list[Value] = []
        for side in ("members", "fresh"):
            own = np.arange(len(one[side]))
            scores = -nearest_mean(one[side], one[side], 1, excluded=(own, own))
            labels = np.repeat([1, 0], [len(scores), len(near)])
            cell.append(short(float(average_precision_score(labels, np.concatenate([scores, near])))))
        cells.append(cell)
    return cells


def first(reader: Reader, people: list[Path]) -> Table:
    """How well each encoder tells people apart by each trait, on pictures as CelebA has them."""

    def pictures() -> Iterator[tuple[int, Picture]]:
        for number, person in enumerate(people[FIRST_BACKBONE : FIRST_BACKBONE + BACKBONE_PEOPLE]):
            for path in sorted(person.iterdir())[:BACKBONE_EACH]:
                yield number, decode(path.read_bytes())

    found = reader.read("backbones", BACKBONES, pictures())
    rows: list[list[Cell]] = []
    for name, one in found.items():
        each = [
            mean_average_precision(np.ascontiguousarray(one.vectors[:, at]), one.people) for at in range(len(TRAITS))
        ]
        weights, seconds = card(name).bytes / 1e6, 1000 * reader.seconds[name] / len(TRAITS)
        rows.append([name, short(seconds), short(weights), *map(short, [*each, float(np.mean(each))])])
    columns = {"model": "", "CPU seconds for 1,000 crops": ".0f", "weights, MB": ".0f"}
    return Table(columns={**columns, **dict.fromkeys((*TRAITS, "mAP, mean of the four"), ".3f")}, rows=rows)


def short(value: float) -> float:
    return float(f"{value:.4g}")


if __name__ == "__main__":
    main()
