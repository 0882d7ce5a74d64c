"""If these fail, an audit whose numbers come from a leak in the harness is called valid, or a good one is voided."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.probe.cheat import Cheat
from tests.probe.small import Told, consecutive, people, roles_of
from unface import Protocol, audit, make_identities
from unface.metrics import Interval, Scheme
from unface.probe import (
    PROBES,
    Control,
    Measurement,
    Plan,
    Probe,
    Roles,
    Variant,
    draw_bootstrap,
    pick_probes,
    shuffled_control,
)
from unface.probe.control import LEVEL, _one_pair_decides, _part, _permute
from unface.seeds import stream

CLOSED = ("cosine", "ridge", "lda", "plda")
SEEDS = range(8)


def control(seed: int, probes: list[Probe], between: float = 1.5) -> Control:
    embeddings = people(60, 5, 8, seed=seed, between=between)
    roles = roles_of(embeddings)
    plan = Plan(fars=(0.05, 0.01), ks=(1, 2), seeds=2, seed=seed, threads=1)
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 300, seed)
    return shuffled_control(embeddings.vectors, roles, probes, plan, weights)


@cache
def honest(seed: int) -> Control:
    return control(seed, pick_probes(CLOSED))


@pytest.mark.parametrize("seed", SEEDS)
def test_honest_probes_are_at_chance_once_identities_are_shuffled(seed: int) -> None:
    found = honest(seed)
    assert found.failures == ()
    assert [(m.probe, m.k, m.far) for m in found.measurements] == [(p, 2, f) for p in CLOSED for f in (0.05, 0.01)]


def test_over_all_seeds_their_rate_is_chance_itself() -> None:
    """Eight independent sets; identities leak so much that unshuffled they are linked ten times as often."""
    for position in range(len(CLOSED) * 2):
        found = [honest(seed).measurements[position] for seed in SEEDS]
        excess = np.array([m.tar - m.far for m in found])
        assert abs(excess.mean()) < 5 * excess.std(ddof=1) / np.sqrt(len(SEEDS))
        assert np.mean([m.tar for m in found]) < 2.5 * found[0].far


def test_a_probe_that_reads_the_answers_fails_the_control() -> None:
    found = control(0, [Cheat(), PROBES["cosine"]])
    assert {m.probe for m in found.failures} == {"cheat"}
    assert len(found.failures) == 2


def test_such_a_probe_makes_the_whole_audit_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBES, "ridge", Cheat("ridge"))
    found = audit(
        make_identities(60, 5, 8),
        eraser=(),
        far=(0.05,),
        k=(1,),
        parts=(),  # the controls are no part, and the probe knows the answers of the attack alone
        protocol=Protocol(probe=["cosine", "ridge"], seeds=1, bootstraps=200),
    )
    assert not found.valid
    assert found.findings[0].severity == "invalid"
    failed = next(point for point in found.controls.shuffled_identities if not point.passed)
    assert failed.probe == "ridge"
    assert failed.tar.low > failed.chance
    assert found.verdict.startswith("The audit is invalid: with identities shuffled among images ridge still links ")
    assert found.verdict.endswith("so no number here can be trusted")


def test_without_it_the_same_audit_is_valid() -> None:
    found = audit(
        make_identities(60, 5, 8),
        eraser=(),
        far=(0.05,),
        k=(1,),
        parts=(),
        protocol=Protocol(probe=["cosine", "ridge"], seeds=1, bootstraps=200),
    )
    assert found.valid
    assert all(point.passed for point in found.controls.shuffled_identities)


def test_no_accepts_at_all_are_no_failure() -> None:
    assert all(m.accepted or m not in honest(0).failures for m in honest(0).measurements)
    constant = people(60, 5, 1)
    roles = roles_of(constant)
    plan = Plan(fars=(0.05,), ks=(1,), seeds=1, threads=1)
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 100, 0)
    found = shuffled_control(np.ones((300, 1), np.float32), roles, pick_probes(["cosine"]), plan, weights)
    assert [m.accepted for m in found.measurements] == [0]
    assert found.failures == ()


@pytest.mark.parametrize("seed", [5, 31])
def test_an_achieved_rate_that_came_out_low_by_luck_does_not_void_a_clean_audit(seed: int) -> None:
    """On these draws the shuffled test identities accept far less than the target, and a few pairs exceed that."""
    result = audit(
        make_identities(80, 8, 32, rank=8, seed=seed),
        eraser=(),
        far=(1e-2, 1e-3),
        k=(1, 2),
        protocol=Protocol(probe=("cosine", "ridge"), bootstraps=400, seeds=3),
    )
    assert result.valid


@pytest.mark.parametrize(("persons", "images"), [(500, 5), (40, 20), (24, 20)])
def test_people_are_parted_and_every_identity_keeps_its_size(persons: int, images: int) -> None:
    sizes = np.random.default_rng(persons).integers(2, images + 1, persons)
    people_of = np.repeat(np.arange(persons), sizes)
    dealt = _part(people_of, stream(0, "parting", persons))
    assert np.array_equal(np.bincount(dealt), sizes)
    assert len(np.unique(dealt * persons + people_of)) == len(people_of)
    assert np.mean(dealt == people_of) < 0.1


def test_where_one_pair_would_decide_nobody_is_linked_to_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images of everybody are almost one picture; wherever a shuffle leaves both together they are linked."""
    embeddings = people(400, 3, 48, between=0.0)
    vectors = embeddings.vectors.copy()
    vectors[1::3] = vectors[::3] + 0.1 * vectors[2::3]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    roles = roles_of(embeddings)
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 100, 0)

    def accepted() -> int:
        plans = [Plan(fars=(1e-3,), ks=(1,), seeds=2, seed=seed, threads=1) for seed in range(6)]
        found = [shuffled_control(vectors, roles, pick_probes(["cosine"]), plan, weights) for plan in plans]
        return sum(measurement.accepted for control in found for measurement in control.measurements)

    assert accepted() == 0
    monkeypatch.setattr("unface.probe.control._part", _permute)
    assert accepted() > 0


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
