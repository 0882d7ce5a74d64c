"""Linear probe: ridge regression onto classes, in closed form from class sums and scatter."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unface.linear import RidgeFit
from unface.moments import ClassMoments, MomentStream
from unface.threads import one_blas_thread, parallel_map

STRENGTHS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""What α may be, in units of the centred scatter's mean over dimensions; of equally good ones the strongest wins."""

_ROWS_AT_ONCE = 1024


def predict_classes(
    train: NDArray[np.float32], classes: NDArray[np.int64], held: NDArray[np.bool_], test: NDArray[np.float32]
) -> NDArray[np.int64]:
    """The class of each test row; α is chosen on the held train rows, then all train rows are fitted.

    Classes are 0 … m − 1, each with a row that is not held.
    """
    # Class by class, because a stream numbers classes as they appear.
    order = np.argsort(classes, kind="stable")
    fitted, kept = order[~held[order]], order[held[order]]
    seen = MomentStream(train.shape[1], scatter=True)
    seen.add(train[fitted], classes[fitted])
    right = fit_ridge(seen.moments()).predict(train[kept], STRENGTHS) == classes[kept]
    strength = STRENGTHS[int(np.argmax(np.count_nonzero(right, axis=1)))]
    seen.add(train[kept], classes[kept])
    predicted: NDArray[np.int64] = fit_ridge(seen.moments()).predict(test, (strength,))[0]
    return predicted


@dataclass(frozen=True, eq=False)
class Ridge:
    """Scores are (x − mean) W + prior with W = (S + αI)⁻¹ XᵀY: S, the centred scatter, decomposed for every α."""

    mean: NDArray[np.float64]  # (d,)
    fit: RidgeFit
    prior: NDArray[np.float64]  # (m,)
    scale: float

    def predict(self, vectors: NDArray[np.float32], strengths: tuple[float, ...]) -> NDArray[np.int64]:
        """(strengths, n) classes of the vectors; of equal scores the first class."""
        work = partial(self._predict_block, vectors, strengths)
        parts = parallel_map(work, range(0, len(vectors), _ROWS_AT_ONCE))
        return np.concatenate([np.empty((len(strengths), 0), np.int64), *parts], axis=1)

    def _predict_block(
        self, vectors: NDArray[np.float32], strengths: tuple[float, ...], start: int
    ) -> NDArray[np.int64]:
        along = (vectors[start : start + _ROWS_AT_ONCE] - self.mean) @ self.fit.basis
        scores = (along @ self.fit.weights(strength * self.scale) + self.prior for strength in strengths)
        return np.array([score.argmax(axis=1) for score in scores])


def fit_ridge(moments: ClassMoments) -> Ridge:
    """From moments alone: XᵀY of centred vectors and one-hot classes is made of class sums."""
    count, mean = float(moments.counts.sum()), moments.mean()
    with one_blas_thread():
        fit = RidgeFit.of(
            moments.scatter - count * np.outer(mean, mean), (moments.sums - moments.counts[:, None] * mean).T
        )
    # Where all vectors are the same there is no scatter, and nothing for α to weigh against.
    scale = float(fit.energy.mean()) or 1.0
    return Ridge(mean, fit, moments.counts / count, scale)
