"""If these fail, an eraser removes more or fewer dimensions than was asked for, or was chosen by looking at test."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from unface.auditing.defender import Defender
from unface.auditing.inputs import Prepared, prepare
from unface.auditing.ranks import RankRule, Target, choose_rank, parse_target, plain_rank
from unface.auditing.words import percent

from tests.auditing.looped import PEOPLE, quick, refusal, space
from unface import UnfaceError, make_identities
from unface.auditing.attack import Attack
from unface.data import EmbeddingSet, Role
from unface.metrics import Scheme
from unface.probe import Plan, Variant, draw_bootstrap, pick_probes, run_panel
from unface.progress import Silent

FAR = 0.02
TARGETS = (0.1, 0.4, 0.8)
SPREAD = make_identities(120, 5, 12, between=1.6, seed=5)


@cache
def prepared() -> Prepared:
    return prepare(
        SPREAD, images=None, ks=(2,), split_column=None, group=None, context=None, variant=Variant.UNFACE, seed=0
    )


def attack(ks: tuple[int, ...] = (2,)) -> Attack:
    roles = prepared().roles
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 2, 0)
    plan = Plan(fars=(0.05,), ks=ks, seeds=1, threads=1)
    return Attack(roles, pick_probes(("cosine", "lda")), plan, weights)


def defender() -> Defender:
    people = prepared().embeddings
    return Defender(people.take(prepared().split.rows(people, Role.FIT)))


def chosen(tar: float, audited: EmbeddingSet | None = None, ks: tuple[int, ...] = (2,)) -> int:
    rule = RankRule(target=Target(tar, FAR))
    return choose_rank(rule, "isp", defender(), audited or prepared().embeddings, attack(ks), Silent())


@cache
def on_calibrate(ks: tuple[int, ...] = (2,)) -> dict[int, float]:
    """By brute force and by the whole panel: the worst case on calibrate at every rank."""
    return {rank: left(defender(), rank, ks) for rank in range(1, 12)}


def left(by: Defender, rank: int, ks: tuple[int, ...] = (2,)) -> float:
    one = attack(ks)
    vectors = by.project("isp", rank).apply(prepared().embeddings.vectors)
    panel = run_panel(vectors, one.roles, one.probes, replace(one.plan, fars=(FAR,)), Silent(), task="each rank")
    return max(trial.calibrate_tar[FAR] for trial in panel.trials.values())


@pytest.mark.parametrize(
    ("text", "tar", "far"), [("0.05@1e-4", 0.05, 1e-4), (" 1e-2@0.001 ", 0.01, 1e-3), (".5@.5", 0.5, 0.5)]
)
def test_a_target_is_a_rate_of_true_accepts_at_a_rate_of_false_ones(text: str, tar: float, far: float) -> None:
    assert parse_target(text) == Target(tar, far)


@pytest.mark.parametrize(
    "text",
    ["", "0.05", "@", "0.05@", "@1e-4", "5%@1e-4", "0@1e-4", "1@1e-4", "0.05@0", "0.05@1", "-0.1@0.1", "1.@.1.2"],
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(UnfaceError) as caught:
        parse_target(text)
    assert str(caught.value) == f"target {text!r}; expected a TAR and a FAR between 0 and 1, such as 0.05@1e-4"


def test_the_worst_case_on_calibrate_falls_far_enough_for_the_tests_below() -> None:
    found = on_calibrate()
    assert found[1] > max(TARGETS)
    assert found[11] < min(TARGETS)


@pytest.mark.parametrize("tar", [*TARGETS, 0.19, 0.6])
def test_the_rank_for_a_target_is_the_smallest_that_meets_it(tar: float) -> None:
    assert chosen(tar) == min(rank for rank, found in on_calibrate().items() if found <= tar)


def test_every_k_has_to_meet_the_target() -> None:
    least = [min(rank for rank, found in on_calibrate((k,)).items() if found <= 0.7) for k in (1, 2)]
    assert least[0] != least[1]
    both = on_calibrate((1, 2))
    assert chosen(0.7, ks=(1, 2)) == min(rank for rank, found in both.items() if found <= 0.7) == max(least)


def test_targets_lead_to_different_ranks() -> None:
    assert len({chosen(tar) for tar in TARGETS}) == 3


def test_a_target_that_no_rank_meets_is_refused_with_the_lowest_that_was_seen() -> None:
    """Eight fit identities allow seven of twelve dimensions."""
    few = defender().only(defender().people.identities < 8)
    with pytest.raises(UnfaceError) as caught:
        choose_rank(RankRule(target=Target(1e-6, FAR)), "isp", few, prepared().embeddings, attack(), Silent())
    lowest, rank = min((left(few, rank), rank) for rank in range(1, 8))
    assert lowest > 0.1
    assert str(caught.value) == (
        "isp: no rank up to 7 brings the worst case to at most 0.00010 % at FAR 0.02; the lowest seen is "
        f"{percent(lowest)} at rank {rank}"
    )


def test_a_target_at_a_rate_that_calibrate_cannot_resolve_is_refused() -> None:
    told = "FAR 1e-6 cannot be resolved on these calibrate identities; raise it"
    assert refusal(rank=None, target="0.05@1e-6") == told


@pytest.mark.parametrize("change", ["shuffled", "replaced by noise"])
def test_test_identities_are_never_looked_at(change: str) -> None:
    people, rows = prepared().embeddings, prepared().roles.test.rows
    vectors, draw = people.vectors.copy(), np.random.default_rng(0)
    if change == "shuffled":
        vectors[rows] = vectors[draw.permutation(rows)]
    else:
        noise = draw.standard_normal((len(rows), 12)).astype(np.float32)
        vectors[rows] = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    changed = replace(people, vectors=vectors)
    assert [chosen(tar, changed) for tar in TARGETS] == [chosen(tar) for tar in TARGETS]


def test_calibrate_identities_are_looked_at() -> None:
    """The other half of the claim above: noise there meets any target at once."""
    people, rows = prepared().embeddings, prepared().roles.calibrate.rows
    vectors = people.vectors.copy()
    noise = np.random.default_rng(0).standard_normal((len(rows), 12)).astype(np.float32)
    vectors[rows] = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert chosen(0.4, replace(people, vectors=vectors)) == 1 < chosen(0.4)


def test_energy_takes_as_few_directions_as_hold_that_share_of_the_class_means_variance() -> None:
    spectrum = defender().project("isp", 11).spectrum
    share = np.cumsum(spectrum**2) / np.sum(spectrum**2)
    for energy in (0.3, 0.6, 0.9):
        rank = plain_rank(RankRule(energy=energy), defender())
        assert share[rank - 1] >= energy
        assert rank == 1 or share[rank - 2] < energy


def test_a_given_rank_is_taken_as_it_is_and_none_means_three_eighths_or_what_identities_allow() -> None:
    assert plain_rank(RankRule(rank=7), defender()) == 7
    assert plain_rank(RankRule(), Defender(PEOPLE)) == 6
    assert plain_rank(RankRule(), Defender(PEOPLE.take(PEOPLE.identities < 4))) == 3


@pytest.mark.parametrize("energy", [0.0, -1.0, 1.5, float("nan")])
def test_an_energy_that_is_no_share_is_refused(energy: float) -> None:
    told = f"isp: energy {energy:g}; expected a share of more than 0 and at most 1"
    assert refusal(rank=None, energy=energy) == told


@pytest.mark.parametrize("two", [{"energy": 0.5}, {"target": "0.05@0.01"}])
def test_two_rules_at_once_are_refused(two: dict[str, Any]) -> None:
    assert refusal(**two) == "rank, energy and target each decide how many dimensions go; give one of them"


def test_a_rank_that_cannot_be_had_is_refused_in_one_line() -> None:
    assert refusal(rank=0) == "rank 0; an eraser removes at least one dimension"
    assert refusal(rank=17) == "isp: rank 17 with 16 dimensions; expected 0 to 16"
    assert refusal(make_identities(40, 5, 16), rank=12) == "isp: rank 12 with 12 identities; expected at most 11"


def test_an_audit_says_by_which_rule_the_rank_was_found() -> None:
    rules: dict[str, dict[str, Any]] = {
        "given": {"rank": 3},
        "50.0 % of the energy of the class means": {"rank": None, "energy": 0.5},
        "smallest rank with a worst case on calibrate of at most 5.0 % at FAR 0.01": {
            "rank": None,
            "target": "0.05@0.01",
        },
        "usual: three eighths of the dimensions, at most fit identities − 1": {"rank": None},
    }
    for sentence, rule in rules.items():
        erasure = space(quick(**rule), "isp").erasure
        assert erasure is not None
        assert erasure.rank_rule == sentence
