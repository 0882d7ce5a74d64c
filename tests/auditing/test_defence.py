"""If these fail, an eraser learns from people it is judged on, or removes other dimensions than were asked for."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.auditing.audits import PEOPLE, RANK, Steps, looped, named, quick, refusal, renamed, space
from unface import UnfaceError, make_identities
from unface.auditing import Protocol, Transfer, fit_certified
from unface.auditing.attack import Attack
from unface.auditing.defence import Defender, RankRule, Target, choose_rank, parse_target, plain_rank, ready_defence
from unface.auditing.protocol import Prepared, prepare
from unface.data import DEFAULT_SHARES, PAPER_SHARES, EmbeddingSet, Role, Space, split_identities
from unface.erase import INLP, ISP, LEACE, Eraser, Projection, UtilityPCA, fit_projection
from unface.metrics import Scheme
from unface.probe import Plan, draw_bootstrap, pick_probes, run_panel
from unface.progress import Silent
from unface.result.words import percent


def people_with_roles(*roles: str) -> EmbeddingSet:
    column = np.array(roles)[PEOPLE.identities % len(roles)]
    return EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"role": column}, source="faces.npz")


def test_erasers_and_controls_are_fitted_on_fit_identities_and_on_all_of_them(fitted_on: list[EmbeddingSet]) -> None:
    result = quick(eraser=("isp", "sal"))
    split = split_identities(PEOPLE.names, shares=DEFAULT_SHARES, seed=0)
    assert split.hash == result.roles.sha256
    assert len(fitted_on) == 4
    expected = {name for name in PEOPLE.names if split.role_of(name) is Role.FIT}
    assert all(set(seen.names) == expected for seen in fitted_on)
    told = {(one.erasure.fit_identities, one.erasure.fit_images) for one in result.spaces if one.erasure}
    assert told == {(36, 36 * 6)}


def test_the_paper_variant_fits_on_the_attackers_own_identities(fitted_on: list[EmbeddingSet]) -> None:
    quick(variant="paper", seeds=2, far=0.05)
    split = split_identities(PEOPLE.names, shares=PAPER_SHARES, seed=0)
    assert {split.role_of(name) for seen in fitted_on for name in seen.names} == {Role.TRAIN}


def test_another_set_to_fit_on_is_used_instead_and_told(fitted_on: list[EmbeddingSet]) -> None:
    others = renamed(make_identities(20, 4, 16, rank=RANK, between=3.0, seed=11), "other")
    result = quick(fit_on=others)
    assert [set(seen.names) for seen in fitted_on] == [set(others.names)] * 3
    assert result.fit_source is not None
    assert (result.fit_source.name, result.fit_source.sha256) == ("other.npz", others.sha256())
    erasure = space(result, "isp").erasure
    assert erasure is not None
    assert (erasure.fitted_on, erasure.fit_identities, erasure.fit_images) == ("other.npz", 20, 80)


def test_a_set_fitted_on_may_not_be_the_one_transferred_to() -> None:
    others = renamed(make_identities(100, 6, 16, rank=RANK, between=3.0, seed=11), "other")
    assert f"{len(others.names)} identities of it also in" in refusal(fit_on=others, parts=(Transfer(others),))


def test_a_set_of_another_space_cannot_be_fitted_on() -> None:
    others = renamed(PEOPLE, "other", space=Space("clip", None, 16, normalised=False))
    assert refusal(fit_on=others) == (
        "--fit-on other.npz: two embedding spaces never mix: unknown encoder, 16 dimensions, normalised; and 'clip', "
        "16 dimensions, normalised"
    )


def test_people_of_the_audited_set_cannot_be_fitted_on_from_elsewhere() -> None:
    some = PEOPLE.identities < 30
    names = [
        name if code == 7 else f"other {name}" for name, code in zip(named(PEOPLE), PEOPLE.identities, strict=True)
    ]
    others = EmbeddingSet.from_arrays(PEOPLE.vectors[some], np.array(names)[some], source="other.npz")
    assert refusal(fit_on=others) == (
        "--fit-on other.npz: 1 identity of it also in synthetic, such as 'p0008'; take them out, or rename them if "
        "they are other people"
    )


def test_the_usual_eraser_is_left_out_where_nobody_can_be_fitted_and_one_asked_for_is_refused() -> None:
    nobody = people_with_roles("train", "calibrate", "test")
    assert [one.name for one in quick(nobody, eraser=None, rank=None, split="role").spaces] == ["raw"]
    told = "faces.npz: 0 identities for an eraser to learn from; at least 3 are needed: name more as 'fit', or give"
    assert refusal(nobody, split="role") == f"{told} --fit-on"
    roles = np.array(["train", "calibrate", "test"])[PEOPLE.identities % 3]
    roles[PEOPLE.identities < 2] = "fit"
    two = EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"role": roles})
    assert [one.name for one in quick(two, eraser=None, rank=None, split="role").spaces] == ["raw"]
    assert refusal(two, split="role", rank=1).startswith("arrays: 2 identities for an eraser to learn from; ")


def test_a_rank_asked_for_is_refused_also_for_the_usual_eraser() -> None:
    assert refusal(eraser=None, rank=17) == "isp: rank 17 with 16 dimensions; expected 0 to 16"
    assert refusal(make_identities(30, 6, 16), rank=9) == "isp: rank 9 with 9 identities; expected at most 8"


def at_own_lengths(eraser: Eraser) -> Projection:
    """Fitted on vectors that were not scaled to length one."""
    return fit_projection(eraser, replace(PEOPLE, vectors=3 * PEOPLE.unit().vectors))


@pytest.mark.parametrize(
    "eraser", [LEACE(RANK), UtilityPCA(RANK, utility=PEOPLE.vectors[:50])], ids=["leace", "utility"]
)
def test_a_ready_projection_with_a_mean_of_other_lengths_is_refused(eraser: Eraser) -> None:
    """The audit scales vectors to length one and ``unface apply`` does not: two different maps."""
    projection, unit = at_own_lengths(eraser), PEOPLE.unit().vectors
    assert not np.allclose(projection.apply(3 * unit), projection.apply(unit), atol=0.01)
    assert refusal(projections=[projection]) == (
        f"projection: {projection.kind} subtracts a mean of vectors that were not scaled, but the audit works on unit "
        "vectors, so it would not measure what 'unface apply' releases; fit it with 'unface fit', on unit vectors"
    )


@pytest.mark.parametrize("eraser", [ISP(RANK), ISP(RANK, whitened=True), INLP(RANK)], ids=["isp", "oblique", "inlp"])
def test_a_ready_projection_without_a_mean_is_the_same_map_at_any_length(eraser: Eraser) -> None:
    projection, unit = at_own_lengths(eraser), PEOPLE.unit()
    assert (projection.space.normalised, projection.mean) == (False, None)
    np.testing.assert_allclose(projection.apply(3 * unit.vectors), projection.apply(unit.vectors), atol=1e-6)
    assert ready_defence(projection, "projection", unit).projection is projection


def test_a_ready_projection_with_a_mean_of_unit_vectors_is_the_same_map_at_any_length() -> None:
    projection = fit_certified(renamed(PEOPLE, "other"), "leace", rank=RANK, hold_out=0)
    unit = PEOPLE.unit()
    assert projection.mean is not None
    np.testing.assert_allclose(projection.apply(3 * unit.vectors), projection.apply(unit.vectors), atol=1e-6)
    assert ready_defence(projection, "projection", unit).projection is projection


FAR = 0.02
TARGETS = (0.1, 0.4, 0.8)
SPREAD = make_identities(120, 5, 12, between=1.6, seed=5)


@cache
def prepared() -> Prepared:
    return prepare(SPREAD, Protocol(k=2))


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
    steps = Steps()
    found = choose_rank(rule, "isp", defender(), audited or prepared().embeddings, attack(ks), steps)
    assert steps.totals == steps.done, "no bar stops before its end"
    return found


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
    least = [min(rank for rank, found in on_calibrate((k,)).items() if found <= 0.65) for k in (1, 2)]
    assert least[0] != least[1]
    both = on_calibrate((1, 2))
    assert chosen(0.65, ks=(1, 2)) == min(rank for rank, found in both.items() if found <= 0.65) == max(least)


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
    assert refusal(rank="0.05@1e-6") == told


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
        rank = plain_rank(RankRule(energy=energy), "isp", defender())
        assert share[rank - 1] >= energy
        assert rank == 1 or share[rank - 2] < energy


def test_a_given_rank_is_taken_as_it_is_and_none_means_three_eighths_or_what_identities_allow() -> None:
    assert plain_rank(RankRule(rank=7), "isp", defender()) == 7
    assert plain_rank(RankRule(), "isp", Defender(PEOPLE)) == 6
    assert plain_rank(RankRule(), "isp", Defender(PEOPLE.take(PEOPLE.identities < 4))) == 3


@pytest.mark.parametrize("energy", [0.0, -1.0, 1.5, float("nan")])
def test_an_energy_that_is_no_share_is_refused(energy: float) -> None:
    told = f"isp: energy {energy:g}; expected a share of more than 0 and at most 1"
    assert refusal(rank=energy) == told


def test_one_as_a_float_could_be_dimensions_or_a_share_and_is_refused() -> None:
    told = "rank 1.0 could mean one dimension or all of the class means' variance; give 1, or a share below 1"
    assert refusal(rank=1.0) == told


@pytest.mark.parametrize("two", [{"energy": 0.5}, {"target": Target(0.05, 0.01)}])
def test_two_rules_at_once_are_refused(two: dict[str, Any]) -> None:
    with pytest.raises(UnfaceError) as caught:
        RankRule(rank=3, **two)
    assert str(caught.value) == "rank, energy and target each set how many dimensions are removed; give one"


@pytest.mark.parametrize(
    ("rank", "rule"),
    [
        (None, RankRule()),
        (3, RankRule(rank=3)),
        (0.5, RankRule(energy=0.5)),
        ("0.05@0.01", RankRule(target=Target(0.05, 0.01))),
    ],
)
def test_a_rank_is_dimensions_a_share_or_a_target_by_its_type(rank: int | float | str | None, rule: RankRule) -> None:
    assert RankRule.of(rank) == rule


def test_a_rank_that_cannot_be_had_is_refused_in_one_line() -> None:
    assert refusal(rank=0) == "rank 0; an eraser removes at least one dimension"
    assert refusal(rank=17) == "isp: rank 17 with 16 dimensions; expected 0 to 16"
    assert refusal(make_identities(40, 5, 16), rank=12) == "isp: rank 12 with 12 identities; expected at most 11"


def test_an_audit_says_by_which_rule_the_rank_was_found() -> None:
    rules: dict[str, int | float | str | None] = {
        "given": 3,
        "50.0 % of the energy of the class means": 0.5,
        "smallest rank with a worst case on calibrate of at most 5.0 % at FAR 0.01": "0.05@0.01",
        "usual: three eighths of the dimensions, at most fit identities − 1": None,
    }
    for sentence, rank in rules.items():
        erasure = space(looped() if rank == 3 else quick(rank=rank), "isp").erasure
        assert erasure is not None
        assert erasure.rank_rule == sentence
