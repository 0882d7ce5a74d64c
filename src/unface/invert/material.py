"""Vectors of the same pictures by several encoders become targets, judges and what an attacker learns from."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, ImageRef, decode
from unface.erase import FitError, LabelFreePCA, Projection, RandomSubspace, fit_projection
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Detector, align_face, main_face
from unface.invert.measure import Juror, People
from unface.invert.ports import Train
from unface.result.inversion import TargetPeople
from unface.seeds import stream
from unface.threads import parallel_map

FEWEST = 2
"""Targets; with one there would be no stranger to mistake it for."""


@dataclass(frozen=True, eq=False)
class Material:
    """Everybody in one role: attacked, learned from, or setting thresholds."""

    people: People
    attacked: tuple[str, ...]
    """Ids of the attacked pictures, by target."""
    train: Train
    train_set: EmbeddingSet
    jury: tuple[Juror, ...]
    own: Juror | None
    facts: TargetPeople


def assign(
    attacked: EmbeddingSet,
    judges: Mapping[str, EmbeddingSet],
    own: tuple[str, EmbeddingSet] | None,
    targets: int,
    *,
    generated: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Material:
    """At most a third of the people are targets; of the others half set thresholds and half are learned from.

    ``judges`` and ``own``, the attacker's recogniser, hold vectors by picture id, where they saw a face. Where there is
    no judge, the attacker's recogniser judges its own templates.
    """
    names = [attacked.names[at] for at in stream(seed, "invert", "people").permutation(len(attacked.names))]
    rows = {name: list[int]() for name in names}
    for row in np.argsort([str(one) for one in attacked.ids], kind="stable"):
        rows[attacked.names[attacked.identities[row]]].append(int(row))
    looking = dict(judges) or ({} if own is None else {own[0]: own[1]})
    known = {name: {str(one): row for row, one in enumerate(found.ids)} for name, found in looking.items()}
    ids = [str(one) for one in attacked.ids]
    chosen, first = list[str](), list[int]()
    most = min(targets, len(names) // 3)
    for name in names:
        shown = [row for row in rows[name] if all(ids[row] in one for one in known.values())]
        if shown and len(chosen) < most:
            chosen.append(name)
            first.append(shown[0])
    if len(chosen) < FEWEST:
        raise UnfaceError(
            f"{attacked.source}: {len(names)} people give {len(chosen)} targets (at most a third, a face for every "
            f"judge); at least {FEWEST} are needed, so give more people"
        )
    others = [name for name in names if name not in set(chosen)]
    calibrate, learned = others[: -(-len(others) // 2)], others[-(-len(others) // 2) :]
    mine = [row for name in chosen for row in rows[name]]
    codes = np.repeat(np.arange(len(chosen)), [len(rows[name]) for name in chosen]).astype(np.int64)
    place = {row: at for at, row in enumerate(mine)}
    people = People(
        codes,
        np.array([place[row] for row in first], np.int64),
        attacked.vectors[mine],
        {name: _vectors(found, [ids[row] for row in mine]) for name, found in _with(looking, own).items()},
    )
    jurors = {
        name: _juror(name, found, calibrate, name in judges, threads) for name, found in _with(looking, own).items()
    }
    taught = [row for name in learned for row in rows[name]]
    features = {} if own is None else {own[0]: _vectors(own[1], [ids[row] for row in taught])}
    whose = np.repeat(np.arange(len(learned)), [len(rows[name]) for name in learned]).astype(np.int64)
    digest = hashlib.sha256("\n".join([*(ids[row] for row in mine), "", *names]).encode())
    digest.update(attacked.vectors[mine].tobytes())
    return Material(
        people,
        tuple(ids[row] for row in first),
        Train(attacked.vectors[taught], whose, features),
        attacked.take(np.array(taught, np.int64)),
        tuple(jurors[name] for name in looking),
        None if own is None else jurors[own[0]],
        TargetPeople(
            source=attacked.source,
            generated=generated,
            targets=len(chosen),
            pictures=len(mine),
            train=len(learned),
            calibrate=len(calibrate),
            sha256=digest.hexdigest(),
            notes=list(attacked.notes),
        ),
    )


def in_frame(
    images: Sequence[ImageRef], detector: Detector, face: tuple[float, float, float], size: int = 128
) -> NDArray[np.uint8]:
    """(n, size, size, 3): photographs as a prior would show them, with the aligned face at ``face`` of its frame.

    ``face`` is left, top and side as shares. Of a photograph without a face it is the square in the middle.
    """
    from PIL import Image, ImageOps

    left, top, side = face
    template = ARCFACE_112 * (side * size / 112) + np.array([left, top]) * size

    def cut(image: ImageRef) -> NDArray[np.uint8]:
        picture = decode(image.read())
        found = main_face(detector.detect(picture), picture.shape)
        if found is None:
            return np.asarray(ImageOps.fit(Image.fromarray(picture), (size, size), Image.Resampling.BILINEAR))
        return align_face(picture, found.landmarks, template, size)

    return np.stack(parallel_map(cut, images))


def require_learners(people: int, targets: int, fewest: int, attack: str) -> None:
    """Refuse too few people before they are encoded: some may yet show no face, but never more do."""

    def learned(number: int) -> int:
        return (number - min(targets, number // 3)) // 2

    if learned(people) < fewest:
        enough = next(number for number in range(people, 10 * fewest + 2 * targets) if learned(number) >= fewest)
        raise UnfaceError(
            f"attack {attack!r}: {people} people leave {learned(people)} to learn from, at least {fewest} are needed; "
            f"give at least {enough} people"
        )


def spaces_of(projections: Mapping[str, Projection], train: EmbeddingSet) -> dict[str, Projection | None]:
    """The raw space, each projection, and beside it a random subspace and label-free PCA of the same rank.

    PCA is fitted on train people, who are never targets; where they are too few for the rank it is left out.
    """
    spaces: dict[str, Projection | None] = {"raw": None, **projections}
    for projection in projections.values():
        rank = projection.rank
        for name, eraser in ((f"random {rank}", RandomSubspace(rank)), (f"pca {rank}", LabelFreePCA(rank))):
            if projection.kind not in ("random", "pca") and name not in spaces:
                try:
                    spaces[name] = fit_projection(eraser, train)
                except FitError:
                    continue
    return spaces


def _with(looking: Mapping[str, EmbeddingSet], own: tuple[str, EmbeddingSet] | None) -> dict[str, EmbeddingSet]:
    return {**looking, **({} if own is None else {own[0]: own[1]})}


def _juror(name: str, found: EmbeddingSet, people: Sequence[str], independent: bool, threads: int | None) -> Juror:
    wanted = set(people)
    rows = np.array([row for row, at in enumerate(found.identities) if found.names[at] in wanted], np.int64)
    return Juror.calibrated(name, found.vectors[rows], found.identities[rows], independent=independent, threads=threads)


def _vectors(found: EmbeddingSet, ids: Sequence[str]) -> NDArray[np.float32]:
    """(n, d) in the order of the ids; zeros where the recogniser saw no face."""
    place = {str(one): row for row, one in enumerate(found.ids)}
    vectors = np.zeros((len(ids), found.space.dim), np.float32)
    for at, one in enumerate(ids):
        if one in place:
            vectors[at] = found.vectors[place[one]]
    return vectors
