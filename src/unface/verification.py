"""``unface.verify``: every pair of a set of vectors compared, exactly, at any false-accept rate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.memory import require_further_memory
from unface.metrics import TarAtFar, allowed_accepts, equal_error, just_above, tar_at_far
from unface.pairs import (
    Pairing,
    Screen,
    cosine_space,
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
# For the equal error rate: as they are made, sorted, and beside the thresholds between which it lies.
_BYTES_OF_A_MATED_SCORE = 28


@dataclass(frozen=True, eq=False)
class Verification:
    """All-pairs verification: ``at[far]`` for each rate asked for, and the equal error rate."""

    at: MappingProxyType[float, TarAtFar]
    identities: int
    _pairing: Pairing = field(repr=False)
    _screen: Screen = field(repr=False)

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
    return Verification(MappingProxyType(at), names, pairing, screen)


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
