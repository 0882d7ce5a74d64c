"""If these fail, the panel runs other probes, seeds or devices than it was asked for, or its worst case is not."""

from dataclasses import replace

import numpy as np

from tests.probe.small import Told, people, roles_of
from unface.probe import PROBES, Panel, Plan, Variant, calibrate_tar, pick_probes, run_panel
from unface.probe.kshot import draw_shot
from unface.probe.panel import draw_shots

PEOPLE = people(40, 6, 6, between=1.2)
ROLES = roles_of(PEOPLE)
PLAN = Plan(fars=(0.1, 0.03, 1e-6), ks=(1, 3), seeds=2, seed=5, threads=1)
NAMES = ("cosine", "plda")


def test_the_best_on_calibrate_is_the_best_of_the_panels_own_trials() -> None:
    panel = run_panel(PEOPLE.vectors, ROLES, pick_probes(NAMES), PLAN)
    for k in PLAN.ks:
        tars = [panel.trials[name, k].calibrate_tar for name in NAMES]
        expected = {far: max(tar[far] for tar in tars) for far in (0.1, 0.03)}
        assert calibrate_tar(PEOPLE.vectors, ROLES, pick_probes(NAMES), PLAN, k) == expected


def test_the_best_on_calibrate_is_found_without_a_look_at_test_identities() -> None:
    blind = PEOPLE.vectors.copy()
    blind[ROLES.test.rows] = np.nan
    found = [calibrate_tar(vectors, ROLES, pick_probes(NAMES), PLAN, 1) for vectors in (PEOPLE.vectors, blind)]
    assert found[0] == found[1]


def test_where_every_rate_is_refused_nothing_is_best() -> None:
    assert calibrate_tar(PEOPLE.vectors, ROLES, pick_probes(NAMES), replace(PLAN, fars=(1e-6,)), 1) == {}


def test_the_worst_case_is_among_the_trials_of_its_own_k_and_rate() -> None:
    trial = run_panel(PEOPLE.vectors, ROLES, pick_probes(("cosine",)), replace(PLAN, ks=(1,))).trials["cosine", 1]
    tars = {
        ("a", 1): {0.1: 0.3, 0.03: 0.2},
        ("b", 1): {0.1: 0.4, 0.03: 0.1},
        ("a", 3): {0.1: 0.9, 0.03: 0.8},
        ("c", 3): {0.1: 0.9, 0.03: 0.9},
    }
    trials = {key: replace(trial, probe=key[0], k=key[1], calibrate_tar=tar) for key, tar in tars.items()}
    panel = Panel(trials, {})
    assert [panel.worst(1, 0.1), panel.worst(1, 0.03), panel.worst(3, 0.03)] == ["b", "a", "c"]
    assert panel.worst(3, 0.1) == "a"  # the first of equals


def test_every_probe_at_every_k_is_a_step_also_where_it_is_refused() -> None:
    for fars in ((0.1,), (1e-6,)):
        told = Told()
        run_panel(PEOPLE.vectors, ROLES, pick_probes(NAMES), replace(PLAN, fars=fars), told)
        assert (told.started, told.advanced) == ([("probes", 4)], {"probes": 4})
    told = Told()
    run_panel(PEOPLE.vectors, ROLES, pick_probes(("cosine",)), replace(PLAN, ks=(1,)), told, task="after isp")
    assert (told.started, told.advanced) == ([("after isp", 1)], {"after isp": 1})


def test_seeds_count_from_the_plans_seed_and_supports_carry_its_device() -> None:
    shots, _ = draw_shots(PEOPLE.vectors, ROLES, replace(PLAN, device="cuda:1"), 3)
    assert [(shot.support.seed, shot.support.k, shot.support.device) for shot in shots] == [
        (5, 3, "cuda:1"),
        (6, 3, "cuda:1"),
    ]
    for shot in shots:
        alone = draw_shot(PEOPLE.vectors, ROLES.train, ROLES.calibrate, ROLES.test, 3, shot.support.seed)
        assert alone.support.device == "cpu"
        assert np.array_equal(alone.support.vectors, shot.support.vectors)
        assert np.array_equal(alone.calibrate.rows, shot.calibrate.rows)
        assert np.array_equal(alone.test.rows, shot.test.rows)


def test_under_a_quota_what_is_resolved_goes_by_the_quota_of_every_two_identities_in_either_variant() -> None:
    pairs = ROLES.calibrate.count * (ROLES.calibrate.count - 1) // 2
    for variant in Variant:
        _, resolved = draw_shots(PEOPLE.vectors, ROLES, replace(PLAN, quota=7, variant=variant), 1)
        assert resolved.impostors == 7 * pairs


def test_probes_are_picked_once_each_in_the_order_asked_for() -> None:
    assert pick_probes(["plda", "cosine", "plda"]) == [PROBES["plda"], PROBES["cosine"]]


def test_the_least_of_everything_is_a_plan() -> None:
    least = Plan(fars=(1e-12,), ks=(1,), seeds=1, seed=0, quota=1)
    assert (least.fars, least.quota) == ((1e-12,), 1)
    assert replace(least, variant=Variant.PAPER, seeds=2).seeds == 2
    assert Plan(fars=(0.999,)).quota is None


def test_all_seeds_calibrate_but_in_the_paper_the_first_alone() -> None:
    assert Plan(seeds=4).calibrating_seeds == 4
    assert Plan(seeds=4, variant=Variant.PAPER).calibrating_seeds == 1
