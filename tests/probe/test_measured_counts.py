"""If these fail, a number is quoted with another one's counts, chance, interval or resampled people."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.probe.small import people, roles_of
from unface.metrics import Scheme, effective_trials, identity_weights, paired_interval, rate_interval
from unface.pairs import Mated
from unface.probe import (
    Bootstrap,
    Measurement,
    Plan,
    Trial,
    difference,
    draw_bootstrap,
    measure,
    pick_probes,
    run_panel,
)
from unface.score import effective_people

PEOPLE = people(48, 6, 6, between=1.2)
ROLES = roles_of(PEOPLE)
FAR = 0.1
PLAN = Plan(fars=(FAR, 0.02), ks=(2,), seeds=3, threads=1)


@cache
def trial() -> Trial:
    return run_panel(PEOPLE.vectors, ROLES, pick_probes(("lda",)), PLAN).trials["lda", 2]


def weights(scheme: Scheme = Scheme.DOUBLE_OR_NOTHING, level: float = 0.95) -> Bootstrap:
    return draw_bootstrap(scheme, ROLES.calibrate.count, ROLES.test.count, 200, 3, level)


def measured() -> Measurement:
    return measure(trial(), FAR, weights(), PLAN)


def test_a_measurement_says_what_it_was_counted_on() -> None:
    found = measured()
    assert (found.probe, found.k, found.far, found.identities) == ("lda", 2, FAR, ROLES.test.count)
    assert found.threshold == trial().thresholds[FAR]
    people = effective_people(trial().calibrate, found.threshold)
    assert (found.resolution, found.needed) == trial().resolved.judged(FAR, people)
    pairs = np.stack([np.bincount(part.identities, minlength=found.identities) for part in trial().mated]).sum(axis=0)
    hits = [
        np.bincount(part.identities[part.scores >= found.threshold], minlength=found.identities)
        for part in trial().mated
    ]
    assert found.over_people == pytest.approx(float(np.mean(np.sum(hits, axis=0) / pairs)))
    assert (found.false_accepts, found.impostors) == (trial().false_accepts[FAR], trial().impostors)
    assert found.false_accepts != trial().false_accepts[0.02]


@pytest.mark.parametrize("false_accepts", [0, 2, 3, 200])
def test_chance_is_the_target_however_many_were_accepted(false_accepts: int) -> None:
    found = replace(measured(), false_accepts=false_accepts, impostors=1000)
    assert found.chance == FAR
    assert found.times_chance == found.tar / FAR
    assert found.achieved_far == false_accepts / 1000


@pytest.mark.parametrize("level", [0.9, 0.99])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_the_interval_is_that_of_the_counts_and_their_replicates(scheme: Scheme, level: float) -> None:
    bootstrap = weights(scheme, level)
    found = measure(trial(), FAR, bootstrap, PLAN)
    assert found.replicates.mirrored is (scheme is Scheme.DOUBLE_OR_NOTHING)
    assert found.interval == rate_interval(found.accepted, found.mated, found.replicates, ROLES.test.count, level)
    distinct = {tuple(sorted(pair)) for part in trial().mated for pair in part.rows.tolist()}
    expected = effective_trials(found.tar, found.replicates.variance(), ROLES.test.count, len(distinct))
    assert found.effective_n == expected


def test_effective_n_is_no_more_than_the_pairs_that_differ_whichever_picture_comes_first() -> None:
    """One pair in both seeds, the other way round in the second, and one more: two pairs, however sure it looks."""
    pairs = [Mated(np.array([0]), np.array([5.0], np.float32), np.array([[0, 9]])) for _ in range(2)]
    pairs[1] = Mated(np.array([0, 1]), np.array([5.0, -5.0], np.float32), np.array([[9, 0], [9, 1]]))
    few = replace(trial(), mated=tuple(pairs))
    found = measure(few, FAR, weights(), PLAN)
    assert (found.accepted, found.mated) == (2, 3)
    assert found.effective_n <= 2
    still = Bootstrap(np.ones((200, ROLES.calibrate.count)), np.ones((200, ROLES.test.count)), Scheme.MULTINOMIAL)
    nearly = replace(still, test=still.test + 1e-6 * weights().test)
    assert measure(few, FAR, nearly, PLAN).effective_n == 2


def test_a_pair_that_scores_the_threshold_itself_is_accepted() -> None:
    threshold = np.float32(trial().thresholds[FAR])
    scores = np.array([np.nextafter(threshold, -np.inf), threshold], np.float32)
    even = replace(trial(), mated=(Mated(np.array([0, 1]), scores, np.array([[0, 1], [2, 3]])),))
    found = measure(even, FAR, weights(), PLAN)
    assert (found.accepted, found.by_seed) == (1, (0.5,))


def test_replicates_with_unchanged_weights_are_the_rate_itself_also_with_pairs_weighted() -> None:
    once = Bootstrap(np.ones((1, ROLES.calibrate.count)), np.ones((1, ROLES.test.count)), Scheme.MULTINOMIAL)
    found = measure(trial(), FAR, once, PLAN)
    assert found.replicates.values == pytest.approx([found.tar])
    scores = np.concatenate([part.scores for part in trial().mated])
    heavy = np.where(scores >= trial().thresholds[FAR], 3.0, 1.0)
    share = 3 * found.accepted / (found.mated + 2 * found.accepted)
    assert once.tar(trial(), FAR, heavy).values == pytest.approx([share])


def test_a_difference_has_the_interval_of_its_paired_replicates() -> None:
    before, after = measured(), measure(trial(), 0.02, weights(), PLAN)
    paired, changes = after.replicates.less(before.replicates), after.by_person - before.by_person
    assert changes.sum() == pytest.approx(after.tar - before.tar)
    for level in (0.8, 0.95):
        assert difference(before, after, level)[1] == paired_interval(changes, paired, ROLES.test.count, level)
    assert difference(before, after)[1].level == 0.95


@pytest.mark.parametrize("scheme", list(Scheme))
def test_weights_for_other_people_are_of_the_same_kind_number_and_level(scheme: Scheme) -> None:
    found = weights(scheme, 0.9).for_people(7, 5, seed=11)
    assert (found.scheme, found.level) == (scheme, 0.9)
    assert np.array_equal(found.calibrate, identity_weights(scheme, 7, 200, 11, "calibrate"))
    assert np.array_equal(found.test, identity_weights(scheme, 5, 200, 11, "test"))
    assert draw_bootstrap(scheme, 7, 5, 200, 11).level == 0.95
