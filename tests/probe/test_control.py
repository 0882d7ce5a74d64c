"""If these fail, an audit whose numbers come from a leak in the harness is called valid, or a good one is voided."""

from functools import cache

import numpy as np
import pytest

from tests.probe.cheat import Cheat
from tests.probe.small import people, roles_of
from unface import Protocol, audit, make_identities
from unface.metrics import Scheme
from unface.probe import PROBES, Control, Plan, Probe, draw_bootstrap, pick_probes, shuffled_control
from unface.probe.control import _part, _permute
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
