"""If these fail, thresholds, accepts or the choice of settings are not those of the scores themselves.

A small panel is run by the engine and again by hand: every pair from the full score matrix, every seed, every rate.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.probe.small import AllPairs, all_pairs, people, roles_of
from unface.metrics import TarAtFar, tar_at_far, threshold_replicates
from unface.pairs import Histogram
from unface.probe import PROBES, Panel, Plan, Setting, Trial, Variant, pick_probes, run_panel
from unface.probe.kshot import RoleRows, Shot, draw_shot
from unface.probe.trial import OnTest, accepted_on_test
from unface.threads import one_blas_thread

PEOPLE = people(40, 6, 6, between=1.2)
ROLES = roles_of(PEOPLE)
FARS = (0.1, 0.03)
PLAN = Plan(fars=FARS, ks=(1, 3), seeds=3, threads=1)
CLOSED = ("cosine", "ridge", "lda", "plda")
EACH = pytest.mark.parametrize(("name", "k"), [(name, k) for name in CLOSED for k in PLAN.ks])


@cache
def panel(plan: Plan = PLAN) -> Panel:
    return run_panel(PEOPLE.vectors, ROLES, pick_probes(CLOSED), plan)


@cache
def shots(k: int, *, hold_out: bool = False) -> list[Shot]:
    seeds = range(PLAN.seeds)
    return [
        draw_shot(PEOPLE.vectors, ROLES.train, ROLES.calibrate, ROLES.test, k, seed, hold_out=hold_out)
        for seed in seeds
    ]


def drawn(name: str, k: int) -> list[Shot]:
    """A probe that learns nothing compares the same pictures in the same way in every draw: once is enough."""
    return shots(k)[:1] if name == "cosine" else shots(k)


def by_hand(name: str, setting: Setting, shot: Shot, role: RoleRows) -> AllPairs:
    with one_blas_thread():
        space = PROBES[name].fit(shot.support).space(setting, PEOPLE.vectors[role.rows])
    return all_pairs(space, role.identities)


def pooled(name: str, setting: Setting, far: float, drawn: list[Shot]) -> TarAtFar:
    """TAR on calibrate with the scores of all seeds in one pot."""
    parts = [by_hand(name, setting, shot, shot.calibrate) for shot in drawn]
    mated, impostor = (np.concatenate([getattr(part, kind) for part in parts]) for kind in ("mated", "impostor"))
    return tar_at_far(mated, impostor, far)


@EACH
def test_thresholds_are_those_of_the_impostor_scores_pooled_over_seeds(name: str, k: int) -> None:
    trial = panel().trials[name, k]
    for far in FARS:
        expected = pooled(name, trial.setting, far, drawn(name, k))
        assert trial.thresholds[far] == expected.threshold
        assert trial.calibrate_tar[far] == expected.value
        assert trial.calibrate_impostors == expected.impostors


@EACH
def test_accepts_on_test_are_counted_at_those_thresholds_for_every_seed(name: str, k: int) -> None:
    trial = panel().trials[name, k]
    for far, threshold in trial.thresholds.items():
        parts = [by_hand(name, trial.setting, shot, shot.test) for shot in drawn(name, k)]
        for part, found in zip(parts, trial.mated, strict=True):
            assert len(found) == len(part.mated)
            assert np.count_nonzero(found.scores >= threshold) == np.count_nonzero(part.mated >= threshold)
        assert trial.false_accepts[far] == sum(np.count_nonzero(part.impostor >= threshold) for part in parts)
        assert trial.impostors == sum(len(part.impostor) for part in parts)
    assert trial.identities == ROLES.test.count


@pytest.mark.parametrize("name", ["ridge", "lda", "plda"])
@pytest.mark.parametrize("k", PLAN.ks)
def test_the_setting_is_the_best_of_two_draws_on_calibrate_at_the_reference_rate(name: str, k: int) -> None:
    trial = panel().trials[name, k]
    reference = panel().resolved[k].reference
    tars = [pooled(name, setting, reference, shots(k)[:2]).value for setting in PROBES[name].settings]
    assert trial.setting == PROBES[name].settings[int(np.argmax(tars))]
    assert len(set(tars)) > 1


def test_rows_of_mated_pairs_are_query_rows_of_one_test_identity() -> None:
    trial = panel().trials["lda", 3]
    for found, shot in zip(trial.mated, shots(3), strict=True):
        assert np.isin(found.rows, shot.test.rows).all()
        owners = PEOPLE.identities[found.rows]
        assert (owners[:, 0] == owners[:, 1]).all()
        assert (found.rows[:, 0] != found.rows[:, 1]).all()
        code_of = dict(zip(shot.test.rows.tolist(), shot.test.identities.tolist(), strict=True))
        assert found.identities.tolist() == [code_of[row] for row in found.rows[:, 0].tolist()]


def test_the_paper_variant_takes_setting_and_threshold_from_the_first_seed_alone() -> None:
    plan = replace(PLAN, variant=Variant.PAPER, fars=(0.1,))
    for name in ("cosine", "ridge"):
        trial = panel(plan).trials[name, 1]
        first = [pooled(name, setting, 0.1, shots(1, hold_out=True)[:1]) for setting in PROBES[name].settings]
        best = first[int(np.argmax([found.value for found in first]))]
        assert trial.thresholds[0.1] == best.threshold
        assert trial.calibrate_impostors == best.impostors
        assert len(trial.mated) == PLAN.seeds
    assert panel(plan).trials["cosine", 1].thresholds[0.1] != panel().trials["cosine", 1].thresholds[0.1]


def test_a_probe_that_learns_nothing_is_the_same_at_every_k_and_as_if_every_draw_were_counted() -> None:
    """⌊s f N⌋ of s equal lists are ⌊f N⌋ of one, so that one draw gives the thresholds of all."""
    trials = [panel().trials["cosine", k] for k in PLAN.ks]
    assert [trial.k for trial in trials] == list(PLAN.ks)
    assert not any(trial.learned for trial in trials)
    assert trials[0].mated == trials[1].mated
    for far in FARS:
        thrice = pooled("cosine", {}, far, shots(1))
        assert trials[0].thresholds[far] == thrice.threshold
        assert trials[0].calibrate_tar[far] == thrice.value


def test_all_pictures_are_drawn_once_and_no_k_is_worth_more() -> None:
    """Six pictures of each: k = 6 draws the same from every seed, so one draw is as good as three."""
    everything = panel(replace(PLAN, ks=(6,), everything=6))
    for name in ("ridge", "lda", "plda"):
        trial = everything.trials[name, 6]
        assert len(trial.mated) == 1
        again = panel(replace(PLAN, ks=(6,))).trials[name, 6]
        assert (len(again.mated), again.thresholds) == (3, trial.thresholds)
        assert all(np.array_equal(part.scores, trial.mated[0].scores) for part in again.mated)


def test_the_number_of_threads_changes_nothing() -> None:
    two = panel(replace(PLAN, threads=2))
    assert list(two.trials) == list(panel().trials)
    for key, trial in panel().trials.items():
        other = two.trials[key]
        for field in ("setting", "notes", "calibrate_tar", "thresholds", "false_accepts", "impostors", "partial_auc"):
            assert getattr(other, field) == getattr(trial, field), (key, field)
        assert same_arrays(other, trial)


def same_arrays(a: Trial, b: Trial) -> bool:
    pairs = [(getattr(a.calibrate, field), getattr(b.calibrate, field)) for field in ("scores", "first", "second")]
    pairs += [(getattr(a.curve, field), getattr(b.curve, field)) for field in ("far", "tar", "eer")]
    for one, other in zip(a.mated, b.mated, strict=True):
        pairs += [(getattr(one, field), getattr(other, field)) for field in ("identities", "scores", "rows")]
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("quota", [None, 2, 5])
def test_unchanged_weights_set_the_threshold_itself(quota: int | None) -> None:
    """What the bootstrap resamples are the pairs that were compared, a quota or all of them."""
    trial = panel(replace(PLAN, quota=quota, fars=(0.1,), ks=(1,))).trials["cosine", 1]
    weights = np.ones((1, ROLES.calibrate.count))
    assert trial.calibrate.pairs(weights) == pytest.approx([trial.calibrate_impostors])
    assert threshold_replicates(trial.calibrate, 0.1, weights).tolist() == [trial.thresholds[0.1]]


@pytest.mark.parametrize("quota", [2, 5])
def test_a_quota_compares_so_many_pictures_of_every_two_identities(quota: int) -> None:
    plan = replace(PLAN, quota=quota, fars=(0.1,), ks=(1,))
    trial = panel(plan).trials["cosine", 1]
    calibrate, test = ROLES.calibrate.count, ROLES.test.count
    assert panel(plan).resolved[1].impostors == calibrate * (calibrate - 1) // 2 * quota
    assert trial.calibrate_impostors == PLAN.seeds * calibrate * (calibrate - 1) // 2 * quota
    assert trial.impostors == PLAN.seeds * test * (test - 1) // 2 * quota
    listed = np.stack([trial.calibrate.first, trial.calibrate.second], axis=1)
    _, times = np.unique(np.sort(listed, axis=1), axis=0, return_counts=True)
    assert times.tolist() == [PLAN.seeds * quota] * (calibrate * (calibrate - 1) // 2)
    assert (trial.calibrate.first != trial.calibrate.second).all()


def test_a_k_at_which_every_rate_is_refused_has_no_trial_but_says_how_many_would_be_needed() -> None:
    found = panel(replace(PLAN, fars=(1e-6,)))
    assert found.trials == {}
    assert found.resolved[1].needed[1e-6] > ROLES.calibrate.count


@EACH
def test_thresholds_of_the_test_identities_themselves_are_as_strict_as_asked(name: str, k: int) -> None:
    """A bin of the histogram is too strict by less than its width: here one pair or two."""
    trial = panel().trials[name, k]
    parts = [by_hand(name, trial.setting, shot, shot.test) for shot in drawn(name, k)]
    mated, impostor = (np.concatenate([getattr(part, kind) for part in parts]) for kind in ("mated", "impostor"))
    for far in FARS:
        exact, found = tar_at_far(mated, impostor, far), trial.on_test[far]
        assert (found.mated, found.impostors) == (exact.mated, exact.impostors)
        assert exact.false_accepts - 3 <= found.false_accepts <= far * exact.impostors
        assert exact.accepted - 3 <= found.accepted <= exact.accepted


def test_where_no_bin_is_as_strict_as_asked_nothing_is_accepted() -> None:
    mated, impostors = (Histogram(0.0, 0.5, np.array(counts)) for counts in ([1, 3], [5, 5]))
    assert accepted_on_test([mated], [impostors, impostors], 0.5) == OnTest(3, 4, 10, 20)
    assert accepted_on_test([mated], [impostors], 0.4) == OnTest(0, 4, 0, 10)
