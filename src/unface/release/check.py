"""What is refused before a release is measured: sets that overlap, differ in space, or have too few people."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import require_same_space
from unface.errors import UnfaceError
from unface.release.cluster import cluster_people
from unface.release.faces import Faces
from unface.result.words import count

NO_HOLDOUT = (
    "--holdout: is missing. Without people who were not trained on, closeness to training people means nothing: any "
    "face is close to some other face; give pictures of other people from the same source"
)


@dataclass
class Overlap:
    """What is worth a note, and synthetic faces that have exactly the vector of a real picture."""

    notes: list[str]
    training: list[tuple[int, int]] = field(default_factory=list)
    """(synthetic row, training row)."""
    holdout: list[tuple[int, int]] = field(default_factory=list)


def require_comparable(synthetic: Faces, training: Faces, holdout: Faces) -> Overlap:
    """Refuse sets that share people or files; what they may share comes back."""
    found = Overlap(_space_notes(synthetic, training, holdout))
    _require_other_people(synthetic, training, holdout)
    ours = {digest: row for row, digest in enumerate(_digests(training))}
    both = [(row, ours[digest]) for row, digest in enumerate(_digests(holdout)) if digest in ours]
    if both:
        row, ours_row = both[0]
        raise UnfaceError(
            f"{training.source} and {holdout.source}: share {count(len(both), 'picture')}, such as "
            f"{training.ids[ours_row]!r} and {holdout.ids[row]!r}; take shared pictures out of both"
        )
    theirs = {digest: row for row, digest in enumerate(_digests(holdout))}
    for row, digest in enumerate(_digests(synthetic)):
        for real, rows, pairs in ((training, ours, found.training), (holdout, theirs, found.holdout)):
            if digest in rows:
                if synthetic.ids[row] == real.ids[rows[digest]]:
                    raise UnfaceError(
                        f"{synthetic.source} and {real.source}: share the file {synthetic.ids[row]!r}; "
                        "take real pictures out of the synthetic set"
                    )
                pairs.append((row, rows[digest]))
    return found


def _space_notes(synthetic: Faces, training: Faces, holdout: Faces) -> list[str]:
    notes = []
    for one, other in ((training, synthetic), (training, holdout)):
        if one.vectors.dim != other.vectors.dim or (one.space.encoder and other.space.encoder):
            require_same_space(replace(one.space, normalised=True), replace(other.space, normalised=True))
        elif one.space.encoder or other.space.encoder:
            notes.append(
                f"{one.source} and {other.source}: one does not say which encoder made it; they must be the same"
            )
    return notes


def _require_other_people(synthetic: Faces, training: Faces, holdout: Faces) -> None:
    if training.labelled and holdout.labelled:
        shared = sorted(set(training.names) & set(holdout.names))
        if shared:
            people = count(len(shared), "person", "people")
            raise UnfaceError(
                f"{training.source} and {holdout.source}: share {people}, such as {shared[0]!r}; training and holdout "
                "must show different people"
            )
    if synthetic.labelled and holdout.labelled:
        named = sorted(set(synthetic.names) & set(holdout.names))
        if named:
            raise UnfaceError(
                f"{synthetic.source}: rows name {named[0]!r}, who is in the holdout;"
                " a holdout must not be generated from"
            )


def with_people(
    training: Faces, holdout: Faces, *, device: str, threads: int | None
) -> tuple[Faces, Faces, str | None]:
    """Both sets with people: as they are labelled, or clustered, and then how."""
    note = None
    if not (training.labelled and holdout.labelled):
        found = cluster_people(
            training.take(np.arange(len(training))),
            holdout.take(np.arange(len(holdout))),
            device=device,
            threads=threads,
        )
        note = (
            "people were clustered, for want of identity labels (--identity-column names their column): "
            f"pictures from a cosine of {found.cosine:.3f} on "
            "count as one person; split or merged people make the list of exposed people less reliable"
        )
        training, holdout = (
            replace(side, people=people, names=tuple(f"cluster {number}" for number in range(int(people.max()) + 1)))
            for side, people in ((training, found.training), (holdout, found.holdout))
        )
    for side, role in ((training, "training"), (holdout, "holdout")):
        if len(side.names) < 2:
            raise UnfaceError(
                f"{side.source}: shows {count(len(side.names), 'person', 'people')}; {role} needs at least two"
            )
    return training, holdout, note


def aligned(views: dict[str, Faces]) -> dict[str, NDArray[np.int64]]:
    """For each view the rows, in the first view's order, of the ids that all views have."""
    common = set.intersection(*(set(one.ids.tolist()) for one in views.values()))
    if not common:
        raise UnfaceError(f"{next(iter(views.values())).source}: no row has all of {', '.join(views)}")
    rows = {}
    first = next(iter(views.values()))
    order = [name for name in first.ids.tolist() if name in common]
    for view, faces in views.items():
        place = {name: row for row, name in enumerate(faces.ids.tolist())}
        rows[view] = np.array([place[name] for name in order], np.int64)
    return rows


def _digests(faces: Faces) -> Iterator[bytes]:
    for block in faces.vectors.blocks(16_384):
        for row in np.ascontiguousarray(block, "<f4"):
            yield hashlib.blake2b(row.data, digest_size=16).digest()
