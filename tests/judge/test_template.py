"""If these fail, intervals of what judges accept are too narrow, or templates pass for strangers too often."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.judge.template import (
    chance,
    measured,
    picture_thresholds,
    stranger_thresholds,
    tally,
    unit_rows,
)
from unface.metrics import Resolution
from unface.score import Draws, Threshold

Floats = NDArray[np.float64]
DIM, FAR = 16, 1e-2


def vectors(rng: np.random.Generator, people: int, pictures: int, *, heavy: bool) -> tuple[Floats, NDArray[np.int64]]:
    """Pictures that scatter around their person; ``heavy``: with tails of Student's t of 3."""
    codes = np.repeat(np.arange(people), pictures)
    faces, around = (
        rng.standard_t(3, (rows, DIM)) if heavy else rng.standard_normal((rows, DIM)) for rows in (people, len(codes))
    )
    return faces[codes] + 0.8 * around, codes


def test_a_tally_worked_by_hand() -> None:
    """Two people at 0° and 90°, two pictures each, 10° apart; one template of each person's first picture."""
    degrees = np.radians([0, 10, 90, 100])
    pictures = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    templates = np.radians([4.0, 86.0])
    limits = [Threshold.known(1e-3, float(np.cos(np.radians(one)))) for one in (5, 13, 80)]
    found = tally(
        5 * np.stack([np.cos(templates), np.sin(templates)], axis=1),
        np.array([0, 2]),
        pictures,
        np.array([0, 0, 1, 1]),
        limits,
    )
    assert [found.same.accepts(one.cosine).tolist() for one in limits] == [[1, 1], [1, 1], [1, 1]]
    assert [found.other.accepts(one.cosine).tolist() for one in limits] == [[0, 0], [1, 0], [1, 1]]
    assert (found.stranger.tolist(), found.stranger_of.tolist()) == ([[0, 0], [0, 0], [0, 1]], [2, 2])
    other = measured([found], "other", 1)
    assert other is not None
    assert (other.hits, other.trials, chance([found, found], 2).numerator) == (1, 2, 2)
    assert np.isnan(unit_rows(np.zeros((1, 2)))).all()


def test_people_keep_their_codes_whether_or_not_a_recogniser_sees_them() -> None:
    """Draws of calibrate people are then the same ones for every recogniser."""
    pictures, codes = vectors(np.random.default_rng(0), 40, 3, heavy=False)
    blind = np.where((codes % 5 == 0)[:, None], 0.0, pictures)
    (whole,), (part,) = (picture_thresholds(seen, codes, [FAR]) for seen in (pictures, blind))
    assert whole.tail.images.shape == part.tail.images.shape == (1, 40)
    assert part.impostors == 9 * 32 * 31 // 2
    alone = picture_thresholds(
        pictures[codes % 5 != 0], np.unique(codes[codes % 5 != 0], return_inverse=True)[1], [FAR]
    )
    assert part.cosine == alone[0].cosine
    assert picture_thresholds(np.zeros_like(pictures), codes, [FAR]) == ()


@pytest.mark.parametrize("heavy", [False, True], ids=["gaussian", "heavy tails"])
def test_success_covers_the_truth_only_if_the_threshold_is_drawn_too(heavy: bool) -> None:
    """Nominal 95 % over 200 populations; 30 calibrate people, 39 expected false accepts."""
    covered = np.zeros(2)
    everybody, codes = vectors(np.random.default_rng(1), 2000, 2, heavy=heavy)
    (truth,) = picture_thresholds(everybody, codes, [FAR])
    known = measured([tally(everybody, np.arange(4000), everybody, codes, [truth])], "other", 0, Draws(replicates=2))
    assert known is not None
    for run in range(200):
        rng = np.random.default_rng((2, run))
        limits = picture_thresholds(*vectors(rng, 30, 3, heavy=heavy), [FAR])
        people, whose = vectors(rng, 300, 2, heavy=heavy)
        for way, threshold in enumerate((limits[0], Threshold.known(FAR, limits[0].cosine))):
            judged = tally(people, np.arange(600), people, whose, [threshold])
            found = measured([judged], "other", 0, Draws(replicates=400))
            assert found is not None
            covered[way] += found.interval.low <= known.value <= found.interval.high
    drawn, taken_as_known = covered / 200
    assert drawn >= 0.91
    assert taken_as_known <= 0.88


def test_the_floor_of_a_tail_lies_below_what_other_draws_ask_for() -> None:
    """Listed a few times as long as the rate needs: cutting the list there moves no draw's threshold."""
    templates, codes = vectors(np.random.default_rng(3), 200, 2, heavy=False)
    pictures, _ = vectors(np.random.default_rng(3), 200, 2, heavy=False)
    (kept,) = stranger_thresholds(templates, pictures, codes, [FAR])
    assert len(kept.tail.scores) < kept.impostors
    assert kept.replicates(Draws()).min() > kept.tail.floor
    assert kept.resolution is Resolution.RESOLVED
    assert kept.tail.pairs(np.ones((1, 200)))[0] == pytest.approx(kept.impostors), "as many as were compared"


def stated(rates: Sequence[float]) -> tuple[float, float]:
    """Mean of log-rates as a rate, and three standard errors around it."""
    logs = np.log(rates)
    return float(np.exp(logs.mean())), float(np.exp(3 * logs.std() / np.sqrt(len(logs))))


def test_templates_that_are_less_than_pictures_pass_for_strangers_as_often_as_said() -> None:
    """Templates drawn to the mean: at thresholds of pictures several times as many strangers are accepted."""
    rates = []
    for run in range(40):
        rng = np.random.default_rng((4, run))
        limits, accepted = list[Threshold](), list[float]()
        for people in (120, 200):
            pictures, codes = vectors(rng, people, 2, heavy=False)
            pictures = pictures + 1.0
            templates = 0.3 * pictures + 0.7 * pictures.mean(axis=0)
            if not limits:
                limits = [picture_thresholds(pictures, codes, [FAR])[0]]
                limits += stranger_thresholds(templates, pictures, codes, [FAR])
            else:
                found = tally(templates, np.arange(len(codes)), pictures, codes, limits)
                accepted = (found.stranger.sum(axis=1) / found.stranger_of.sum()).tolist()
        rates.append(accepted)
    of_pictures, of_templates = (stated(each) for each in np.array(rates).T)
    assert of_templates[0] / of_templates[1] <= FAR <= of_templates[0] * of_templates[1]
    assert of_pictures[0] > 2 * FAR
