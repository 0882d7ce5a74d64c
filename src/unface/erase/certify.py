"""How much identity a projection leaves in people it was not fitted on."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import ndtri

from unface.data import EmbeddingSet
from unface.erase.projection import Projection
from unface.errors import UnfaceError
from unface.linear import ShrunkCovariance
from unface.metrics import Replicates, Scheme, identity_weights
from unface.moments import class_moments
from unface.result.numbers import Certificate, Estimate
from unface.seeds import stream
from unface.threads import one_blas_thread

_REPLICATES = 2000
# Of the within-class covariance towards its mean variance, where the most telling direction is looked for: erased
# directions have no variance at all, and few images leave others without. Other people than those say which is best.
_SHRINKAGES = (0.02, 0.1, 0.3, 0.9)
_LEAST_IDENTITIES = 4
# Of the vectors' own energy: less than this varies by rounding alone.
_NOTHING = 1e-12


def certificate(
    projection: Projection,
    X: ArrayLike,
    y: ArrayLike,
    *,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Certificate:
    """Measure on vectors X (n, d) of identities y that took no part in the fit, which the caller must see to.

    The most telling direction is looked for among ``train``, vectors and identities of further people; without them in
    each half of the people for the other half. Identities with one image are left out: they say nothing of how one
    person varies.
    """
    people = _with_several_images(projection, X, y)
    usable = len(people.names)
    if usable < _LEAST_IDENTITIES:
        raise UnfaceError(f"certificate: {usable} identities with two images; at least {_LEAST_IDENTITIES} are needed")
    learned = None if train is None else _with_several_images(projection, *train)
    if learned is not None and len(learned.names) < _LEAST_IDENTITIES:
        learned = None
    count = len(people.names)
    weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, count, _REPLICATES, seed, "certificate")
    before = _spread(people.vectors, people.identities)
    if not before.between.mean() > 0:
        raise UnfaceError("certificate: these identities do not differ even before erasure; nothing to certify")
    # In units of the vectors themselves, without the weights that a keeper gives to what it keeps.
    plain = projection if projection.kept is None else replace(projection, kept=None, keep_dimension=False)
    after = _spread(plain.apply_linear(people.vectors), people.identities)
    with one_blas_thread():
        fisher = [
            _along_the_most_telling(form, people, learned, seed) for form in (_given(projection), projection.apply)
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


def _with_several_images(projection: Projection, X: ArrayLike, y: ArrayLike) -> EmbeddingSet:
    people = EmbeddingSet.from_arrays(X, y, source="certificate")
    several = np.bincount(people.identities) >= 2
    people = people.take(several[people.identities])
    return people.unit() if projection.space.normalised else people


def _given(projection: Projection) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Vectors before erasure, as long as those after it."""

    def scaled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if not projection.normalise:
            return vectors
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        unit: NDArray[np.float32] = np.divide(vectors, lengths[:, None], dtype=np.float64).astype(np.float32)
        return unit

    return scaled


def _along_the_most_telling(
    form: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    people: EmbeddingSet,
    learned: EmbeddingSet | None,
    seed: int,
) -> _Spread:
    """Spread of each identity along the most telling direction of other people."""
    vectors, identities, count = form(people.vectors), people.identities, len(people.names)
    if learned is not None:
        direction = _telling_direction(form(learned.vectors), learned.identities, seed)
        return _spread((vectors.astype(np.float64) @ direction)[:, None], identities)
    first = stream(seed, "certificate halves").permutation(count) < count // 2
    between, within = np.zeros(count), np.zeros(count)
    for half in (first, ~first):
        chosen = half[identities]
        direction = _telling_direction(vectors[chosen], np.unique(identities[chosen], return_inverse=True)[1], seed)
        along = vectors[~chosen].astype(np.float64) @ direction
        spread = _spread(along[:, None], np.unique(identities[~chosen], return_inverse=True)[1])
        between[~half], within[~half] = spread.between, spread.within
    return _Spread(between, within)


def _telling_direction(vectors: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """The direction of the largest Fisher ratio on these identities; shrunk as is best for those of them left out."""
    people = int(codes.max()) + 1
    shrinkage = _SHRINKAGES[1]
    if people >= 2 * _LEAST_IDENTITIES:
        inner = stream(seed, "certificate shrinkage").permutation(people) < people // 2
        ratios = np.zeros(len(_SHRINKAGES))
        for half in (inner, ~inner):
            chosen = half[codes]
            found = _directions(vectors[chosen], np.unique(codes[chosen], return_inverse=True)[1], _SHRINKAGES)
            along = vectors[~chosen].astype(np.float64) @ found
            left = np.unique(codes[~chosen], return_inverse=True)[1]
            for at in range(len(_SHRINKAGES)):
                spread = _spread(along[:, at : at + 1], left)
                ratios[at] += spread.between.sum() / max(float(spread.within.sum()), np.finfo(float).tiny)
        shrinkage = _SHRINKAGES[int(np.argmax(ratios))]
    return _directions(vectors, codes, (shrinkage,))[:, 0]


def _directions(
    vectors: NDArray[np.float32], codes: NDArray[np.int64], shrinkages: tuple[float, ...]
) -> NDArray[np.float64]:
    """(d, s): for each shrinkage the direction of the largest ratio of between- to shrunk within-class variance.

    Beyond the span of fewer vectors than dimensions no means differ, so it lies in there: n³ and not d³.
    """
    rows, dim = vectors.shape
    span = None if rows >= dim else np.linalg.qr(vectors.T.astype(np.float64))[0]
    moments = class_moments(vectors if span is None else vectors @ span, codes)
    within = ShrunkCovariance.of(moments.within_covariance(), 0.0, dim)
    if not within.level > _NOTHING * float(np.trace(moments.scatter)) / (rows * dim):
        return np.zeros((dim, len(shrinkages)))
    centred = (moments.means - moments.means.mean(axis=0)) @ within.axes
    found = np.zeros((len(within.values), len(shrinkages)))
    for at, shrinkage in enumerate(shrinkages):
        deviations = np.sqrt(within.variances(shrinkage))
        whitened = centred / deviations
        wide = len(whitened) < whitened.shape[1]
        gram = whitened @ whitened.T if wide else whitened.T @ whitened
        top = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])[1][:, 0]
        found[:, at] = within.axes @ ((whitened.T @ top if wide else top) / deviations)
    return found if span is None else span @ found


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
