"""If these fail, a context that says nothing changes a number, or one that says something is counted wrongly."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.probe.small import consecutive, people, roles_of
from unface.metrics import Interval, Scheme
from unface.pairs import Mated
from unface.probe import (
    Bootstrap,
    ContextAdjusted,
    GroupContext,
    LeftOut,
    Plan,
    SignatureContext,
    Trial,
    adjust_for_context,
    draw_bootstrap,
    measure,
    pick_probes,
    run_panel,
)
from unface.probe.context import _impostor_sample, pair_weights
from unface.seeds import stream

PEOPLE = people(48, 6, 6, between=1.2)
ROLES = roles_of(PEOPLE)
FAR = 0.1
PLAN = Plan(fars=(FAR,), ks=(2,), seeds=2, threads=1)


@cache
def trial() -> Trial:
    return run_panel(PEOPLE.vectors, ROLES, pick_probes(("cosine",)), PLAN).trials["cosine", 2]


def bootstrap(level: float = 0.9) -> Bootstrap:
    return draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, ROLES.calibrate.count, ROLES.test.count, 200, 0, level)


def adjusted(codes: np.ndarray[tuple[int], np.dtype[np.int64]], of: Trial | None = None) -> ContextAdjusted:
    found = adjust_for_context(of or trial(), FAR, GroupContext("shoot", codes), ROLES.test, bootstrap(), 0)
    assert found is not None
    return found


def test_where_everybody_is_in_a_place_of_his_own_nothing_changes() -> None:
    """No two pictures share their surroundings, mated or not: the adjusted TAR and its interval are the plain ones."""
    plain = measure(trial(), FAR, bootstrap(), PLAN)
    found = adjusted(np.arange(len(PEOPLE)))
    assert found.value == pytest.approx(plain.tar)
    assert found.interval == plain.interval
    assert (found.overlap, found.effective_pairs, found.unknown) == (1, plain.mated, 0)
    assert (found.suspects, found.accepted) == (0, plain.accepted)
    assert found.left_out == (LeftOut(0.0, plain.accepted, plain.mated),)


def test_where_everybody_is_in_one_place_nothing_changes_but_every_accepted_pair_is_a_suspect() -> None:
    plain = measure(trial(), FAR, bootstrap(), PLAN)
    found = adjusted(np.zeros(len(PEOPLE), np.int64))
    assert found.value == pytest.approx(plain.tar)
    assert found.interval == plain.interval
    assert found.suspects == found.accepted == plain.accepted
    assert found.left_out == (LeftOut(1.0, plain.accepted, plain.mated),)


def test_pairs_whose_surroundings_are_not_known_are_left_out_and_their_share_is_told() -> None:
    """Every third picture is of an unknown place, all others of a place of their own."""
    codes = np.where(np.arange(len(PEOPLE)) % 3 == 0, -1, np.arange(len(PEOPLE)))
    rows = np.concatenate([part.rows for part in trial().mated])
    accepted = np.concatenate([part.scores for part in trial().mated]) >= trial().thresholds[FAR]
    known = (codes[rows] >= 0).all(axis=1)
    assert 0 < known.sum() < len(known)
    found = adjusted(codes)
    hits, pairs = int(np.count_nonzero(known & accepted)), int(np.count_nonzero(known))
    assert found.value == pytest.approx(hits / pairs)
    assert found.interval.low <= hits / pairs <= found.interval.high
    assert found.interval.level == 0.9
    assert found.unknown == pytest.approx(1 - pairs / len(known))
    assert found.accepted == hits
    assert found.effective_pairs == pytest.approx(pairs)
    assert found.left_out == (LeftOut(0.0, hits, pairs),)


def test_weights_and_effective_pairs_of_six_pairs_by_hand() -> None:
    """Impostors never share a place, two of six mated pairs do: they weigh nothing, four pairs are left, one accepted.

    The scores 9 are accepted and 1 rejected; a pair that shares its place is (0, 1) or (2, 3).
    """
    scores = np.array([9, 9, 9, 1, 1, 1], np.float32) + np.float32(trial().thresholds[FAR] - 5)
    rows = np.array([[0, 1], [2, 3], [0, 2], [0, 3], [1, 2], [1, 3]]) + ROLES.test.rows[0]
    codes = np.arange(len(PEOPLE))
    codes[rows[0, 1]], codes[rows[1, 1]] = codes[rows[0, 0]], codes[rows[1, 0]]
    found = adjusted(codes, replace(trial(), mated=(Mated(np.zeros(6, np.int64), scores, rows),)))
    assert [found.value, found.overlap, found.effective_pairs] == pytest.approx([1 / 4, 1, 4])
    assert (found.suspects, found.accepted) == (2, 3)
    assert found.left_out == (LeftOut(0.0, 1, 4),)


def test_uneven_weights_are_worth_fewer_pairs_than_there_are() -> None:
    """(Σw)² / Σw² of the weights that give mated pairs the impostors' surroundings."""
    rng = stream(0, "uneven")
    signatures = (0.5 * rng.normal(size=(len(PEOPLE), 9))).astype(np.float32)
    signatures += np.repeat(rng.normal(size=(48, 9)), 6, axis=0).astype(np.float32)
    context = SignatureContext("backdrop", signatures)
    found = adjust_for_context(trial(), FAR, context, ROLES.test, bootstrap(), 0)
    assert found is not None
    mated = context.similarity(np.concatenate([part.rows for part in trial().mated]))
    impostor = context.similarity(_impostor_sample(ROLES.test, 0))
    weights, overlap = pair_weights(mated, impostor)
    accepted = np.concatenate([part.scores for part in trial().mated]) >= trial().thresholds[FAR]
    assert found.value == pytest.approx(weights[accepted].sum() / weights.sum())
    assert found.effective_pairs == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.effective_pairs < 0.95 * len(mated)
    assert found.overlap == overlap
    assert found.suspects == np.count_nonzero(accepted & (mated > np.quantile(impostor, 0.999))) > 0
    cuts = np.quantile(impostor, [0.9, 0.99, 0.999])
    assert [left.similarity for left in found.left_out] == cuts.tolist()
    assert [left.accepted for left in found.left_out] == [np.count_nonzero(accepted & (mated <= cut)) for cut in cuts]
    assert [left.mated for left in found.left_out] == [np.count_nonzero(mated <= cut) for cut in cuts]


def test_where_nothing_can_be_compared_the_interval_says_nothing() -> None:
    found = adjusted(PEOPLE.identities)
    assert (found.value, found.interval, found.effective_pairs) == (None, Interval(0.0, 1.0, 0.9), 0)


def test_mated_pairs_or_impostors_alone_say_nothing() -> None:
    """Where only one person's surroundings are known there is no impostor pair, where only one picture's of each …"""
    rows, everyone = ROLES.test.rows, np.full(len(PEOPLE), -1)
    for known in (rows[ROLES.test.identities == 0], rows[np.unique(ROLES.test.identities, return_index=True)[1]]):
        codes = everyone.copy()
        codes[known] = known
        assert adjust_for_context(trial(), FAR, GroupContext("shoot", codes), ROLES.test, bootstrap(), 0) is None


def test_a_pair_that_scores_the_threshold_itself_is_accepted() -> None:
    threshold = np.float32(trial().thresholds[FAR])
    scores = np.array([np.nextafter(threshold, -np.inf), threshold], np.float32)
    rows = ROLES.test.rows[:2][None].repeat(2, axis=0)
    found = adjusted(np.arange(len(PEOPLE)), replace(trial(), mated=(Mated(np.array([0, 0]), scores, rows),)))
    assert (found.value, found.accepted) == (0.5, 1)


def test_group_zero_is_a_group_like_any_other() -> None:
    pairs = np.array([[0, 1], [1, 0], [0, 2], [2, 0], [0, 3], [3, 0]])
    found = GroupContext("shoot", np.array([0, 0, 1, -1])).similarity(pairs)
    np.testing.assert_array_equal(found, [1, 1, 0, 0, np.nan, np.nan])


def test_a_signatures_brightness_and_contrast_say_nothing() -> None:
    """Correlation, also where the mean is far larger than what varies; a constant vector is unknown."""
    plain = stream(1, "bright").normal(size=(4, 8))
    changed = np.vstack([plain[:2], 3 * plain[2:] + 100, np.full((1, 8), 7.0)]).astype(np.float32)
    pairs = np.array([[0, 2], [1, 3], [0, 4]])
    found = SignatureContext("backdrop", changed).similarity(pairs)
    expected = [np.corrcoef(plain[a], plain[b])[0, 1] for a, b in pairs[:2]]
    assert found[:2] == pytest.approx(expected, abs=1e-4)
    assert np.isnan(found[2])


def test_sampled_impostors_are_pairs_of_two_test_identities_each_as_likely_as_any_other() -> None:
    test = consecutive(2, 1, 3, start=40)
    drawn = _impostor_sample(test, 0)
    assert drawn.shape[1] == 2
    identity = dict(zip(test.rows.tolist(), test.identities.tolist(), strict=True))
    pairs, times = np.unique(drawn, axis=0, return_counts=True)
    expected = [[a, b] for a in identity for b in identity if identity[a] != identity[b]]
    assert pairs.tolist() == expected
    # 200,000 draws of 36 pairs of rows, of which these 22 are impostors: 5,556 of each, standard deviation 73
    assert np.abs(times - 200_000 / 36).max() < 5 * 73
    assert np.array_equal(drawn, _impostor_sample(test, 0))
    assert not np.array_equal(drawn[:1000], _impostor_sample(test, 1)[:1000])
