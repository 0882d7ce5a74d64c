"""``swap_inference``: moved vectors before the verifier and before the classifier of the attribute, at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.metrics import Replicates, Scheme, identity_weights, rate_interval, tar_replicates, threshold_replicates
from unface.swap.classifier import fit_classifier
from unface.swap.given import Labelled, RowsOf, given
from unface.swap.move import fit_move
from unface.swap.result import Share, Swap, SwapResult
from unface.swap.threshold import Threshold, calibrated
from unface.threads import one_blas_thread

_REPLICATES = 2000


def swap_inference(
    vectors: NDArray[np.float32],
    train: RowsOf,
    calibrate: RowsOf,
    test: RowsOf,
    attribute: ArrayLike,
    *,
    far: float = 1e-3,
    directions: int = 128,
    within: float = 0.9,
    step: float = 1.0,
    seed: int = 0,
    level: float = 0.95,
) -> SwapResult:
    """Move unit vectors (n, d) of test people along what covaries with a binary attribute (the ISP paper, App. H).

    Each role is (rows, identities); the attribute is 0 or 1 for each vector, −1 where unknown: such rows only help to
    set the threshold. The classifier (linear discriminants) and the move are learned on train, the classifier's
    shrinkage and the threshold at ``far`` on calibrate. ``fit_move`` says what is decided by ``within`` and ``step``,
    where the paper is silent. Intervals are over test identities and, through the threshold, calibrate identities.
    """
    _require_numbers(directions, within, step)
    people = given(np.asarray(vectors, np.float32), train, calibrate, test, attribute)
    victims = people.test
    with one_blas_thread():
        classifier = fit_classifier(people.train, people.calibrate)
        move = fit_move(people.train, directions, within, step)
        moved = move.apply(victims.vectors, 1 - victims.labels)
    threshold = calibrated(*people.impostors, far)
    attack = _Attack(
        victims,
        similarity=np.einsum("nd,nd->n", victims.vectors.astype(np.float64), moved).astype(np.float32),
        read=classifier.predict(victims.vectors) == victims.labels,
        flipped=classifier.predict(moved) != victims.labels,
    )
    to_zero, to_one = (attack.where(victims.labels == label) for label in (1, 0))
    return SwapResult(
        both=attack.verdict(threshold, far, seed, level),
        to_zero=to_zero.verdict(threshold, far, seed, level),
        to_one=to_one.verdict(threshold, far, seed, level),
        chance=max(len(to_zero.read), len(to_one.read)) / len(attack.read),
        shrinkage=classifier.shrinkage,
        far=far,
        threshold=threshold.value,
        false_accepts=threshold.false_accepts,
        impostors=threshold.impostors,
        resolution=threshold.resolution,
        directions=move.directions.shape[1],
        left_out=move.left_out,
        within=within,
        step=step,
    )


@dataclass(frozen=True, eq=False)
class _Attack:
    """Victims, how alike each is to its moved self, and what the classifier says of either."""

    victims: Labelled
    similarity: NDArray[np.float32]
    read: NDArray[np.bool_]
    flipped: NDArray[np.bool_]

    def where(self, mask: NDArray[np.bool_]) -> "_Attack":
        return _Attack(self.victims.where(mask), self.similarity[mask], self.read[mask], self.flipped[mask])

    def verdict(self, threshold: Threshold, far: float, seed: int, level: float) -> Swap:
        scheme = Scheme.DOUBLE_OR_NOTHING
        weights = identity_weights(scheme, self.victims.count, _REPLICATES, seed, "test")
        others = identity_weights(scheme, threshold.identities, _REPLICATES, seed, "calibrate")
        thresholds = threshold_replicates(threshold.tail, far, others)

        def share(scores: NDArray[np.float32], bar: float, bars: NDArray[np.float64]) -> Share:
            count = int(np.count_nonzero(scores >= bar))
            replicates = Replicates(tar_replicates(self.victims.identities, scores, bars, weights), mirrored=True)
            interval = rate_interval(count, len(scores), replicates, self.victims.count, level)
            return Share(count, len(scores), interval, replicates)

        yes = np.full(_REPLICATES, 0.5)
        both = np.where(self.flipped, self.similarity, np.float32(-np.inf))
        return Swap(
            identities=self.victims.count,
            read=share(self.read.astype(np.float32), yes[0], yes),
            accept=share(self.similarity, threshold.value, thresholds),
            flip=share(self.flipped.astype(np.float32), yes[0], yes),
            joint=share(both, threshold.value, thresholds),
        )


def _require_numbers(directions: int, within: float, step: float) -> None:
    if directions < 1:
        raise UnfaceError(f"swap: {directions} directions; expected at least 1")
    if not 0 <= within < 1:
        raise UnfaceError(f"swap: within is a share of within-identity variation from 0 to below 1, not {within:g}")
    if not 0 <= step < float("inf"):
        raise UnfaceError(f"swap: a step is a number of mean differences, 0 or more, not {step:g}")
