"""What the attacker is given and learns: a classifier of a binary attribute, and a move that shows the other label.

The move leaves alone what varies between pictures of one person.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.linear import ShrunkCovariance, spectrum
from unface.moments import class_moments

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


Matrix = NDArray[np.float64]

SHRINKAGES = (0.05, 0.2, 0.5, 0.9)
# Of all variance: what an eraser removed has none, and moving there means nothing.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class AttributeClassifier:
    """Says 1 where normal · z > offset. The boundary lies midway between the two label means, however many are each."""

    normal: NDArray[np.float64]
    offset: float
    shrinkage: float
    """Of the covariance inside the labels, towards its mean variance."""

    def predict(self, vectors: NDArray[np.floating]) -> NDArray[np.int64]:
        """Labels 0 or 1 of the (n, d) vectors."""
        return np.asarray(vectors.astype(np.float64) @ self.normal > self.offset, np.int64)

    def balanced_accuracy(self, people: Labelled) -> float:
        """Over both labels alike."""
        right = self.predict(people.vectors) == people.labels
        return float(right[people.labels == 0].mean() + right[people.labels == 1].mean()) / 2


def fit_classifier(train: Labelled, calibrate: Labelled) -> AttributeClassifier:
    """normal = Σ⁻¹(μ₁ − μ₀) on train; the shrinkage of Σ that reads both labels of calibrate best, on average.

    Pictures of one person mostly share a label, so people outside of train must tell how much to shrink.
    """
    moments = class_moments(train.vectors, train.labels)
    within = ShrunkCovariance.of(moments.within_covariance(), moments.energy)
    zero, one = moments.means

    def fitted(shrinkage: float) -> AttributeClassifier:
        normal = within.discriminant(one - zero, shrinkage)
        return AttributeClassifier(normal, float(normal @ (zero + one)) / 2, shrinkage)

    return max(map(fitted, SHRINKAGES), key=lambda classifier: classifier.balanced_accuracy(calibrate))


@dataclass(frozen=True, eq=False)
class Move:
    """z ↦ z ± shift, back to length one: plus towards label 1, minus towards label 0."""

    directions: Matrix
    """(d, k), orthonormal; falling in how much they covary with the label."""
    shift: NDArray[np.float64]
    left_out: int
    """Directions of within-identity variation, which are orthogonal to the others."""

    def apply(self, vectors: NDArray[np.floating], targets: NDArray[np.integer]) -> Matrix:
        """The (n, d) unit vectors moved towards their target labels (n,)."""
        moved: Matrix = vectors.astype(np.float64) + np.where(targets == 1, 1.0, -1.0)[:, None] * self.shift
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        # A vector moved onto the origin has no direction; it stays zero and is like nobody.
        moved /= np.maximum(lengths, np.finfo(float).tiny)
        return moved


def fit_move(train: Labelled, directions: int, within: float, step: float) -> Move:
    """Directions and step of the ISP paper, App. H, as far as it says.

    Within-identity scatter of real people has full rank, so nothing is orthogonal to all of it: the leading principal
    directions that hold the share ``within`` of its variance are left out. In what remains, the principal axes of all
    train vectors are ranked by |covariance with the label| and the first ``directions`` of them kept. The shift is
    ``step`` times the difference of the label means along those: with step 1 an average vector of one label comes to
    lie, in these coordinates, where the average vector of the other label does.
    """
    moments = class_moments(train.vectors, train.identities)
    if len(train.labels) == train.count:
        raise UnfaceError("swap: every train identity has one labelled image; two of some are needed")
    spread, axes = spectrum(moments.within_covariance())
    left_out = _holding(spread[::-1], within)
    free = axes[:, : len(spread) - left_out]
    total = moments.total_covariance()
    variance, principal = np.linalg.eigh(free.T @ total @ free)
    candidates = free @ principal[:, variance > _NEGLIGIBLE * np.trace(total)]
    if not candidates.shape[1]:
        raise UnfaceError(
            f"swap: {left_out} of {len(spread)} directions hold the share {within:g} of within-identity variation and "
            "the others do not vary; give a smaller within"
        )
    zero, one = class_moments(train.vectors, train.labels).means
    along = candidates.T @ (one - zero)
    # For a binary label the covariance is p(1 − p) times the difference of the means.
    kept = np.argsort(-np.abs(along), kind="stable")[:directions]
    return Move(candidates[:, kept], step * (candidates[:, kept] @ along[kept]), left_out)


def _holding(falling: NDArray[np.float64], share: float) -> int:
    """How many of the leading variances it takes to hold a share of their sum; none of nothing."""
    held = np.cumsum(falling)
    return int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))) + 1 if share > 0 and held[-1] > 0 else 0
