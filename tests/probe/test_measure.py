"""If these fail, the numbers that are quoted are not those that were counted, or claim more than they can."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from benchmarks.audit_coverage import Population, difference_holds
from numpy.typing import NDArray

from tests.probe.small import consecutive, people, roles_of
from unface.metrics import Scheme, zero_bound
from unface.pairs import PairSpace, cosine_space
from unface.probe import (
    Bootstrap,
    Measurement,
    Panel,
    Plan,
    Roles,
    Setting,
    Support,
    Variant,
    difference,
    draw_bootstrap,
    measure,
    pick_probes,
    run_panel,
)
from unface.probe.measure import seed_interval
from unface.seeds import stream

PEOPLE = people(48, 6, 6, between=1.2)
ROLES = roles_of(PEOPLE)
PLAN = Plan(fars=(0.1, 0.02), ks=(2,), seeds=3, threads=1)


@cache
def panel(plan: Plan = PLAN) -> Panel:
    return run_panel(PEOPLE.vectors, ROLES, pick_probes(("cosine", "lda")), plan)


@cache
def bootstrap() -> Bootstrap:
    return draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, ROLES.calibrate.count, ROLES.test.count, 400, 0)


def measured(probe: str = "cosine", far: float = 0.1, plan: Plan = PLAN) -> Measurement:
    return measure(panel(plan).trials[probe, 2], far, bootstrap(), plan)


def test_rates_are_the_counts_of_all_seeds() -> None:
    trial, found = panel().trials["lda", 2], measured("lda")
    scores = np.concatenate([part.scores for part in trial.mated])
    assert found.mated == len(scores) == 3 * ROLES.test.count * 15
    assert found.accepted == np.count_nonzero(scores >= trial.thresholds[0.1])
    assert found.tar == found.accepted / found.mated
    assert found.by_seed == tuple(np.mean(part.scores >= trial.thresholds[0.1]) for part in trial.mated)
    assert np.mean(found.by_seed) == pytest.approx(found.tar)
    assert found.achieved_far == trial.false_accepts[0.1] / trial.impostors


def test_a_multiple_of_chance_falls_with_the_tar_however_few_impostors_were_accepted() -> None:
    """Divided by achieved rates, 90.0 % at 1.57e-4 would be 5,732 times chance and 59.9 % at 8.3e-5 7,217 times."""
    found = measured()
    assert found.achieved_far != found.far == found.chance == 0.1
    before, after = replace(found, false_accepts=157), replace(found, false_accepts=83, accepted=found.accepted // 2)
    assert before.times_chance == found.tar / 0.1
    assert after.times_chance < before.times_chance


def test_the_interval_holds_the_rate_and_effective_n_lies_between_one_and_the_distinct_pairs() -> None:
    for probe in ("cosine", "lda"):
        for far in PLAN.fars:
            found = measured(probe, far)
            assert 0 <= found.interval.low < found.tar < found.interval.high <= 1
            # seeds compare mostly the same pictures: 15 distinct pairs for each identity at most
            assert 1 < found.effective_n <= 15 * ROLES.test.count


def test_a_measurement_differs_from_itself_by_nothing_but_the_people_who_were_not_seen() -> None:
    change, interval = difference(measured(), measured())
    bound = zero_bound(ROLES.test.count)
    assert (change, interval.low, interval.high) == (0, -bound, bound)


@pytest.mark.parametrize("kind", ["Gaussian", "wolves"])
def test_a_change_is_covered_however_few_pairs_are_accepted(kind: str) -> None:
    """Nominal 95 %; the normal interval, of width zero where nobody changed, covers 69 or 70 of these."""
    population = Population(kind, 0.3, 2, 2)
    assert sum(difference_holds(population, 1e-3, number) for number in range(100)) >= 92


def test_a_paired_difference_is_surer_than_two_intervals_are() -> None:
    before, after = measured("cosine", 0.1), measured("cosine", 0.02)
    change, interval = difference(before, after)
    assert change == after.tar - before.tar < 0
    assert interval.low <= change <= interval.high < 0
    apart = [found.interval.high - found.interval.low for found in (before, after)]
    assert interval.high - interval.low < np.linalg.norm(apart)


def test_the_paper_variant_reports_the_spread_over_seeds() -> None:
    plan = replace(PLAN, variant=Variant.PAPER)
    found = measured(plan=plan)
    spread = 1.96 * np.std(found.by_seed, ddof=1)
    assert found.interval.low == pytest.approx(np.mean(found.by_seed) - spread)
    assert found.interval.high == pytest.approx(np.mean(found.by_seed) + spread)


def test_the_spread_over_seeds_by_hand() -> None:
    """0.2, 0.3, 0.4: mean 0.3, standard deviation 0.1."""
    found = seed_interval((0.2, 0.3, 0.4), 0.95)
    assert [found.low, found.high, found.level] == pytest.approx([0.104, 0.496, 0.95])
    assert seed_interval((0.0, 0.9), 0.95).low == 0
    assert seed_interval((0.1, 1.0), 0.95).high == 1
    single = seed_interval((0.3,), 0.95)
    assert (single.low, single.high) == (0.3, 0.3)


def test_weights_are_the_same_for_every_trial_and_differ_between_roles() -> None:
    again = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, ROLES.calibrate.count, ROLES.test.count, 400, 0)
    assert np.array_equal(again.test, bootstrap().test)
    equal = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, 10, 10, 50, 0)
    assert not np.array_equal(equal.calibrate, equal.test)


class Shifting:
    """Sees identity in the pictures of one role and noise in those of the other; roles differ in the first entry."""

    settings: tuple[Setting, ...] = ({},)
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, sees: int) -> None:
        self.name, self.sees = name, sees

    def fit(self, support: Support) -> "Shifting":
        return self

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        identity, noise = vectors[:, 1:9], vectors[:, 9:17]
        return cosine_space(np.where(np.sign(vectors[:, :1]) == self.sees, identity, noise))


def test_the_worst_case_is_chosen_on_calibrate_also_where_another_is_better_on_test() -> None:
    rng = stream(0, "shifting")
    rows = np.arange(3 * 20 * 6)
    means = np.repeat(rng.normal(size=(60, 8)), 6, axis=0)
    role = np.where((rows >= 120) & (rows < 240), 1.0, -1.0)[:, None]  # calibrate is in the middle
    vectors = np.hstack([role, means + 0.5 * rng.normal(size=(360, 8)), rng.normal(size=(360, 8))]).astype(np.float32)
    roles = Roles(*(consecutive(*[6] * 20, start=start) for start in (0, 120, 240)))
    probes = [Shifting("sees test", -1), Shifting("sees calibrate", 1)]
    plan = Plan(fars=(0.05,), ks=(2,), seeds=2, threads=1)
    found = run_panel(vectors, roles, probes, plan)
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, 20, 20, 100, 0)
    tars = {probe.name: measure(found.trials[probe.name, 2], 0.05, weights, plan).tar for probe in probes}
    assert found.worst(2, 0.05) == "sees calibrate"
    assert tars["sees test"] > 3 * tars["sees calibrate"]
