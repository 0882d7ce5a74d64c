"""The face gate: only vectors that look like faces are erased, all others are released as they are."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from unface.errors import UnfaceError
from unface.linear import ShrunkCovariance
from unface.moments import ClassMoments, class_moments
from unface.result.face_gate import LEVEL, GateCertificate, people_needed
from unface.result.numbers import Rate
from unface.result.words import count, percent
from unface.seeds import stream
from unface.threads import one_blas_thread

MISS = 1e-3
"""The usual upper bound of the share of faces that pass unerased."""
_MOST_TAKEN = 0.5
_SPENT = 0.01
_FEWEST_VECTORS, _FEWEST_FACES = 20, 4
# Below the lowest face that must pass. A vector of length one that was rounded to float32 moves less along a direction.
_MARGIN = 1e-6


@dataclass(frozen=True, eq=False)
class Gate:
    """z is taken for a face where weights · z + offset > 0, for z of length one; the weights have length one too."""

    weights: NDArray[np.float64]  # (d,)
    offset: float
    certificate: GateCertificate

    def scores(self, exact: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) of (n, d) unit vectors in float64, or a number for one of them (d,); faces are above 0."""
        scores: NDArray[np.float64] = exact @ self.weights + self.offset
        return scores


def fit_gate(
    faces: ClassMoments,
    others: NDArray[np.float32],
    held: NDArray[np.float32],
    held_identities: NDArray[np.int64],
    *,
    copies: tuple[NDArray[np.float32], NDArray[np.int64]] | None = None,
    miss: float = MISS,
    seed: int = 0,
) -> Gate:
    """Fisher's discriminant between faces and ``others``, with a threshold that ``held`` faces set.

    All vectors are of length one. ``held`` are faces of n people who are not among ``faces``. A person counts by the
    lowest score of their pictures, since pictures of one person are missed together. With j the most misses for which
    the exact binomial bound stays below ``miss``, the threshold lies just below the (j + 1)-th lowest person. The share
    of people with a missed picture then has the distribution Beta(j + 1, n − j) whatever the scores': the bound holds
    although the same people set the threshold, and the share of missed pictures is no larger. With too few people even
    for j = 0 it lies just below the lowest one, or lower where 99 % of the others still lie below it, and the bound
    says what holds then.

    ``copies`` are altered copies (p, d) of held faces with the row of each one's original: a picture then counts as
    missed if it or any copy of it is, so that a copy falls on the same side of the gate as its original.
    """
    _require_usable(len(others), len(held), miss)
    fitted = stream(seed, "gate").permutation(len(others)) < len(others) // 2
    against = class_moments(others[fitted], np.zeros(int(fitted.sum()), np.int64))
    with one_blas_thread():
        weights = _normal(faces, against)
    scores = held.astype(np.float64) @ weights
    if copies is not None:
        np.minimum.at(scores, copies[1], copies[0].astype(np.float64) @ weights)
    codes = np.unique(held_identities, return_inverse=True)[1]
    people = int(codes.max()) + 1
    lowest = np.full(people, np.inf)
    np.minimum.at(lowest, codes, scores)
    misses = _most_misses(people, miss)
    bound = upper_bound(misses, people)
    threshold = float(np.partition(lowest, misses)[misses]) - _MARGIN
    along = others[~fitted].astype(np.float64) @ weights
    if bound > miss:
        # How far below the lowest of a few people the next one lies is unknown; use room that costs little.
        threshold = min(threshold, float(np.quantile(along, 1 - _SPENT)))
    missed = scores <= threshold
    taken = along > threshold
    certificate = GateCertificate(
        asked=miss,
        missed=Rate.counted(int(missed.sum()), len(held)),
        bound=bound,
        people=Rate.counted(int((lowest <= threshold).sum()), people),
        people_bound=bound,
        taken=Rate.counted(int(taken.sum()), len(taken)),
        level=LEVEL,
    )
    if certificate.taken.value > _MOST_TAKEN:
        raise UnfaceError(
            f"gate: {percent(certificate.taken.value)} of the gate set is taken for faces, so the gate would let "
            "almost nothing through; give vectors of pictures without faces"
        )
    return Gate(weights, -threshold, certificate)


def upper_bound(events: int, trials: int, level: float = LEVEL) -> float:
    """Clopper and Pearson's, one-sided: a larger rate gives so few events with a probability below 1 − level."""
    return float(betaincinv(events + 1, trials - events, level)) if events < trials else 1.0


def _normal(faces: ClassMoments, others: ClassMoments) -> NDArray[np.float64]:
    """Of the mean of both covariances, shrunk as if d more samples of mean variance had been seen."""
    dim = faces.sums.shape[1]
    samples = min(int(faces.counts.sum()), int(others.counts.sum()))
    covariance = (faces.total_covariance() + others.total_covariance()) / 2
    within = ShrunkCovariance.of(covariance, (faces.energy + others.energy) / 2)
    normal = within.discriminant(faces.mean() - others.mean(), dim / (dim + samples))
    length = float(np.linalg.norm(normal))
    if not length > 0:
        raise UnfaceError("gate: faces and the gate set have the same mean, so no gate can separate them")
    return normal / length


def _most_misses(held: int, miss: float) -> int:
    """The largest number of misses whose upper bound is at most ``miss``; 0 if there is none. It rises with misses."""
    low, high = 0, max(1, math.ceil(miss * held))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if upper_bound(middle, held) <= miss else (low, middle)
    return low


def _require_usable(others: int, held: int, miss: float) -> None:
    if not 0 < miss < 0.5:
        raise UnfaceError(f"--miss {miss:g}: expected a share of faces above 0 and below 0.5, such as 1e-3")
    if others < _FEWEST_VECTORS:
        raise UnfaceError(f"gate: {count(others, 'vector')} in the gate set; at least {_FEWEST_VECTORS} are needed")
    if held < _FEWEST_FACES:
        raise UnfaceError(
            f"gate: {count(held, 'face')} held out to set its threshold; at least {_FEWEST_FACES} are needed, and "
            f"faces of {people_needed(miss):,} people for a miss rate of at most {percent(miss)}"
        )
