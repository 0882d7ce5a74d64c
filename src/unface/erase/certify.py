"""How much identity a projection leaves in people it was not fitted on."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import ndtri

from unface.data import EmbeddingSet
from unface.erase.projection import Projection
from unface.errors import UnfaceError
from unface.metrics import Replicates, Scheme, identity_weights
from unface.moments import class_moments
from unface.result.numbers import Certificate, Estimate
from unface.seeds import stream
from unface.threads import one_blas_thread

_REPLICATES = 2000
# Of the within-class covariance towards its mean variance, where the most telling direction is looked for: erased
# directions have no variance at all, and few images leave others without.
_SHRINKAGE = 0.1
_LEAST_IDENTITIES = 4
# Of the vectors' own energy: less than this varies by rounding alone.
_NOTHING = 1e-12


def certificate(
    projection: Projection, X: ArrayLike, y: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Certificate:
    """Measure on vectors X (n, d) of identities y that took no part in the fit, which the caller must see to.

    Identities with one image are left out: they say nothing of how one person varies.
    """
    people = EmbeddingSet.from_arrays(X, y, source="certificate")
    several = np.bincount(people.identities) >= 2
    usable = int(several.sum())
    if usable < _LEAST_IDENTITIES:
        raise UnfaceError(f"certificate: {usable} identities with two images; at least {_LEAST_IDENTITIES} are needed")
    people = people.take(several[people.identities])
    if projection.space.normalised:
        people = people.unit()
    count = len(people.names)
    weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, count, _REPLICATES, seed, "certificate")
    before = _spread(people.vectors, people.identities)
    if not before.between.mean() > 0:
        raise UnfaceError("certificate: these identities do not differ even before erasure; nothing to certify")
    # In units of the vectors themselves, without the weights that a keeper gives to what it keeps.
    plain = projection if projection.kept is None else replace(projection, kept=None, keep_dimension=False)
    after = _spread(plain.apply_linear(people.vectors), people.identities)
    first = stream(seed, "certificate halves").permutation(count) < count // 2
    given = people.unit().vectors if projection.normalise else people.vectors
    with one_blas_thread():
        fisher = [
            _cross_fitted(vectors, people.identities, first) for vectors in (given, projection.apply(people.vectors))
        ]
    return Certificate(
        identities=count,
        images=len(people),
        energy_left=_ratio(after.between, before.between, weights, level),
        fisher_before=_ratio(fisher[0].between, fisher[0].within, weights, level),
        fisher_left=_ratio(fisher[1].between, fisher[1].within, weights, level),
    )


@dataclass(frozen=True, eq=False)
class _Spread:
    """What each identity adds to the between- and the within-class variance, (m,) each; both unbiased."""

    between: NDArray[np.float64]
    within: NDArray[np.float64]


def _spread(vectors: NDArray[np.floating], identities: NDArray[np.int64]) -> _Spread:
    exact = vectors.astype(np.float64)
    sizes = np.bincount(identities)
    order = np.argsort(identities, kind="stable")
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(exact[order], starts, axis=0) / sizes[:, None]
    own = np.bincount(identities, weights=((exact - means[identities]) ** 2).sum(axis=1)) / (sizes - 1)
    apart = ((means - means.mean(axis=0)) ** 2).sum(axis=1) * len(sizes) / (len(sizes) - 1)
    # The mean of n images of one person still moves by its own variance / n, which is not identity.
    return _Spread(apart - own / sizes, own)


def _cross_fitted(vectors: NDArray[np.float32], identities: NDArray[np.int64], first: NDArray[np.bool_]) -> _Spread:
    """Spread of each identity along the most telling direction of the half it is not in."""
    between, within = np.zeros(len(first)), np.zeros(len(first))
    for half in (first, ~first):
        chosen = half[identities]
        direction = _telling_direction(vectors[chosen], np.unique(identities[chosen], return_inverse=True)[1])
        along = vectors[~chosen].astype(np.float64) @ direction
        spread = _spread(along[:, None], np.unique(identities[~chosen], return_inverse=True)[1])
        between[~half], within[~half] = spread.between, spread.within
    return _Spread(between, within)


def _telling_direction(vectors: NDArray[np.float32], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The direction of the largest Fisher ratio on these identities, in units of their within-class deviation.

    Beyond the span of fewer vectors than dimensions no means differ, so it lies in there: n³ and not d³.
    """
    rows, dim = vectors.shape
    span = None if rows >= dim else np.linalg.qr(vectors.T.astype(np.float64))[0]
    moments = class_moments(vectors if span is None else vectors @ span, codes)
    covariance = moments.within_covariance()
    variance = float(np.trace(covariance)) / dim
    if not variance > _NOTHING * float(np.trace(moments.scatter)) / (rows * dim):
        return np.zeros(dim)
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * variance * np.eye(len(covariance))
    last = len(covariance) - 1
    between = np.atleast_2d(np.cov(moments.means.T))
    direction: NDArray[np.float64] = eigh(between, shrunk, subset_by_index=[last, last])[1][:, 0]
    return direction if span is None else span @ direction


def _ratio(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64], weights: NDArray[np.float64], level: float
) -> Estimate:
    """Σ numerator / Σ denominator over identities, with an interval over draws of them; noise below 0 counts as 0."""
    total = float(denominator.sum())
    if not total > 0:
        return Estimate(0.0, 0.0, 0.0, level)
    value = float(numerator.sum()) / total
    # First order in the weights, so that a denominator that nearly vanishes in some replicate cannot blow up.
    replicates = Replicates(weights @ (numerator - value * denominator) / total, mirrored=True)
    half = float(ndtri(0.5 + level / 2)) * math.sqrt(replicates.variance())
    return Estimate(max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0), level)
