"""FII, CPI and B* of one space: cosines of pairs and triplets, with intervals over identities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.attribute.encoding import Encodings
from unface.attribute.pairing import Pairing
from unface.attribute.perturb import REVEALED, SIGMAS
from unface.metrics import Interval, Replicates, Scheme, identity_weights, rate_interval, zero_bound
from unface.result.attribution import (
    BackgroundThreshold,
    BlurLevel,
    ContextPreference,
    Crossover,
    FaceImportance,
    RevealLevel,
)
from unface.result.numbers import Mean, Share

REPLICATES = 2000
_WEIGHTS_AT_ONCE = 4_000_000  # 32 MB
_COSINES_AT_ONCE = 8192
# B*'s similarities vary by these many standard deviations of cos(q, id) between triplets, whole pictures: each space
# has a scale of its own.
_STEP = 0.1  # a fall within one step of the grid that is still noise
_FLAT = 1.0  # how far a similarity may range and still be about the same


def face_importance(
    encodings: Encodings, pairing: Pairing, people: NDArray[np.int64], seed: int, level: float
) -> FaceImportance | None:
    """Δ_face − Δ_bg over pairs (the ISP paper, eq. 17 and 18): does the face or as much background carry similarity?

    ``people`` (canvases,) says whose each canvas is. None where fewer than two identities have a pair.
    """
    ringed = (encodings.ring[pairing.queries] >= 0) & (encodings.ring[pairing.references] >= 0)
    query, reference = pairing.queries[ringed], pairing.references[ringed]
    if len(np.unique(people[query])) < 2:
        return None
    plain, face, ring = (
        cosine(encodings.vectors, rows[query], rows[reference])
        for rows in (encodings.blurred[0], encodings.blurred[-1], encodings.ring)
    )
    draws = Draws.of(people[query], seed, level)
    return FaceImportance(
        index=draws.mean((plain - face) - (plain - ring)),
        face_drop=draws.mean(plain - face),
        background_drop=draws.mean(plain - ring),
        similarity=draws.mean(plain),
    )


@dataclass(frozen=True, eq=False)
class Triplets:
    """Queries whose swap worked, by their canvases (t,)."""

    query: NDArray[np.int64]
    reference: NDArray[np.int64]
    donor: NDArray[np.int64]

    @classmethod
    def of(cls, pairing: Pairing, encodings: Encodings) -> "Triplets":
        """Those that can be compared."""
        worked = encodings.swapped[0, pairing.queries] >= 0
        return cls(pairing.queries[worked], pairing.references[worked], pairing.donors[worked])


def context_preference(encodings: Encodings, triplets: Triplets, draws: "Draws") -> ContextPreference:
    """CPI(σ), ΔCPI and σ* (the ISP paper, eq. 19): another face in the query's place against its own face elsewhere."""
    query, reference = encodings.blurred[:, triplets.query], encodings.blurred[:, triplets.reference]
    swapped = encodings.swapped[:, triplets.query]
    to_context = cosine(encodings.vectors, query, swapped)
    preferred = to_context > cosine(encodings.vectors, query, reference)
    curves = np.stack([draws.means(hits.astype(np.float64)) for hits in preferred], axis=1)
    to_donor = cosine(encodings.vectors, swapped[0], encodings.blurred[0, triplets.donor])
    return ContextPreference(
        at=[
            BlurLevel(sigma=float(sigma), preferred=draws.share(hits))
            for sigma, hits in zip(SIGMAS, preferred, strict=True)
        ],
        change=draws.change(preferred[0], preferred[-1]),
        crossover=_crossover(preferred.mean(axis=1), curves, draws),
        donor_nearer=draws.share(to_donor > to_context[0]),
    )


def _crossover(curve: NDArray[np.float64], curves: NDArray[np.float64], draws: "Draws") -> Crossover:
    value = float(half_crossings(curve[None])[0])
    drawn = half_crossings(curves)
    crossing = ~np.isnan(drawn)
    interval = draws.interval(drawn[crossing]) if crossing.any() else None
    return Crossover(
        value=None if np.isnan(value) else value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        crossing=float(crossing.mean()),
    )


def half_crossings(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): the least σ at which each of (n, levels) curves is ½, straight between levels; NaN where none is."""
    sigmas = np.array(SIGMAS, dtype=np.float64)
    above = (curves - 0.5) * np.where(curves[:, :1] >= 0.5, 1.0, -1.0)  # each curve begins at or above 0
    crossed = above <= 0
    after = crossed.argmax(axis=1)
    before = np.maximum(after - 1, 0)
    row = np.arange(len(curves))
    high, low = above[row, before], above[row, after]
    span = np.where(high > low, high - low, 1.0)
    crossings = sigmas[before] + (sigmas[after] - sigmas[before]) * high / span
    return np.where(crossed.any(axis=1), crossings, np.nan)


def background_threshold(encodings: Encodings, triplets: Triplets, draws: "Draws") -> BackgroundThreshold:
    """The smallest B with cos(z_q,B, z_ctx) > cos(z_q,B, z_id) (the ISP paper, eq. 20); both references are whole."""
    query = encodings.revealed[:, triplets.query]
    context, identity = encodings.swapped[0, triplets.query], encodings.blurred[0, triplets.reference]
    to_context, to_identity = (
        cosine(encodings.vectors, query, np.broadcast_to(rows, query.shape)) for rows in (context, identity)
    )
    margin = (to_context - to_identity).T
    overtaken = margin > 0
    scale = float(to_identity[-1].std())
    rising = np.diff(to_context, axis=0).min(axis=0) >= -_STEP * scale
    flat = np.ptp(to_identity, axis=0) <= _FLAT * scale
    return BackgroundThreshold(
        median=draws.median(smallest_levels(overtaken)),
        crossing=draws.median(overtaking_points(margin)),
        at_zero=draws.share(overtaken[:, 0]),
        at_one=draws.share(overtaken.sum(axis=1) == 0),
        at=[
            RevealLevel(
                share=share,
                preferred=draws.share(overtaken[:, n]),
                to_context=draws.mean(to_context[n]),
                to_identity=draws.mean(to_identity[n]),
            )
            for n, share in enumerate(REVEALED)
        ],
        rising=draws.share(rising),
        flat=draws.share(flat),
    )


def smallest_levels(overtaken: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,): the first B of the grid at which (n, levels) says so; 1 where none does."""
    levels = np.array(REVEALED)
    return np.where(overtaken.any(axis=1), levels[overtaken.argmax(axis=1)], 1.0)


def overtaking_points(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): where the margin first rises above 0, straight between levels; 0 and 1 where it is censored there."""
    levels = np.array(REVEALED)
    overtaken = margin > 0
    after = overtaken.argmax(axis=1)
    before = np.maximum(after - 1, 0)
    row = np.arange(len(margin))
    low, high = margin[row, before], margin[row, after]
    within = np.divide(-low, high - low, where=after > 0, out=np.zeros(len(margin)))
    points = levels[before] + (levels[after] - levels[before]) * within
    return np.where(overtaken.any(axis=1), points, 1.0)


def cosine(vectors: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of rows of the vectors, index arrays of one shape: exactly 1 of a vector with itself, 0 with a vector of zeros.

    a·b / √(a·a · b·b) and not the product of two unit vectors, whose lengths are rounded.
    """
    left, right = first.reshape(-1), second.reshape(-1)
    cosines = np.empty(len(left))
    for start in range(0, len(left), _COSINES_AT_ONCE):
        part = slice(start, start + _COSINES_AT_ONCE)
        a, b = vectors[left[part]].astype(np.float64), vectors[right[part]].astype(np.float64)
        ab, aa, bb = (np.einsum("nd,nd->n", x, y) for x, y in ((a, b), (a, a), (b, b)))
        length = np.sqrt(aa * bb)
        cosines[part] = np.divide(ab, length, where=length > 0, out=np.zeros_like(ab))
    return cosines.reshape(first.shape)


@dataclass(frozen=True, eq=False)
class Draws:
    """Percentile bootstrap (the ISP paper, App. D.3) over the identities of n pairs or triplets.

    One set of draws serves every number of a set of pairs, so that differences are paired.
    """

    codes: NDArray[np.int64]
    """(n,): which column of the weights each pair belongs to."""
    weights: NDArray[np.float64]
    level: float

    @classmethod
    def of(cls, identities: NDArray[np.int64], seed: int, level: float) -> "Draws":
        """Draws for pairs (n,) of these identities, of which there are at least two."""
        names, codes = np.unique(identities, return_inverse=True)
        return cls(codes, identity_weights(Scheme.MULTINOMIAL, len(names), REPLICATES, seed, "attribute"), level)

    @property
    def identities(self) -> int:
        """How many there are."""
        return int(self.weights.shape[1])

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(replicates,) of the mean over pairs."""
        count = self.identities
        sums = np.bincount(self.codes, values, minlength=count)
        return np.asarray((self.weights @ sums) / (self.weights @ np.bincount(self.codes, minlength=count)))

    def mean(self, values: NDArray[np.float64]) -> Mean:
        """Of one value for each pair."""
        return self._within(float(values.mean()), self.interval(self.means(values)))

    def share(self, hits: NDArray[np.bool_]) -> Share:
        """Of pairs that are hits; where none or all are, the interval comes from the number of identities."""
        replicates = Replicates(self.means(hits.astype(np.float64)), mirrored=False)
        count = int(np.count_nonzero(hits))
        interval = rate_interval(count, len(hits), replicates, self.identities, self.level)
        return Share.counted(count, len(hits), interval, self.identities)

    def change(self, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Mean:
        """How much larger the share of the second is; where no pair changed, the next identity's still may."""
        difference = after.astype(np.float64) - before
        if difference.any():
            return self.mean(difference)
        bound = zero_bound(self.identities, self.level)
        return self._within(0.0, Interval(-bound, bound, self.level))

    def median(self, values: NDArray[np.float64]) -> Mean:
        """Of one value for each pair; between the two in the middle where their number is even."""
        order = np.argsort(values, kind="stable")
        ordered, columns = values[order], self.codes[order]
        step = max(_WEIGHTS_AT_ONCE // len(values), 1)
        parts = [
            _medians(ordered, self.weights[start : start + step, columns])
            for start in range(0, len(self.weights), step)
        ]
        middle = _medians(ordered, np.ones((1, len(values))))
        return self._within(float(middle[0]), self.interval(np.concatenate(parts)))

    def interval(self, replicates: NDArray[np.float64]) -> Interval:
        """Percentiles."""
        low, high = np.quantile(replicates, [0.5 - self.level / 2, 0.5 + self.level / 2])
        return Interval(float(low), float(high), self.level)

    def _within(self, value: float, interval: Interval) -> Mean:
        return Mean(value, interval.low, interval.high, interval.level, len(self.codes), self.identities)


def _medians(ordered: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted medians of ascending values, for each row of whole-number weights."""
    reached = np.cumsum(weights, axis=1)
    half = reached[:, -1:] / 2
    lower, upper = (reached < half).sum(axis=1), (reached <= half).sum(axis=1)
    return np.asarray((ordered[lower] + ordered[upper]) / 2)
