"""Pictures on disk become faces: each read once, its main face found once, seen by every recogniser that is asked."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count as count_from

import numpy as np
from numpy.typing import NDArray

from unface.data import BadPicture, ImageSet, decode
from unface.encode import ahead, contents
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.judge import Recogniser, face_frames
from unface.metrics.rates import identities_needed
from unface.progress import Progress, Silent
from unface.result.words import count, rate
from unface.seeds import stream
from unface.threads import available_cores
from unface.validate.ports import Faces, Picture

_BATCH = 32
FEWEST_PEOPLE = 2
FEWEST_QUESTIONS = 10
FEWEST_ASKED_WITH = 3
"""Two thirds of them are asked with; the others set thresholds."""


def sha256_of(faces: Faces) -> str:
    """Of the pictures' bytes and whose they are, in order."""
    digest = hashlib.sha256()
    for picture, person in zip(faces.pictures, faces.identities, strict=True):
        digest.update(f"{picture.sha256} {faces.names[person]!a}\n".encode())
    return digest.hexdigest()


def taken(faces: Faces, rows: NDArray[np.int64] | Sequence[int]) -> Faces:
    """Some of the pictures, with the people who are left."""
    picked = np.asarray(rows, dtype=np.int64)
    people, identities = np.unique(faces.identities[picked], return_inverse=True)
    return Faces(
        tuple(faces.pictures[row] for row in picked),
        identities.astype(np.int64),
        tuple(faces.names[person] for person in people),
        {name: vectors[picked] for name, vectors in faces.vectors.items()},
    )


@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures with a face, and what had to be left out."""

    faces: Faces
    without_face: tuple[str, ...]
    unreadable: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """For results: counts, no names."""
        found = {"no face found": self.without_face, "cannot be read": self.unreadable}
        return [f"{count(len(names), 'picture')} left out: {why}" for why, names in found.items() if names]


def see(
    images: ImageSet,
    recognisers: Mapping[str, Recogniser],
    detector: Detector,
    *,
    task: str,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Seen:
    """Every picture of the set; the same bytes a second time are left out, since no question is asked twice.

    Without recognisers, faces are only looked for.
    """
    progress = progress or Silent()
    wanted = [recogniser.wanted for recogniser in recognisers.values()]
    pictures, owners = list[Picture](), list[str]()
    frames: list[list[NDArray[np.uint8]]] = [[] for _ in recognisers]
    vectors: list[list[NDArray[np.float32]]] = [[] for _ in recognisers]
    without, unreadable, known = list[str](), list[str](), set[str]()

    def frame(content: bytes | BadPicture) -> tuple[bytes, tuple[NDArray[np.uint8], ...] | None] | BadPicture:
        if isinstance(content, BadPicture):
            return content
        try:
            return content, face_frames(decode(content), detector, wanted)
        except BadPicture as bad:
            return bad

    def embed() -> None:
        for waiting, done, recogniser in zip(frames, vectors, recognisers.values(), strict=True):
            if waiting:
                done.append(recogniser.embed(waiting))
                waiting.clear()

    progress.start(task, len(images))
    cores = threads or available_cores()
    with closing(ahead(frame, contents(images), cores, 2 * _BATCH)) as prepared:
        for image, found in zip(images, prepared, strict=True):
            progress.advance(task)
            if isinstance(found, BadPicture):
                unreadable.append(image.id)
                continue
            content, cut = found
            picture = Picture(image.id, content)
            if cut is None:
                without.append(image.id)
            elif picture.sha256 not in known:
                known.add(picture.sha256)
                pictures.append(picture)
                owners.append(image.identity)
                for waiting, one in zip(frames, cut, strict=True):
                    waiting.append(one)
                if len(pictures) % _BATCH == 0:
                    embed()
    embed()
    names, identities = np.unique(np.array(owners, dtype=object), return_inverse=True)
    made = {
        name: np.concatenate(done) if done else np.zeros((0, recogniser.space.dim), np.float32)
        for (name, recogniser), done in zip(recognisers.items(), vectors, strict=True)
    }
    faces = Faces(tuple(pictures), identities.astype(np.int64), tuple(map(str, names)), made)
    return Seen(faces, tuple(without), tuple(unreadable))


def enrolment_of(seen: Seen, source: str) -> Faces:
    """People to enrol: every picture must show a face, since the operator enrols the first one of each."""
    for what, names in (("no face was found in", seen.without_face), ("cannot read", seen.unreadable)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UnfaceError(f"{source}: {what} {names[0]!r}{more}; replace or remove the picture")
    if len(seen.faces.names) < FEWEST_PEOPLE:
        raise UnfaceError(
            f"{source}: {len(seen.faces.names)} people; expected at least {FEWEST_PEOPLE}, as <person>/<picture>"
        )
    return seen.faces


def without(faces: Faces, enrolled: Faces) -> Faces:
    """Faces to ask with: nobody whose picture is enrolled, or is to judge by."""
    known = {picture.sha256 for picture in enrolled.pictures}
    both = {
        int(person)
        for person, picture in zip(faces.identities, faces.pictures, strict=True)
        if picture.sha256 in known or faces.names[int(person)] in enrolled.names
    }
    return taken(faces, np.flatnonzero(~np.isin(faces.identities, list(both))))


def require_enough_to_ask_with(images: ImageSet, enrolled: ImageSet | None, budget: int, far: float) -> None:
    """Refuse too few people for the budget, or for thresholds at ``far``, before anybody is enrolled or asked about.

    One face each of ``budget`` people is asked with; the others, at least a third, set thresholds.
    """
    known = set() if enrolled is None else {image.identity for image in enrolled}
    pictures = Counter(image.identity for image in images if image.identity not in known)
    people = len(pictures)
    each = (sum(pictures.values()) / max(people, 1)) ** 2
    setting = identities_needed(far, each or 1)
    needed = next(n for n in count_from(setting) if n - budget >= setting and 2 * n // 3 >= budget)
    if people < needed:
        most = min(people - setting, 2 * people // 3)
        fewer = f", or --budget {most}" if most >= FEWEST_QUESTIONS else ""
        raise UnfaceError(
            f"--queries: holds {count(people, 'person', 'people')} not enrolled; {budget} questions at a FAR of "
            f"{rate(far)} need {needed}, one face each to ask with and the others, at least {setting}, to set "
            f"thresholds; give more people{fewer}"
        )


def split_attacker(faces: Faces, budget: int, seed: int) -> tuple[Faces, Faces]:
    """One face each of ``budget`` people to ask with, in random order; everybody else, to set thresholds with.

    With too few people to leave a third for thresholds, fewer are asked with.
    """
    if len(faces.names) < FEWEST_ASKED_WITH:
        left = count(len(faces.names), "person", "people")
        are = "is" if len(faces.names) == 1 else "are"
        raise UnfaceError(
            f"--queries: {left} in it {are} not enrolled; give pictures of at least {FEWEST_ASKED_WITH} other people"
        )
    order = stream(seed, "validate", "attacker").permutation(len(faces.names))
    asked = min(budget, 2 * len(order) // 3)
    first = [int(faces.rows(int(person))[0]) for person in order[:asked]]
    rest = np.flatnonzero(np.isin(faces.identities, order[asked:]))
    return taken_in_order(faces, first), taken(faces, rest)


def taken_in_order(faces: Faces, rows: Sequence[int]) -> Faces:
    """One picture of each of several people, people numbered in that order."""
    picked = list(rows)
    return replace(
        faces,
        pictures=tuple(faces.pictures[row] for row in picked),
        identities=np.arange(len(picked), dtype=np.int64),
        names=tuple(faces.names[int(faces.identities[row])] for row in picked),
        vectors={name: vectors[picked] for name, vectors in faces.vectors.items()},
    )


def embedder(recogniser: Recogniser, detector: Detector) -> Callable[[Sequence[Picture]], NDArray[np.float32]]:
    """Pictures to unit vectors by one recogniser, as a built-in target needs it."""

    def embed(pictures: Sequence[Picture]) -> NDArray[np.float32]:
        vectors = np.zeros((len(pictures), recogniser.space.dim), np.float32)
        cut = [face_frames(decode(picture.content), detector, [recogniser.wanted]) for picture in pictures]
        there = [at for at, one in enumerate(cut) if one is not None]
        if there:
            vectors[there] = recogniser.embed([one[0] for one in cut if one is not None])
        return vectors

    return embed
