"""TAR at a given FAR and its threshold, exactly: ties at the threshold are all rejected. And which FAR is resolved."""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError


@dataclass(frozen=True)
class TarAtFar:
    """True accepts at the threshold that a target false-accept rate allows, as rates and as counts."""

    far: float
    """The target."""
    threshold: float
    accepted: int
    mated: int
    false_accepts: int
    impostors: int

    @property
    def value(self) -> float:
        """The true-accept rate."""
        return self.accepted / self.mated

    @property
    def achieved_far(self) -> float:
        """The false-accept rate at the threshold: at most the target, and what chance would accept of mated pairs."""
        return self.false_accepts / self.impostors


def tar_at_far(mated: ArrayLike, impostor: ArrayLike, far: float) -> TarAtFar:
    """TAR of ready scores (higher means more alike) at the lowest threshold whose FAR is at most ``far``."""
    mated_scores, impostor_scores = ready_scores(mated, "mated"), ready_scores(impostor, "impostor")
    precision = np.result_type(mated_scores, impostor_scores)
    mated_scores, impostor_scores = mated_scores.astype(precision), impostor_scores.astype(precision)
    allowed = allowed_accepts(far, len(impostor_scores))
    threshold = threshold_allowing(impostor_scores, allowed)
    return TarAtFar(
        far=far,
        threshold=threshold,
        accepted=int(np.count_nonzero(mated_scores >= threshold)),
        mated=len(mated_scores),
        false_accepts=int(np.count_nonzero(impostor_scores >= threshold)),
        impostors=len(impostor_scores),
    )


def allowed_accepts(far: float, impostors: int) -> int:
    """⌊far · impostors⌋ with the rate read as the decimal it was written as: 1e-4 of 10,000 is 1, not 0.99…"""
    if not 0 <= far <= 1:
        raise UnfaceError(f"a false-accept rate lies between 0 and 1, not {far:g}")
    return math.floor(Fraction(repr(float(far))) * impostors)


def threshold_allowing(impostor: NDArray[np.floating], allowed: int) -> float:
    """The smallest threshold that at most ``allowed`` of the impostor scores reach."""
    if allowed >= len(impostor):
        return -math.inf
    position = len(impostor) - 1 - allowed
    return just_above(np.partition(impostor, position)[position])


def just_above(score: np.floating) -> float:
    """The smallest threshold that rejects a score, in the score's own precision."""
    return float(np.nextafter(score, np.inf))


def ready_scores(scores: ArrayLike, kind: str) -> NDArray[np.floating]:
    """Scores as a flat float array; refuses none at all and NaN."""
    flat = np.asarray(scores).ravel()
    if flat.dtype.kind in "iub":
        flat = flat.astype(np.float64)
    if flat.dtype.kind != "f":
        raise UnfaceError(f"{kind} scores have dtype {flat.dtype}; numbers are needed")
    if not len(flat):
        raise UnfaceError(f"there are no {kind} scores")
    if not np.isfinite(flat).all():
        worst = int(np.argmin(np.isfinite(flat)))
        raise UnfaceError(f"{kind} score {worst} is {flat[worst]}; drop it or correct it")
    return flat


RESOLVED_ACCEPTS = 30
RESOLVED_PEOPLE = 20
COARSE_ACCEPTS = 3


class Resolution(StrEnum):
    """Resolved from 30 expected false accepts of 20 effective people, coarse from 3, refused below."""

    RESOLVED = "resolved"
    COARSE = "coarse"
    REFUSED = "refused"


def resolution(far: float, impostors: int, people: float = math.inf) -> Resolution:
    """How well ``impostors`` calibrate pairs resolve a false-accept rate.

    ``people`` are the effective people behind those accepted, known only after scoring: pairs of a few look-alikes are
    one piece of evidence, however many they are.
    """
    expected = far * impostors * (1 + 1e-12)
    if expected >= RESOLVED_ACCEPTS and people >= RESOLVED_PEOPLE:
        return Resolution.RESOLVED
    return Resolution.COARSE if expected >= COARSE_ACCEPTS else Resolution.REFUSED


def identities_needed(far: float, pairs_each: float, accepts: int = COARSE_ACCEPTS) -> int:
    """Calibrate identities that give ``accepts`` expected false accepts, ``pairs_each`` image pairs for each two."""
    # m (m − 1) / 2 · pairs_each · far ≥ accepts, with the same slack as above for what is just enough
    return math.ceil((1 + math.sqrt(1 + 8 * accepts / (far * pairs_each * (1 + 1e-12)))) / 2)
