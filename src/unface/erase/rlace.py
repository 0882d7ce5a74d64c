"""R-LACE (Ravfogel et al. 2022): a linear classifier and a projection that hides identities from it, one against the
other; the projection moves in the fantope, the convex hull of the projections of its rank."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.erase.eraser import Eraser, FitError, Matrix, Removal, require_rank
from unface.seeds import stream
from unface.threads import one_blas_thread

_BATCH = 512
_LEARNING_RATE = 0.02
# Of the classifier for each step of the projection: it must keep up, or there is nothing to hide from.
_CLASSIFIER_STEPS = 5


class RLACE(Eraser):
    """Removes the subspace that a game between an eraser and a classifier of identities settles on.

    max over P in the fantope, min over W, b of the cross-entropy of softmax((I − P) x W + b); then P's leading
    ``rank`` eigenvectors are projected out. The gradients are written out, so no autograd is needed.

    The spectrum holds the eigenvalues of the average P: 1 or 0 where the game has decided, between where not.
    """

    kind: ClassVar[str] = "rlace"

    def __init__(self, rank: int = 192, *, steps: int = 200, seed: int = 0, normalise: bool = True) -> None:
        self.rank = rank
        self.steps = steps
        self.seed = seed
        self.normalise = normalise

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        """As every eraser's."""
        vectors, labels = self._checked_both(X, y if identities is None else identities, reset=True)
        require_rank(self.kind, self.rank, vectors.shape[1])
        known: dict[object, int] = {}
        codes = np.array([known.setdefault(name, len(known)) for name in labels.tolist()])
        if len(known) < 2:
            raise FitError(f"{self.kind}: one identity (1 class) only; at least two are needed")
        if self.rank > len(known) - 1:
            raise FitError(
                f"{self.kind}: rank {self.rank} with {len(known)} identities; expected at most {len(known) - 1}"
            )
        if self.steps < 1:
            raise FitError(f"{self.kind}: {self.steps} steps; expected at least 1")
        centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
        size = float(np.sqrt((centred**2).mean()))
        if not size > 0:
            raise FitError(f"{self.kind}: all vectors are the same; there is nothing to erase")
        with one_blas_thread():
            hidden = self._play(centred / size, codes, len(known))
            values, basis = np.linalg.eigh(hidden)
        return self._keep(Removal(basis[:, ::-1][:, : self.rank], np.clip(values[::-1], 0, 1)))

    def _play(self, vectors: Matrix, codes: NDArray[np.int64], identities: int) -> Matrix:
        """The projection averaged over the second half of the game, as minimax averaging asks."""
        rng = stream(self.seed, "rlace")
        dim = vectors.shape[1]
        classifier = _Classifier(dim, identities)
        hidden, average = np.eye(dim) * self.rank / dim, np.zeros((dim, dim))
        for step in range(self.steps):
            for _ in range(_CLASSIFIER_STEPS):
                batch = rng.integers(len(vectors), size=min(_BATCH, len(vectors)))
                classifier.learn(vectors[batch] - vectors[batch] @ hidden, codes[batch])
            batch = rng.integers(len(vectors), size=min(_BATCH, len(vectors)))
            errors = classifier.errors(vectors[batch] - vectors[batch] @ hidden, codes[batch])
            gradient = -vectors[batch].T @ (errors @ classifier.weights.T)
            gradient += gradient.T
            length = float(np.linalg.norm(gradient))
            if length > 0:
                # As long as the fantope is wide at first, then ever shorter.
                stride = np.sqrt(self.rank) / (1 + 0.1 * step)
                hidden = fantope(hidden + stride * gradient / length, self.rank)
            if step >= self.steps // 2:
                average += hidden / (self.steps - self.steps // 2)
        return average


class _Classifier:
    """Softmax regression by Adam."""

    def __init__(self, dim: int, identities: int) -> None:
        self.weights, self.bias = np.zeros((dim, identities)), np.zeros(identities)
        self._mean, self._square = np.zeros((dim + 1, identities)), np.zeros((dim + 1, identities))
        self._step = 0

    def errors(self, vectors: Matrix, codes: NDArray[np.int64]) -> Matrix:
        """The gradient of the mean cross-entropy by the logits, (n, identities)."""
        logits = vectors @ self.weights + self.bias
        logits -= logits.max(axis=1, keepdims=True)
        errors: Matrix = np.exp(logits)
        errors /= errors.sum(axis=1, keepdims=True)
        errors[np.arange(len(codes)), codes] -= 1
        return errors / len(codes)

    def learn(self, vectors: Matrix, codes: NDArray[np.int64]) -> None:
        self._step += 1
        errors = self.errors(vectors, codes)
        gradient = np.vstack([vectors.T @ errors, errors.sum(axis=0)])
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        mean, square = self._mean / (1 - 0.9**self._step), self._square / (1 - 0.999**self._step)
        change = _LEARNING_RATE * mean / (np.sqrt(square) + 1e-12)
        self.weights -= change[:-1]
        self.bias -= change[-1]


def fantope(matrix: Matrix, rank: int) -> Matrix:
    """The nearest symmetric matrix with eigenvalues in [0, 1] that add up to ``rank`` (Vu et al. 2013, lemma 4.1)."""
    values, vectors = np.linalg.eigh(matrix)
    low, high = values[0] - 1, values[-1]
    for _ in range(60):
        shift = (low + high) / 2
        low, high = (shift, high) if np.clip(values - shift, 0, 1).sum() > rank else (low, shift)
    nearest: Matrix = (vectors * np.clip(values - (low + high) / 2, 0, 1)) @ vectors.T
    return nearest
