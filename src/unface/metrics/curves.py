"""ROC and DET points, equal error rate and partial area, from ready scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError
from unface.metrics.rates import ready_scores


@dataclass(frozen=True, eq=False)
class Roc:
    """Rates at each distinct threshold in falling order, starting where nothing is accepted."""

    thresholds: NDArray[np.float64]
    far: NDArray[np.float64]
    tar: NDArray[np.float64]

    @property
    def frr(self) -> NDArray[np.float64]:
        """False-reject rates: with ``far`` the axes of a DET curve."""
        return 1 - self.tar


def roc(mated: ArrayLike, impostor: ArrayLike) -> Roc:
    """Every operating point: accept a score at least the threshold."""
    mated_scores = np.sort(ready_scores(mated, "mated"))
    impostor_scores = np.sort(ready_scores(impostor, "impostor"))
    thresholds = np.unique(np.concatenate([mated_scores, impostor_scores]))[::-1]
    return Roc(
        thresholds=np.concatenate([[np.inf], thresholds]),
        far=np.concatenate([[0.0], _share_at_least(impostor_scores, thresholds)]),
        tar=np.concatenate([[0.0], _share_at_least(mated_scores, thresholds)]),
    )


def eer(mated: ArrayLike, impostor: ArrayLike) -> float:
    """Equal error rate: the mean of FAR and FRR at the threshold where they differ least."""
    points = roc(mated, impostor)
    return equal_error(points.far, points.frr)


def equal_error(far: NDArray[np.float64], frr: NDArray[np.float64]) -> float:
    """The mean of the two rates where they are nearest; of equally near points, the one with the smaller mean."""
    gap = np.abs(far - frr)
    # rates are ratios of counts, so gaps that differ by rounding alone are the same gap
    nearest = np.flatnonzero(gap <= gap.min() + 1e-12)
    return float(((far + frr)[nearest] / 2).min())


def partial_auc(mated: ArrayLike, impostor: ArrayLike, far: float) -> float:
    """Area under the ROC for FAR between 0 and ``far``, divided by ``far`` (the ISP paper, A.4)."""
    if not 0 < far <= 1:
        raise UnfaceError(f"a partial area needs a false-accept rate above 0 and up to 1, not {far:g}")
    points = roc(mated, impostor)
    return mean_tar(points.far, points.tar, far)


def mean_tar(far_points: NDArray[np.float64], tar_points: NDArray[np.float64], far: float) -> float:
    """The mean TAR of a curve, given by its points in rising FAR from 0, over false-accept rates up to ``far``."""
    inside = far_points <= far
    x = np.append(far_points[inside], far)
    y = np.append(tar_points[inside], np.interp(far, far_points, tar_points))
    return float(np.trapezoid(y, x) / far)


def _share_at_least(ascending: NDArray[np.floating], thresholds: NDArray[np.floating]) -> NDArray[np.float64]:
    return (len(ascending) - np.searchsorted(ascending, thresholds, side="left")) / len(ascending)
