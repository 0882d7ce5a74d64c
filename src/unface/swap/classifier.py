"""The linear classifier of a binary attribute: linear discriminants, closed form, shrinkage chosen on calibrate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.moments import class_moments
from unface.swap.given import Labelled

SHRINKAGES = (0.05, 0.2, 0.5, 0.9)


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


def fit_classifier(train: Labelled, calibrate: Labelled) -> AttributeClassifier:
    """normal = Σ⁻¹(μ₁ − μ₀) on train; the shrinkage of Σ that reads both labels of calibrate best, on average.

    Pictures of one person mostly share a label, so people outside of train must tell how much to shrink.
    """
    moments = class_moments(train.vectors, train.labels)
    values, axes = np.linalg.eigh(moments.within_covariance())
    values = np.maximum(values, 0)
    # Labels inside of which nothing varies cannot be whitened; a trace of the mean energy keeps that finite.
    energy = np.trace(moments.scatter) / (moments.counts.sum() * len(values))
    level = max(float(values.mean()), 1e-12 * energy)
    zero, one = moments.means
    along = axes.T @ (one - zero)

    def fitted(shrinkage: float) -> AttributeClassifier:
        normal = axes @ (along / ((1 - shrinkage) * values + shrinkage * level))
        return AttributeClassifier(normal, float(normal @ (zero + one)) / 2, shrinkage)

    return max(map(fitted, SHRINKAGES), key=lambda found: _balanced_accuracy(found, calibrate))


def _balanced_accuracy(classifier: AttributeClassifier, people: Labelled) -> float:
    right = classifier.predict(people.vectors) == people.labels
    return float(right[people.labels == 0].mean() + right[people.labels == 1].mean()) / 2
