"""If these fail, the control passes a leak by a hair's breadth, or is run on another plan than it should be."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.probe.small import Told, consecutive, people, roles_of
from unface.metrics import Interval, Scheme
from unface.probe import Control, Measurement, Plan, Roles, Variant, draw_bootstrap, pick_probes, shuffled_control
from unface.probe.control import LEVEL, _one_pair_decides, _part, _permute
from unface.seeds import stream

PEOPLE = people(60, 5, 8, between=1.5)
ROLES = roles_of(PEOPLE)
PLAN = Plan(fars=(0.05,), ks=(2, 1), seeds=2, threads=1)


def controlled(plan: Plan, told: Told | None = None) -> Control:
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, ROLES.calibrate.count, ROLES.test.count, 100, 0)
    return shuffled_control(PEOPLE.vectors, ROLES, pick_probes(("cosine",)), plan, weights, told)


@cache
def one() -> Measurement:
    return controlled(PLAN).measurements[0]


@pytest.mark.parametrize(
    ("low", "false_accepts", "accepted", "fails"),
    [
        (0.2, 200, 50, False),  # no more than chance, an achieved rate of 0.2
        (0.201, 200, 50, True),
        (0.05, 10, 50, False),  # above an achieved rate of 0.01 that came out low, but not above the target
        (0.051, 10, 50, True),
        (0.9, 200, 0, False),
    ],
)
def test_a_failure_lies_above_chance_and_above_the_target(
    low: float, false_accepts: int, accepted: int, fails: bool
) -> None:
    found = replace(
        one(),
        interval=Interval(low, 1.0, LEVEL),
        false_accepts=false_accepts,
        impostors=1000,
        accepted=accepted,
        accepted_people=10,
    )
    assert Control((found,)).failures == ((found,) if fails else ())


@pytest.mark.parametrize(("people", "fails"), [(4, False), (6, False), (7, True), (9, True)])
def test_a_few_people_are_a_failure_only_if_chance_all_but_never_links_so_many(people: int, fails: bool) -> None:
    """65 people with 15 pairs each at 1e-3 × 1.5: 1.5 are expected; P(≥ 6) = 3.4e-3 and P(≥ 7) = 6.5e-4."""
    found = replace(
        one(),
        far=1e-3,
        false_accepts=15,
        impostors=10_000,
        accepted=40,
        accepted_people=people,
        mated=975,
        identities=65,
        interval=Interval(0.01, 0.1, LEVEL),
    )
    assert Control((found,)).failures == ((found,) if fails else ())


@pytest.mark.parametrize("variant", list(Variant))
def test_it_is_judged_at_the_largest_k_by_the_strictest_interval_whatever_the_variant(variant: Variant) -> None:
    found = controlled(replace(PLAN, variant=variant)).measurements
    assert [(m.k, m.far, m.interval.level, m.accepted) for m in found] == [(2, 0.05, 0.999, one().accepted)]
    assert found[0].interval == one().interval


def test_it_reports_its_progress_under_its_own_name() -> None:
    told = Told()
    controlled(PLAN, told)
    assert (told.started, told.advanced) == ([("shuffled control", 1)], {"shuffled control": 1})


def test_each_seed_shuffles_anew_and_the_same_seed_alike() -> None:
    scores = [controlled(replace(PLAN, seed=seed)).measurements[0].threshold for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]


@pytest.mark.parametrize(("fars", "decides"), [((0.01,), False), ((0.05, 0.0099), True), ((1e-9,), False)])
def test_one_pair_decides_where_chance_accepts_less_than_one_of_a_hundred(
    fars: tuple[float, ...], decides: bool
) -> None:
    """Ten test identities of five images: 100 mated pairs. A rate that is refused decides nothing."""
    roles = Roles(consecutive(*[2] * 4), consecutive(*[5] * 20, start=8), consecutive(*[5] * 10, start=108))
    vectors = np.ones((158, 2), np.float32)
    assert _one_pair_decides(vectors, roles, Plan(fars=fars, ks=(1,), seeds=1)) is decides


def test_a_permutation_keeps_every_identitys_size_and_leaves_pictures_together_by_chance() -> None:
    """Pairs of 100 people with 4 pictures each: 600 of one person, 3 in 399 of which meet again under one name."""
    people_of = np.repeat(np.arange(100), 4)
    together = []
    for seed in range(20):
        dealt = _permute(people_of, stream(seed, "permuting"))
        assert np.array_equal(np.bincount(dealt), np.full(100, 4))
        together.append(len(people_of) - len(np.unique(dealt * 100 + people_of)))
    assert 0 < np.mean(together) == pytest.approx(600 * 3 / 399, rel=0.4)


def test_where_people_cannot_be_parted_the_parting_ends() -> None:
    """Three people of five pictures: some name must hold two of one person."""
    people_of = np.repeat(np.arange(3), 5)
    dealt = _part(people_of, stream(0, "three"))
    assert np.array_equal(np.bincount(dealt), [5, 5, 5])
