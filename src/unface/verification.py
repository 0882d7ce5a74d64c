"""``unface.verify``: every pair of a set of vectors compared, exactly, at any false-accept rate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.fitted import ERASED
from unface.memory import require_further_memory
from unface.metrics import (
    Interval,
    Resolution,
    TarAtFar,
    allowed_accepts,
    effective_trials,
    equal_error,
    just_above,
    resolution,
    tar_at_far,
    wilson,
    zero_bound,
)
from unface.pairs import (
    Pairing,
    Screen,
    cosine_space,
    count_impostors,
    fine_histogram,
    highest_impostors,
    impostors_between,
    l2_space,
    mated_pairs,
    neighbourhood,
    open_screen,
    pair_up,
    ranked_impostor,
)

__all__ = ["TarAtFar", "Verification", "tar_at_far", "verify"]

# Above this many false accepts they are counted instead of listed: 16 bytes each would outgrow the vectors themselves.
_LISTED_AT_MOST = 4_000_000
# How far beside an operating point its slope is read, as a multiple of the rate.
_STEP = 1.5
# For the equal error rate: as they are made, sorted, and beside the thresholds between which it lies.
_BYTES_OF_A_MATED_SCORE = 28


@dataclass(frozen=True, eq=False)
class Verification:
    """All-pairs verification: ``at[far]`` for each rate asked for, and the equal error rate, with their intervals.

    A threshold is set on the people it is judged on. The intervals hold it to be as noisy as other people would make
    it; that no eraser was fitted on the same people is for the caller to see to, and ``notes`` says where one was.
    """

    at: MappingProxyType[float, TarAtFar]
    identities: int
    notes: tuple[str, ...]
    """What to know about the numbers."""
    _pairing: Pairing = field(repr=False)
    _screen: Screen = field(repr=False)

    def interval(self, far: float) -> Interval | None:
        """What other people would give in place of ``at[far]``, at 95 %; None where fewer than three accepts set it.

        To first order in the people (infinitesimal jackknife): one more or less of a person changes the accepts, and
        the false accepts by which the threshold moves along the curve. Three passes over the pairs.
        """
        found = self.at[far]
        if not 0 < found.far < 1 or resolution(found.far, found.impostors) is Resolution.REFUSED:
            return None
        here = self._operating(found.threshold)
        around = [min(found.far * factor, 1.0) for factor in (1 / _STEP, _STEP)]
        low, high = (
            self._operating(threshold) for threshold, _ in _thresholds(self._pairing, around, self._screen, None)
        )
        slope = (high.tar - low.tar) / max(high.far - low.far, np.finfo(float).tiny)
        return _rate_interval(here.tar, here.tar_parts - slope * here.far_parts, found.mated)

    @cached_property
    def eer_interval(self) -> Interval:
        """The same of the equal error rate."""
        eer, scores = self.eer, np.sort(_mated_scores(self._pairing))
        middle = float(np.quantile(scores, eer))
        spread = max(float(np.quantile(scores, min(_STEP * eer, 1.0))) - middle, float(np.finfo(np.float32).eps))
        here, low, high = (self._operating(middle + move) for move in (0.0, -spread, spread))
        # Where a person moves both curves, they meet at a threshold that moves too: by how steep each of them is.
        falling, rising = max(low.far - high.far, 0.0), max(low.tar - high.tar, 0.0)
        share = falling / max(falling + rising, np.finfo(float).tiny)
        parts = (1 - share) * here.far_parts - share * here.tar_parts
        return _rate_interval(eer, parts, self._pairing.mated + self._pairing.impostors)

    def _operating(self, threshold: float) -> "_Operating":
        """Both rates at a threshold, and what each person adds to them."""
        pairing, count = self._pairing, self.identities
        accepted, pairs = np.zeros(count), np.zeros(count)
        for some in mated_pairs(pairing):
            accepted += np.bincount(some.identities, some.scores >= threshold, count)
            pairs += np.bincount(some.identities, minlength=count)
        false = count_impostors(pairing, np.array([threshold]), self._screen)
        sizes = np.bincount(pairing.identities, minlength=count)
        strangers = sizes * (len(pairing.identities) - sizes)
        tar, far = float(accepted.sum() / pairing.mated), float(false.total[0] / pairing.impostors)
        return _Operating(
            tar,
            far,
            (accepted - tar * pairs) / pairing.mated,
            (false.by_identity[:, 0] - far * strangers) / pairing.impostors,
        )

    @cached_property
    def eer(self) -> float:
        """Equal error rate, exact; two more passes over the pairs, so only when asked for."""
        mated = np.sort(_mated_scores(self._pairing))
        histogram = fine_histogram(self._pairing, self._screen)
        far = histogram.at_least_edge() / self._pairing.impostors
        frr = np.searchsorted(mated, histogram.edges) / len(mated)
        crossing = int(np.count_nonzero(far >= frr)) - 1
        low, high = neighbourhood(histogram, crossing, self._screen.margin)
        above, scores, counts = impostors_between(self._pairing, low, high, self._screen)
        inside = mated[(mated >= low) & (mated < high)]
        thresholds = np.unique(np.concatenate([scores, inside, [low, high]]))
        reaching = above + np.append(0, np.cumsum(counts))
        false_accepts = reaching[len(scores) - np.searchsorted(scores[::-1], thresholds)]
        return equal_error(false_accepts / self._pairing.impostors, np.searchsorted(mated, thresholds) / len(mated))


@dataclass(frozen=True, eq=False)
class _Operating:
    """Rates at one threshold, and each person's part in their error."""

    tar: float
    far: float
    tar_parts: NDArray[np.float64]
    far_parts: NDArray[np.float64]


def _rate_interval(rate: float, parts: NDArray[np.float64], pairs: int) -> Interval:
    """Wilson's, at as many independent trials as vary as much; from the people where none or all were accepted."""
    people, level = len(parts), 0.95
    if not 0 < rate < 1:
        bound = zero_bound(people, level)
        return Interval(0.0, bound, level) if rate <= 0 else Interval(1 - bound, 1.0, level)
    variance = people / max(people - 1, 1) * float(parts @ parts)
    interval = wilson(rate * (trials := effective_trials(rate, variance, people, pairs)), trials, level)
    return Interval(min(interval.low, rate), max(interval.high, rate), level)


def verify(
    vectors: ArrayLike,
    identities: ArrayLike,
    far: float | Sequence[float] = (1e-4,),
    score: str = "cosine",
    device: str = "cpu",
    threads: int | None = None,
) -> Verification:
    """Compare all pairs of the (n, d) vectors and report TAR at each false-accept rate.

    ``score`` is ``"cosine"`` or ``"l2"`` (minus the squared distance). n² scores are never held.
    """
    array, codes, names = _checked(vectors, identities)
    fars = [far] if isinstance(far, int | float) else list(far)
    spaces = {"cosine": cosine_space, "l2": l2_space}
    if score not in spaces:
        raise UnfaceError(f"score {score!r} is not known; use 'cosine' or 'l2'")
    pairing = pair_up(spaces[score](array), codes)
    if not pairing.mated or not pairing.impostors:
        raise UnfaceError(
            f"{len(codes)} vectors of {names} distinct identities give {pairing.mated} mated and "
            f"{pairing.impostors} impostor pairs; both are needed"
        )
    screen = open_screen(pairing.space, device)
    thresholds = _thresholds(pairing, fars, screen, threads)
    accepted = np.zeros(len(fars), np.int64)
    for pairs in mated_pairs(pairing):
        for position, (threshold, _) in enumerate(thresholds):
            accepted[position] += np.count_nonzero(pairs.scores >= threshold)
    at = {
        rate: TarAtFar(rate, threshold, int(count), pairing.mated, false_accepts, pairing.impostors)
        for rate, (threshold, false_accepts), count in zip(fars, thresholds, accepted, strict=True)
    }
    return Verification(MappingProxyType(at), names, _notes(array), pairing, screen)


def _notes(array: NDArray[np.floating]) -> tuple[str, ...]:
    """Whether these are erased pictures that an eraser of this process was fitted on."""
    fitted = int(np.count_nonzero(ERASED.among(array))) if ERASED else 0
    if not fitted:
        return ()
    text = f"{fitted:,} of {len(array):,} vectors are pictures that the eraser was fitted on, so every rate is too low"
    return (f"{text}; fit it on some people and verify others",)


def _thresholds(pairing: Pairing, fars: list[float], screen: Screen, threads: int | None) -> list[tuple[float, int]]:
    """(threshold, impostors accepted at it) for each rate."""
    allowed = [allowed_accepts(far, pairing.impostors) for far in fars]
    listed = [count for count in allowed if count < min(_LISTED_AT_MOST, pairing.impostors)]
    tail = highest_impostors(pairing, max(listed) + 1, screen, threads=threads) if listed else None
    found = []
    for count in allowed:
        if count >= pairing.impostors:
            found.append((-np.inf, pairing.impostors))
        elif tail is not None and count < len(tail):
            refused = tail.scores[count]
            found.append((just_above(refused), int(np.searchsorted(-tail.scores, -refused))))
        else:
            value, higher = ranked_impostor(pairing, count, screen, threads=threads)
            found.append((just_above(np.float32(value)), higher))
    return found


def _checked(vectors: ArrayLike, identities: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.int64], int]:
    try:
        array, given = np.asarray(vectors), np.asarray(identities)
        names, codes = np.unique(given, return_inverse=True)
    except ValueError:
        raise UnfaceError("vectors are not one array; every row needs the same length") from None
    except TypeError:
        raise UnfaceError("identities mix kinds that cannot be compared; give all as text or all as numbers") from None
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise UnfaceError(f"vectors must be a numeric (n, d) array, not {array.dtype} of shape {array.shape}")
    if given.shape != (len(array),):
        raise UnfaceError(
            f"{len(array)} vectors but identities of shape {given.shape}; one identity for each vector is needed"
        )
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise UnfaceError(f"vector {int(np.argmin(finite))} has NaN, infinite or too large values for float32; drop it")
    return array, codes.astype(np.int64), len(names)


def _mated_scores(pairing: Pairing) -> NDArray[np.float32]:
    require_further_memory(
        _BYTES_OF_A_MATED_SCORE * pairing.mated,
        f"the equal error rate of {pairing.mated:,} mated pairs",
        "compare fewer pictures of each person",
    )
    return np.concatenate([pairs.scores for pairs in mated_pairs(pairing)])
