"""If these fail, an audit says that an eraser protects, or at what price, where its own numbers do not."""

import numpy as np
import pytest

from tests.auditing.looped import PEOPLE, RANK, axes, looped, named, quick, refusal, renamed, space, tar, worst
from unface import make_identities
from unface.data import EmbeddingSet, Space


def test_the_raw_space_comes_first_then_erasers_in_the_order_asked_for_then_controls() -> None:
    found = quick(erasers=("leace", "isp", "leace")).spaces
    assert [one.name for one in found] == ["raw", "leace", "isp", "random", "pca"]
    assert found[0].erasure is None
    assert [one.erasure.control for one in found if one.erasure] == [False, False, True, True]


def test_an_eraser_of_the_planted_rank_leaves_chance_and_a_random_one_leaves_nearly_all() -> None:
    result = looped()
    raw, isp, random = (space(result, name) for name in ("raw", "isp", "random"))
    after = worst(isp)
    assert after.tar is not None
    assert after.chance is not None
    assert after.tar.low <= max(after.chance, after.far)
    assert tar(raw) > 0.1
    assert tar(random) > 0.9 * tar(raw)


def test_changes_say_that_the_eraser_lowers_it_and_that_the_random_control_does_not() -> None:
    sure = {one.name: {change.against: change.high < 0 for change in one.changes} for one in looped().spaces}
    assert sure["isp"] == {"raw": True, "random": True, "pca": False}
    assert sure["random"] == {"raw": False, "isp": False, "pca": False}
    assert sure["raw"] == {}


def test_a_change_is_the_difference_of_two_points_and_its_interval_holds_it() -> None:
    result = looped()
    for one in result.spaces[1:]:
        for change in one.changes:
            other = space(result, change.against)
            assert change.value == pytest.approx(tar(one) - tar(other))
            assert change.low <= change.value <= change.high
            assert (change.probe, change.against_probe) == (worst(one).probe, worst(other).probe)


def test_intervals_of_changes_are_paired() -> None:
    """isp and pca remove nearly the same here: on the same draws of people their difference hardly moves."""
    result = looped()
    change = next(change for change in space(result, "isp").changes if change.against == "pca")
    widths = [one.high - one.low for name in ("isp", "pca") for one in [worst(space(result, name)).tar] if one]
    assert change.high - change.low < 0.75 * max(widths)


def test_options_that_have_nothing_to_act_on_are_refused() -> None:
    others = renamed(make_identities(40, 5, 16, rank=RANK, between=3.0, seed=11), "other")
    for option, given in (("--transfer", {"transfer": others}), ("--fit-on", {"fit_on": others})):
        assert refusal(erasers=(), **given).startswith(f"{option}: no eraser is fitted in this audit")
    assert refusal(erasers=(), fit_counts=(12,)).startswith("--fit-counts: no eraser is fitted")
    assert refusal(fit_counts=(1, 1000)).startswith("--fit-counts: none lies above rank")


def test_ready_projections_are_measured_without_a_fit_and_beside_controls_of_their_ranks() -> None:
    result = quick(erasers=None, rank=None, projections=(axes(0, 1), axes(4)))
    names = ["raw", "projection", "projection 2", "random@1", "pca@1", "random@2", "pca@2"]
    assert [one.name for one in result.spaces] == names
    erasure = space(result, "projection 2").erasure
    assert erasure is not None
    assert (erasure.method, erasure.rank, erasure.fit_identities, erasure.fitted_on) == ("axes", 1, None, "elsewhere")
    assert erasure.projection_sha256 == axes(4).sha256


def test_a_ready_projection_leaves_what_an_audit_of_the_vectors_it_makes_finds() -> None:
    """By hand: the same people, projected before the audit sees them."""
    unit = PEOPLE.unit().vectors.astype(np.float64)
    unit[:, [2, 5]] = 0
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    made = EmbeddingSet.from_arrays(unit.astype(np.float32), named(PEOPLE), ids=PEOPLE.ids)
    assert tar(space(quick(erasers=(), projections=[axes(2, 5)]), "projection")) == tar(quick(made, erasers=()).raw)


def test_a_projection_of_another_space_is_refused() -> None:
    assert refusal(projections=[axes(0, dim=8)]).startswith("projection: fitted in unknown encoder, 8 dimensions")


def test_without_an_eraser_it_is_said_that_none_was_measured() -> None:
    missing = "what an eraser leaves: this is the space as it is"
    alone = quick(erasers=())
    assert [one.name for one in alone.spaces] == ["raw"]
    assert missing in alone.not_measured
    assert missing not in looped().not_measured
    assert any("--utility" in text for text in looped().not_measured)
    assert any("--transfer" in text for text in looped().not_measured)


def test_an_unknown_eraser_is_refused_with_those_there_are() -> None:
    known = "isp, isp-whitened, leace, sal, inlp, rlace, fair-pca, utility-pca, utility-leace, random, pca"
    assert refusal(erasers="magic") == f"eraser 'magic' is not known; choose from {known}"


def test_controls_are_of_the_rank_of_each_eraser_and_compared_with_that_one_alone() -> None:
    result = quick(projections=[axes(0)])
    ranks = {one.name: one.erasure.rank for one in result.spaces if one.erasure}
    assert ranks == {"projection": 1, "isp": 3, "random@1": 1, "pca@1": 1, "random@3": 3, "pca@3": 3}
    assert {change.against for change in space(result, "isp").changes} == {"raw", "random@3", "pca@3"}
    assert {change.against for change in space(result, "projection").changes} == {"raw", "random@1", "pca@1"}


def test_a_projection_that_removes_nothing_the_task_uses_keeps_all_of_it() -> None:
    things = make_identities(8, 12, 16, between=2.0, seed=9)
    flat = things.vectors.copy()
    flat[:, [3, 4]] = 0
    useful = EmbeddingSet.from_arrays(flat, [f"class {code}" for code in things.identities], source="things.npz")
    result = quick(erasers=(), projections=[axes(3, 4), axes(*range(5, 16))], utility=[useful])
    spared, hit = (
        {kept.measure: kept for kept in space(result, name).utility if kept.on == "things.npz"}
        for name in ("projection", "projection 2")
    )
    assert set(spared) >= {"knn", "linear"}
    for kept in spared.values():
        assert kept.retained.value == 1
        assert kept.raw.value == kept.erased.value
    assert any(kept.erased.value < kept.raw.value for kept in hit.values())
    assert [given.name for given in result.utility_sources] == ["things.npz"]
    assert not any("--utility" in text for text in result.not_measured)


def test_utility_in_another_space_is_refused() -> None:
    things = renamed(PEOPLE, "thing", space=Space("clip", None, 16, normalised=False))
    assert refusal(utility=[things]).startswith("two embedding spaces never mix: ")


def test_vectors_of_a_task_to_spare_bring_one_more_eraser() -> None:
    spread = make_identities(8, 12, 16, rank=2, between=4.0, seed=3)
    things = EmbeddingSet.from_arrays(spread.vectors, [f"class {code}" for code in spread.identities], source="t.npz")
    result = quick(utility=[things], utility_aware=things)
    names = [one.name for one in result.spaces]
    assert names[:2] == ["raw", "isp"]
    assert names[2].startswith("utility-")
    assert names[3:] == ["random", "pca"]
    elsewhere = renamed(things, "thing", space=Space("clip", None, 16, normalised=False))
    assert refusal(utility_aware=elsewhere).startswith("two embedding spaces never mix: ")
    told = "eraser 'utility-pca' spares a task; give vectors of that task as --utility-aware"
    assert refusal(erasers="utility-pca") == told


def test_maps_are_of_the_raw_space_and_of_the_first_eraser_on_the_same_pictures() -> None:
    maps = quick(erasers=("isp", "leace"), maps=True).maps
    assert [drawn.space for drawn in maps] == ["raw", "isp"]
    assert maps[0].identity == maps[1].identity
    assert len(set(maps[0].identity)) == 12
    assert len(maps[0].x) == len(maps[0].y) == len(maps[0].identity) == 12 * 6


def test_attribute_swaps_are_measured_in_the_raw_space_and_after_each_eraser() -> None:
    glasses = np.where(PEOPLE.vectors[:, 7] > 0, "yes", "no")
    wearing = EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"glasses": glasses}, source="faces.npz")
    found = quick(wearing, attribute="glasses").attribute_swaps
    assert [(swap.space, swap.attribute) for swap in found] == [("raw", "glasses"), ("isp", "glasses")]
    told = "faces.npz: has no column 'hat'; other columns are: glasses"
    assert refusal(wearing, attribute="hat") == told
    alike = EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"hat": ["yes"] * len(PEOPLE)})
    assert refusal(alike, attribute="hat") == "arrays: 'hat' has 1 values; an attribute swap needs two"
