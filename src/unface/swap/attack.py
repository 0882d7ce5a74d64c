"""What the attacker learns: a classifier of a binary attribute, and a move that shows the other label.

The move leaves alone what varies between pictures of one person.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.linear import ShrunkCovariance, spectrum
from unface.moments import class_moments
from unface.swap.inputs import Labelled

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
