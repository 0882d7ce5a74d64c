"""Known copies of pictures: set apart from the pictures themselves, given a role by whose they are, and found again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.defence import Defender
from unface.auditing.protocol import Prepared
from unface.data import EmbeddingSet, Role, Source, Split, read_embeddings, require_same_space
from unface.data.embeddings import as_text
from unface.erase import KEEPER, Projection, copy_covariance, task_covariance
from unface.errors import UnfaceError
from unface.result.words import count
from unface.utility.ranking import nearest

COPY_COLUMN = "copy_of"


@dataclass(frozen=True, eq=False)
class Copies:
    """Pairs of unit vectors: a picture and a copy of it, and whose picture it is."""

    originals: NDArray[np.float32]  # (p, d)
    copies: NDArray[np.float32]  # (p, d)
    names: NDArray[np.object_]  # (p,)
    ids: NDArray[np.object_]  # (p,) of the originals

    def of(self, split: Split, role: Role) -> "Copies":
        """Those of one role's pictures; people without a role are nobody's test, and learned from."""
        roles = {name: _role(split, name) for name in set(self.names.tolist())}
        return self.take(np.array([roles[name] is role for name in self.names.tolist()], bool))

    def take(self, chosen: NDArray[np.bool_]) -> "Copies":
        """Some of the pairs."""
        return Copies(self.originals[chosen], self.copies[chosen], self.names[chosen], self.ids[chosen])

    def covariance(self) -> NDArray[np.float64]:
        """What a keeper needs of them."""
        if not len(self.copies):
            raise UnfaceError(
                f"{KEEPER}: none of the copies are of pictures that it may learn from; make copies of all of SRC"
            )
        return copy_covariance(self.originals, self.copies)


def without_copies(given: EmbeddingSet) -> tuple[EmbeddingSet, Copies | None]:
    """A set without the rows that ``copy_of`` names as copies of others, and these: a copy is no second picture."""
    if COPY_COLUMN not in given.labels:
        return given, None
    originals, copies = _parted(given)
    if not len(copies):
        return given, None
    return originals, _paired(copies, [originals])


def read_copies(source: Source, given: EmbeddingSet | None) -> Copies:
    """Copies by their column ``copy_of``, of pictures in the same file or in ``given``."""
    made = read_embeddings(source)
    if COPY_COLUMN not in made.labels:
        raise UnfaceError(
            f"{made.source}: no column {COPY_COLUMN!r}; --copies needs the id of each copy's original in it"
        )
    if given is not None:
        require_same_space(given.unit().space, made.unit().space)
    originals, copies = _parted(made)
    if not len(copies):
        raise UnfaceError(
            f"{made.source}: {COPY_COLUMN!r} is empty in every row, so there are no copies; name originals"
        )
    return _paired(copies, [originals] if given is None else [originals, given])


def nuisance_of(copies: Copies | None, task: EmbeddingSet | None) -> NDArray[np.float64] | None:
    """What must not matter: the difference between a picture and its copy, or between vectors of one class."""
    if copies is not None:
        return copies.covariance()
    return None if task is None else task_covariance(task.vectors, task.identities)


def with_copies(defender: Defender, copies: Copies, given: EmbeddingSet, prepared: Prepared) -> Defender:
    """A defender that has seen copies of fit pictures, and counts those of calibrate pictures that it finds."""
    split = prepared.split
    if defender.task is not None:
        raise UnfaceError(f"{KEEPER}: learns either from copies or from a task; give copies or --spare, not both")
    held, gallery = copies.of(split, Role.CALIBRATE), pictures_of(given, split, Role.CALIBRATE)
    useful = share_found(held, gallery) if len(held.copies) else None
    return replace(defender, nuisance=copies.of(split, Role.FIT).covariance(), useful=useful)


def pictures_of(given: EmbeddingSet, split: Split, role: Role) -> EmbeddingSet:
    """Every picture of a role's people, also those that curation left out."""
    known = {name: _role(split, name, Role.TRAIN) for name in given.names}
    return given.take(np.array([known[name] is role for name in given.names], bool)[given.identities])


def copy_set(copies: Copies, gallery: EmbeddingSet, source: str) -> EmbeddingSet | None:
    """Copies and the pictures to find them among, as a utility set; None where there are too few for a result."""
    there = set(gallery.ids.tolist())
    copies = copies.take(np.array([name in there for name in copies.ids], bool))
    if len(set(copies.ids.tolist())) < 2:
        return None
    numbered = [f"copy {number} of {name}" for number, name in enumerate(copies.ids.tolist())]
    names = np.array([*(gallery.names[code] for code in gallery.identities), *copies.names], object)
    return EmbeddingSet.from_arrays(
        np.concatenate([gallery.unit().vectors, copies.copies]),
        names,
        ids=[*gallery.ids.tolist(), *numbered],
        labels={COPY_COLUMN: np.array([*([""] * len(gallery)), *copies.ids], object)},
        space=gallery.unit().space,
        source=source,
    )


def share_found(copies: Copies, gallery: EmbeddingSet) -> Callable[[Projection], float]:
    """How many copies have their original as the nearest picture of a gallery, after a projection."""
    place = {name: row for row, name in enumerate(gallery.ids.tolist())}
    own = np.array([place.get(name, -1) for name in copies.ids.tolist()], np.int64)
    queries, wanted, references = copies.copies[own >= 0], own[own >= 0], gallery.unit().vectors
    if not len(wanted):
        raise UnfaceError(
            f"{KEEPER}: no copy of a calibrate identity's picture, by which --target could choose; "
            "make copies of all of SRC, or give --rank"
        )

    def found(projection: Projection) -> float:
        first = nearest(projection.apply(queries), projection.apply(references), 1)[:, 0]
        return float(np.mean(first == wanted))

    return found


def _role(split: Split, name: str, otherwise: Role = Role.FIT) -> Role:
    try:
        return split.role_of(name)
    except UnfaceError:
        return otherwise


def _parted(given: EmbeddingSet) -> tuple[EmbeddingSet, EmbeddingSet]:
    names = as_text(given.labels[COPY_COLUMN], f"{given.source}: {COPY_COLUMN!r}")
    is_copy = np.array([bool(name) for name in names], bool)
    return given.take(~is_copy), given.take(is_copy)


def _paired(copies: EmbeddingSet, pictures: Sequence[EmbeddingSet]) -> Copies:
    """Each copy with its original, in the first set that has it."""
    place: dict[str, tuple[int, int]] = {}
    for number, one in enumerate(pictures):
        for row, name in enumerate(one.ids.tolist()):
            place.setdefault(name, (number, row))
    named = as_text(copies.labels[COPY_COLUMN], f"{copies.source}: {COPY_COLUMN!r}")
    missing = [name for name in named if name not in place]
    if missing:
        raise UnfaceError(
            f"{copies.source}: {count(len(missing), 'copy', 'copies')} of pictures that are not there, such as of "
            f"{missing[0]!r}; {COPY_COLUMN!r} must name the id of a picture"
        )
    vectors = [one.unit().vectors for one in pictures]
    found = [place[name] for name in named]
    originals = np.array([vectors[number][row] for number, row in found], np.float32).reshape(len(found), -1)
    whose = [pictures[number].names[pictures[number].identities[row]] for number, row in found]
    return Copies(originals, copies.unit().vectors, np.array(whose, object), np.array(named, object))
