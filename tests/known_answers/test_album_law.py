"""If this fails, albums are dealt, averaged or compared wrongly: their rates are not those of less noisy pictures.

Pictures are z = μ + ε with μ ~ N(0, σ_b² I_d) and ε ~ N(0, σ_w² I_d). The mean of m pictures has noise σ_w²/m, so with
squared distances TAR(f) = F_d((1 + m σ_b²/σ_w²) F_d⁻¹(f)) for m against m. For a against b pictures mated distances are
(σ_w²/a + σ_w²/b) χ²_d and those of impostors 2σ_b² more. Probes, deals, thresholds and counts are those of an audit.
"""

from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.probe.small import consecutive
from unface.data import make_identities
from unface.pairs import PairSpace, l2_space
from unface.probe import Plan, Probe, Roles, Setting, Support
from unface.probe.album_trial import run_albums
from unface.probe.albums import AlbumSize, Dealt, album_means

DIM, BETWEEN, IMAGES, IDENTITIES, DRAWS = 12, 0.7, 5, 150, 24
FARS = (1e-2, 1e-3)
SIZES = (AlbumSize(1, 1), AlbumSize(2, 2), AlbumSize(2, 3))


@dataclass(frozen=True, eq=False)
class MeanDistance:
    """A probe that learns nothing: squared distances of the albums' means, not normalised."""

    vectors: NDArray[np.float32] | None = None
    name: str = "distance"
    settings: tuple[Setting, ...] = ({},)
    notes: tuple[str, ...] = ()

    def fit(self, support: Support) -> "MeanDistance":
        return self

    def seen(self, setting: Setting, vectors: NDArray[np.float32]) -> "MeanDistance":
        return MeanDistance(vectors)

    def space(self, dealt: Dealt) -> PairSpace:  # the scorer's own space is never asked for
        assert self.vectors is not None
        return l2_space(album_means(self.vectors, dealt))


@pytest.mark.parametrize("size", SIZES, ids=["1 against 1", "2 against 2", "2 against 3"])
def test_tar_of_albums_is_that_of_pictures_with_less_noise(size: AlbumSize) -> None:
    assert np.abs(distance_in_errors(size, law(size.first, size.second))).max() < allowed_errors()


def test_the_law_of_one_picture_more_would_be_noticed() -> None:
    assert np.abs(distance_in_errors(AlbumSize(2, 2), law(2, 3))).max() > allowed_errors()
    assert np.abs(distance_in_errors(AlbumSize(2, 3), law(2, 2))).max() > allowed_errors()


def law(first: int, second: int) -> NDArray[np.float64]:
    chi_square, noise = stats.chi2(DIM), 1 / first + 1 / second
    return np.asarray(chi_square.cdf((1 + 2 * BETWEEN**2 / noise) * chi_square.ppf(FARS)))


def distance_in_errors(size: AlbumSize, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.array([draw[size] for draw in estimates()])
    return np.asarray((found.mean(axis=0) - expected) / (found.std(axis=0, ddof=1) / np.sqrt(DRAWS)))


def allowed_errors() -> float:
    """Student's quantile for one false alarm in a thousand over all rates and sizes."""
    return float(stats.t(DRAWS - 1).ppf(1 - 0.001 / (2 * len(FARS) * len(SIZES))))


@cache
def estimates() -> list[dict[AlbumSize, list[float]]]:
    """TAR at each rate in each redraw of everybody."""
    return [_estimate(draw) for draw in range(DRAWS)]


def _estimate(draw: int) -> dict[AlbumSize, list[float]]:
    people = make_identities(2 * IDENTITIES + 2, IMAGES, DIM, between=BETWEEN, seed=draw)
    roles = Roles(
        consecutive(*[IMAGES] * 2),
        consecutive(*[IMAGES] * IDENTITIES, start=2 * IMAGES),
        consecutive(*[IMAGES] * IDENTITIES, start=(2 + IDENTITIES) * IMAGES),
    )
    plan = Plan(fars=FARS, ks=(1,), seeds=3, seed=draw, threads=1)
    trials = run_albums(people.vectors, roles, [(cast(Probe, MeanDistance()), {})], plan, SIZES)
    return {
        size: [float(np.mean(np.concatenate([part.scores for part in trial.mated]) >= t)) for t in thresholds]
        for (_, size), trial in trials.items()
        for thresholds in [[trial.thresholds[far] for far in FARS]]
    }
