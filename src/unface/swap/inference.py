"""``swap_inference``: moved vectors before the verifier and before the classifier of the attribute, at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.metrics import (
    RESOLVED_ACCEPTS,
    ImpostorTail,
    Replicates,
    Resolution,
    Scheme,
    allowed_accepts,
    identities_needed,
    identity_weights,
    just_above,
    rate_interval,
    resolution,
    tar_replicates,
    threshold_replicates,
)
from unface.pairs import cosine_space, highest_impostors, open_screen, pair_up
from unface.result.numbers import Share
from unface.score import effective_people
from unface.swap.attack import Labelled, RowsOf, fit_classifier, fit_move, labelled_roles
from unface.threads import one_blas_thread

_REPLICATES = 2000
_SPARE = 5
"""Other draws of identities reach deeper into the impostor scores than the threshold itself."""


@dataclass(frozen=True, eq=False)
class Swap:
    """What came of moving some victims (images of test identities) to the other label."""

    read: Share
    """The classifier says the true label before the move: what is not read counts as flipped without any move."""
    accept: Share
    """cos(z, z̃) reaches the threshold: still the same person to a verifier."""
    flip: Share
    """The classifier says the other label after the move."""
    joint: Share
    """Both at once: the attack succeeded."""
    replicates: Mapping[str, Replicates] = field(repr=False)
    """Of each share, by its name. The same people are always drawn alike: differences of two results are paired."""


@dataclass(frozen=True, eq=False)
class SwapResult:
    """The attack on all victims, and by the label they were moved to."""

    both: Swap
    to_zero: Swap
    to_one: Swap
    chance: float
    """Accuracy of always naming the label that most victims have; the classifier's is ``both.read``."""
    shrinkage: float
    """Of the classifier's covariance."""
    far: float
    threshold: float
    false_accepts: int
    impostors: int
    resolution: Resolution
    directions: int
    """Used: those asked for, or as many as there are beside within-identity variation."""
    left_out: int
    """Directions of within-identity variation; they hold the share ``within`` of it."""
    within: float
    step: float

    @property
    def trusted(self) -> bool:
        """Whether there is an attribute to swap: both labels are read better than by chance, at the lower ends too."""
        return self.to_zero.read.low + self.to_one.read.low > 1


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
    if directions < 1:
        raise UnfaceError(f"swap: {directions} directions; expected at least 1")
    if not 0 <= within < 1:
        raise UnfaceError(f"swap: within is a share of within-identity variation from 0 to below 1, not {within:g}")
    if not 0 <= step < float("inf"):
        raise UnfaceError(f"swap: a step is a number of mean differences, 0 or more, not {step:g}")
    people = labelled_roles(np.asarray(vectors, np.float32), train, calibrate, test, attribute)
    victims = people.test
    with one_blas_thread():
        classifier = fit_classifier(people.train, people.calibrate)
        move = fit_move(people.train, directions, within, step)
        moved = move.apply(victims.vectors, 1 - victims.labels)
    threshold = _calibrated(*people.impostors, far)
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
class _Threshold:
    """Accept a cosine of at least ``value``; the tail tells what other calibrate identities would have set."""

    value: float
    false_accepts: int
    impostors: int
    resolution: Resolution
    tail: ImpostorTail
    identities: int


def _calibrated(vectors: NDArray[np.float32], identities: NDArray[np.int64], far: float) -> _Threshold:
    """The smallest threshold whose false-accept rate over all impostor pairs is at most ``far``."""
    pairing = pair_up(cosine_space(vectors), identities)
    people = len(pairing.sizes)
    how = _resolution(far, pairing.impostors, people)
    allowed = allowed_accepts(far, pairing.impostors)
    tail = highest_impostors(pairing, _SPARE * allowed + 300, open_screen(pairing.space))
    # With at least three accepts allowed of fewer pairs than all, there is a score to refuse.
    refused = tail.scores[allowed]
    listed = ImpostorTail(tail.scores, tail.first, tail.second, pairing.sizes[None], tail.floor)
    if how is Resolution.RESOLVED:
        how = resolution(far, pairing.impostors, effective_people(listed, just_above(refused)))
    return _Threshold(
        value=just_above(refused),
        false_accepts=int(np.searchsorted(-tail.scores, -refused)),
        impostors=pairing.impostors,
        resolution=how,
        tail=listed,
        identities=people,
    )


def _resolution(far: float, impostors: int, people: int) -> Resolution:
    if not 0 < far < 1:
        raise UnfaceError(f"swap: a false-accept rate lies between 0 and 1, not {far:g}")
    pairs = people * (people - 1) // 2
    how = resolution(far, impostors)
    if how is Resolution.REFUSED:
        needed = identities_needed(far, impostors / pairs) if pairs else 2
        raise UnfaceError(
            f"swap: {people} calibrate identities give {impostors} impostor pairs, too few for a false-accept rate of "
            f"{far:g}; about {needed} identities are needed, or a higher rate"
        )
    # However many pictures, few people resolve nothing.
    return Resolution.COARSE if pairs < RESOLVED_ACCEPTS else how


@dataclass(frozen=True, eq=False)
class _Attack:
    """Victims, how alike each is to its moved self, and what the classifier says of either."""

    victims: Labelled
    similarity: NDArray[np.float32]
    read: NDArray[np.bool_]
    flipped: NDArray[np.bool_]

    def where(self, mask: NDArray[np.bool_]) -> "_Attack":
        return _Attack(self.victims.where(mask), self.similarity[mask], self.read[mask], self.flipped[mask])

    def verdict(self, threshold: _Threshold, far: float, seed: int, level: float) -> Swap:
        scheme = Scheme.DOUBLE_OR_NOTHING
        weights = identity_weights(scheme, self.victims.count, _REPLICATES, seed, "test")
        others = identity_weights(scheme, threshold.identities, _REPLICATES, seed, "calibrate")
        thresholds = threshold_replicates(threshold.tail, far, others)
        yes = np.full(_REPLICATES, 0.5)
        # What is counted, the bar it has to reach, and the bars of other draws of calibrate identities.
        counted = {
            "read": (self.read.astype(np.float32), yes[0], yes),
            "accept": (self.similarity, threshold.value, thresholds),
            "flip": (self.flipped.astype(np.float32), yes[0], yes),
            "joint": (np.where(self.flipped, self.similarity, np.float32(-np.inf)), threshold.value, thresholds),
        }
        replicates = {
            name: Replicates(tar_replicates(self.victims.identities, scores, bars, weights), mirrored=True)
            for name, (scores, _, bars) in counted.items()
        }

        def share(name: str) -> Share:
            scores, bar, _ = counted[name]
            count, people = int(np.count_nonzero(scores >= bar)), self.victims.count
            interval = rate_interval(count, len(scores), replicates[name], people, level)
            return Share.counted(count, len(scores), interval, people)

        return Swap(
            read=share("read"), accept=share("accept"), flip=share("flip"), joint=share("joint"), replicates=replicates
        )
