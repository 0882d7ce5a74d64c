"""DET and ROC points of a trial on test identities, from histograms; thresholds themselves never come from here."""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from unface.metrics import equal_error
from unface.pairs import Histogram

_POINTS_PER_DECADE = 12


@dataclass(frozen=True, eq=False)
class Curve:
    """Rates at thresholds in falling order; FAR here is that of the test identities themselves."""

    far: NDArray[np.float64]
    tar: NDArray[np.float64]
    eer: float
    """Equal error rate to the histogram's resolution, however few points are kept."""


def det_curve(mated: list[Histogram], impostors: list[Histogram]) -> Curve:
    """Pool the histograms of all seeds; both lists share their bins."""
    accepted = [reduce(Histogram.add, parts).at_least_edge().astype(np.float64) for parts in (impostors, mated)]
    far, tar = (counts[::-1] / counts[0] for counts in accepted)
    return Curve(far, tar, equal_error(far, 1 - tar))


def thinned(curve: Curve, impostors: int) -> Curve:
    """A few points for each decade of FAR, from one false accept to one half."""
    decades = np.log10(max(impostors, 10))
    wanted = np.logspace(-decades, np.log10(0.5), int(decades * _POINTS_PER_DECADE) + 1)
    # the last point whose FAR is no more than wanted: a point's TAR is never taken from a higher FAR
    positions = np.unique(np.searchsorted(curve.far, wanted * (1 + 1e-12), side="right") - 1)
    positions = positions[positions >= 0]
    positions = positions[curve.far[positions] > 0]
    return Curve(curve.far[positions], curve.tar[positions], curve.eer)
