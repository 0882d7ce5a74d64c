"""B*: how much of its background a query has to show before its place counts for more than its face."""

import numpy as np
from numpy.typing import NDArray

from unface.attribute.draws import Draws
from unface.attribute.encoding import Encodings
from unface.attribute.perturb import REVEALED
from unface.attribute.result import BStar, Revealed
from unface.attribute.triplets import Triplets, cosine

# In standard deviations of cos(q, id) between triplets, whole pictures: each space has a scale of its own.
_STEP = 0.1  # a fall within one step of the grid that is still noise
_FLAT = 1.0  # how far a similarity may range and still be about the same


def background_threshold(encodings: Encodings, triplets: Triplets, draws: Draws) -> BStar:
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
    return BStar(
        median=draws.median(smallest_levels(overtaken)),
        crossing=draws.median(overtaking_points(margin)),
        at_zero=draws.share(overtaken[:, 0]),
        at_one=draws.share(overtaken.sum(axis=1) == 0),
        at=tuple(
            Revealed(share, draws.share(overtaken[:, n]), draws.mean(to_context[n]), draws.mean(to_identity[n]))
            for n, share in enumerate(REVEALED)
        ),
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
    found = levels[before] + (levels[after] - levels[before]) * within
    return np.where(overtaken.any(axis=1), found, 1.0)
