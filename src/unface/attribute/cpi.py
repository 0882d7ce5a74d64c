"""CPI: how often a query prefers another face in its own place to its own face elsewhere, as all faces are blurred."""

import numpy as np
from numpy.typing import NDArray

from unface.attribute.draws import Draws
from unface.attribute.encoding import Encodings
from unface.attribute.perturb import SIGMAS
from unface.attribute.result import Blurred, Cpi, Crossover
from unface.attribute.triplets import Triplets, cosine


def context_preference(encodings: Encodings, triplets: Triplets, draws: Draws) -> Cpi:
    """CPI(σ), ΔCPI and σ* (the ISP paper, eq. 19)."""
    query, reference = encodings.blurred[:, triplets.query], encodings.blurred[:, triplets.reference]
    swapped = encodings.swapped[:, triplets.query]
    to_context = cosine(encodings.vectors, query, swapped)
    preferred = to_context > cosine(encodings.vectors, query, reference)
    curves = np.stack([draws.means(hits.astype(np.float64)) for hits in preferred], axis=1)
    to_donor = cosine(encodings.vectors, swapped[0], encodings.blurred[0, triplets.donor])
    return Cpi(
        at=tuple(Blurred(float(sigma), draws.share(hits)) for sigma, hits in zip(SIGMAS, preferred, strict=True)),
        change=draws.change(preferred[0], preferred[-1]),
        crossover=_crossover(preferred.mean(axis=1), curves, draws),
        donor_nearer=draws.share(to_donor > to_context[0]),
    )


def _crossover(curve: NDArray[np.float64], curves: NDArray[np.float64], draws: Draws) -> Crossover:
    value = float(half_crossings(curve[None])[0])
    drawn = half_crossings(curves)
    crossing = ~np.isnan(drawn)
    return Crossover(
        value=None if np.isnan(value) else value,
        interval=draws.interval(drawn[crossing]) if crossing.any() else None,
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
    found = sigmas[before] + (sigmas[after] - sigmas[before]) * high / span
    return np.where(crossed.any(axis=1), found, np.nan)
