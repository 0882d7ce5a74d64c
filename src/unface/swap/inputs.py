"""What an attribute swap is given: rows and identities for each role, a label for each row, checked once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError

RowsOf = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Rows of the vectors that belong to a role, and the identity of each of them."""

_IDENTITIES_OF_EACH_LABEL = 2


@dataclass(frozen=True, eq=False)
class Labelled:
    """The rows of a role whose label is known: unit vectors (n, d), identity codes 0 … m − 1, labels 0 or 1."""

    vectors: NDArray[np.float32]
    identities: NDArray[np.int64]
    labels: NDArray[np.int64]

    def where(self, mask: NDArray[np.bool_]) -> "Labelled":
        """Some of the rows, coded anew."""
        return Labelled(self.vectors[mask], _coded(self.identities[mask]), self.labels[mask])

    @property
    def count(self) -> int:
        """How many identities."""
        return int(self.identities.max()) + 1


@dataclass(frozen=True, eq=False)
class LabelledRoles:
    """The labelled rows of each role, and all rows of calibrate: thresholds need no label."""

    train: Labelled
    calibrate: Labelled
    test: Labelled
    impostors: tuple[NDArray[np.float32], NDArray[np.int64]]


def labelled_roles(
    vectors: NDArray[np.float32], train: RowsOf, calibrate: RowsOf, test: RowsOf, attribute: ArrayLike
) -> LabelledRoles:
    """Vectors and labels by role; what cannot be measured is refused here."""
    labels = np.asarray(attribute)
    if vectors.ndim != 2 or labels.shape != (len(vectors),):
        raise UnfaceError(
            f"swap: vectors of shape {vectors.shape} and an attribute of shape {labels.shape}; "
            "expected (n, d) vectors and one label for each"
        )
    if not np.isin(labels, (-1, 0, 1)).all():
        odd = labels[~np.isin(labels, (-1, 0, 1))][0]
        raise UnfaceError(f"swap: the attribute has the value {odd}; expected 0 or 1, and -1 where it is unknown")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    unit = np.abs(lengths - 1) < 1e-3
    if not unit.all():
        row = int(np.argmin(unit))
        raise UnfaceError(f"swap: vector {row} has length {lengths[row]:g}; expected 1, normalise it or drop it")
    roles = {"train": train, "calibrate": calibrate, "test": test}
    _require_apart(roles, len(vectors))
    labelled = {name: _labelled(name, vectors, role, labels) for name, role in roles.items()}
    rows, identities = calibrate
    return LabelledRoles(**labelled, impostors=(vectors[rows], _coded(identities)))


def _require_apart(roles: dict[str, RowsOf], count: int) -> None:
    role_of = np.full(count, "", dtype=object)
    for name, (rows, identities) in roles.items():
        if rows.shape != identities.shape:
            raise UnfaceError(f"swap: {name} has {rows.size} rows and {identities.size} identities; give one for each")
        outside = rows[(rows < 0) | (rows >= count)]
        if len(outside):
            raise UnfaceError(f"swap: {name} names row {outside[0]}; there are {count} vectors, counted from 0")
        taken = rows[role_of[rows] != ""]
        if len(taken):
            raise UnfaceError(f"swap: row {taken[0]} is in {role_of[taken[0]]} and in {name}; one role for each row")
        role_of[rows] = name


def _labelled(name: str, vectors: NDArray[np.float32], role: RowsOf, labels: NDArray[np.generic]) -> Labelled:
    rows, identities = role
    known = labels[rows].astype(np.int64) >= 0
    codes = labels[rows][known].astype(np.int64)
    for label in (0, 1):
        people = len(np.unique(identities[known][codes == label]))
        if people < _IDENTITIES_OF_EACH_LABEL:
            raise UnfaceError(
                f"swap: {people} {name} identities have the attribute {label}; "
                f"at least {_IDENTITIES_OF_EACH_LABEL} must have it and as many the other value"
            )
    return Labelled(vectors[rows[known]], _coded(identities[known]), codes)


def _coded(identities: NDArray[np.integer]) -> NDArray[np.int64]:
    return np.asarray(np.unique(identities, return_inverse=True)[1], np.int64)
