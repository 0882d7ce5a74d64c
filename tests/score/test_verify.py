"""If these fail, an interval forgets that its threshold was measured too, or a few look-alikes count as evidence."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.metrics import ImpostorTail, Resolution, tar_at_far
from unface.pairs import Pairing, cosine_space, mated_pairs, pair_up
from unface.score import Draws, Mated, Measured, effective_people, rate_at, thresholds, worst

DIM, PEOPLE, PICTURES, FAR = 8, 40, 3, 1e-2


def pictures(rng: np.random.Generator, people: int) -> Pairing:
    """Of people whose pictures scatter half as far around them as people do around each other."""
    codes = np.repeat(np.arange(people), PICTURES)
    vectors = rng.standard_normal((people, DIM))[codes] + 0.7 * rng.standard_normal((len(codes), DIM))
    return pair_up(cosine_space(vectors.astype(np.float32)), codes)


def mated(pairing: Pairing, people: int) -> Mated:
    parts = list(mated_pairs(pairing))
    codes, scores = (np.concatenate([getattr(part, name) for part in parts]) for name in ("identities", "scores"))
    return Mated(codes, scores, people)


def all_impostors(pairing: Pairing) -> NDArray[np.float32]:
    i, j = np.triu_indices(len(pairing), 1)
    apart = pairing.identities[i] != pairing.identities[j]
    return pairing.space.exact(i[apart], j[apart])


def test_a_threshold_and_its_rate_are_those_of_all_scores() -> None:
    rng = np.random.default_rng(0)
    calibrate, test = pictures(rng, PEOPLE), pictures(rng, 60)
    (known,) = thresholds(calibrate, [FAR])
    wanted = tar_at_far(mated(test, 60).scores, all_impostors(calibrate), FAR)
    assert (known.cosine, known.false_accepts, known.impostors) == (
        wanted.threshold,
        wanted.false_accepts,
        wanted.impostors,
    )
    measured = rate_at([(mated(test, 60), known)], Draws())
    assert (measured.hits, measured.trials, measured.people) == (wanted.accepted, wanted.mated, 60)
    assert measured.interval.low < measured.value < measured.interval.high


def test_intervals_cover_only_if_the_threshold_is_drawn_too() -> None:
    """Nominal 95 % over 200 populations; a threshold taken as known covers about 80 %."""
    everybody = pictures(np.random.default_rng(1), 3000)
    draws, covered = Draws(replicates=400), np.zeros(2)
    for run in range(200):
        rng = np.random.default_rng((2, run))
        calibrate, test = pictures(rng, PEOPLE), mated(pictures(rng, 120), 120)
        (known,) = thresholds(calibrate, [FAR])
        fixed = type(known)(FAR, known.cosine, 1, 0, at(known.cosine))
        for way, threshold in enumerate((known, fixed)):
            interval = rate_at([(test, threshold)], draws).interval
            covered[way] += interval.low <= truth(everybody) <= interval.high
    drawn, taken_as_known = covered / 200
    assert drawn >= 0.92
    assert taken_as_known <= 0.87


def at(cosine: float) -> ImpostorTail:
    """A tail that no draw of people can move: its one pair lies just below the threshold."""
    below = np.nextafter(np.float32(cosine), np.float32(-1))
    nobody = np.zeros(1, np.int64)
    return ImpostorTail(np.array([below]), nobody, nobody + 1, np.full((1, 2), 1e-9), float(below))


_TRUTH: list[float] = []


def truth(everybody: Pairing) -> float:
    if not _TRUTH:
        (known,) = thresholds(everybody, [FAR])
        _TRUTH.append(rate_at([(mated(everybody, 3000), known)], Draws(replicates=10)).value)
    return _TRUTH[0]


@pytest.mark.parametrize(
    ("pairs", "people"),
    [
        ([(0, 1)], 2),
        ([(0, 1), (2, 3)], 4),
        ([(0, 1), (0, 2), (0, 3)], 3),  # (3 + 1 + 1 + 1)² / (9 + 1 + 1 + 1)
        ([(0, 1)] * 100, 2),
    ],
)
def test_effective_people_are_those_whom_the_accepted_pairs_spread_over(
    pairs: Sequence[tuple[int, int]], people: float
) -> None:
    first, second = np.array(pairs).T
    tail = ImpostorTail(np.ones(len(pairs), np.float32), first, second, np.ones((1, 4), np.int64), 0.0)
    assert effective_people(tail, 0.5) == pytest.approx(people)
    assert effective_people(tail, 1.5) == 0


def test_a_rate_that_a_family_of_look_alikes_sets_is_coarse() -> None:
    """Ten people who are one face: their pairs fill the tail however many strangers stand beside them."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(100), PICTURES)
    faces = rng.standard_normal((100, 64))
    faces[:10] = faces[0]
    vectors = (faces[codes] + 0.1 * rng.standard_normal((len(codes), 64))).astype(np.float32)
    (known,) = thresholds(pair_up(cosine_space(vectors), codes), [5e-3])
    assert known.impostors * known.far > 200
    assert 5 < known.people <= 10
    assert known.resolution is Resolution.COARSE


def test_differences_are_paired_and_the_worst_is_chosen_elsewhere() -> None:
    rng = np.random.default_rng(4)
    calibrate, test = pictures(rng, PEOPLE), mated(pictures(rng, 60), 60)
    (known,) = thresholds(calibrate, [FAR])
    measured: Measured = rate_at([(test, known)], Draws())
    change, interval = measured.less(measured)
    assert (change, interval.low, interval.high) == (0, 0, 0)
    assert worst(["cosine", "lda", "plda"], {"cosine": 0.1, "lda": 0.3, "plda": 0.3}.__getitem__) == "lda"


def test_judges_of_the_same_people_count_as_one_share() -> None:
    rng = np.random.default_rng(5)
    judged = [(mated(pictures(rng, 30), 30), thresholds(pictures(rng, PEOPLE), [FAR])[0]) for _ in range(2)]
    both = rate_at(judged, Draws())
    alone = [rate_at([one], Draws()) for one in judged]
    assert (both.hits, both.trials) == tuple(sum(getattr(one, name) for one in alone) for name in ("hits", "trials"))
    assert both.people == 30
    np.testing.assert_allclose(both.replicates.values, np.mean([one.replicates.values for one in alone], axis=0))
