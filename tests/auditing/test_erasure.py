"""If these fail, an audit says that an eraser protects where its own numbers do not."""

from functools import cache

import numpy as np
import pytest

from tests.auditing.audits import (
    PEOPLE,
    about,
    axes,
    looped,
    named,
    quick,
    refusal,
    several,
    space,
    tar,
    worst,
)
from tests.kit.results import AuditResult
from unface import make_identities
from unface.data import EmbeddingSet


@cache
def with_inlp() -> AuditResult:
    return quick(eraser=("inlp", "isp"))


@cache
def with_axes() -> AuditResult:
    """One eraser and one ready projection of another rank; five pictures lie on the one axis that it removes."""
    vectors = PEOPLE.vectors.copy()
    vectors[[0, 50, 100, 150, 200]] = np.eye(16, dtype=np.float32)[0]
    return quick(EmbeddingSet.from_arrays(vectors, named(PEOPLE)), projections=[axes(0)])


def test_the_raw_space_comes_first_then_erasers_in_the_order_asked_for_then_controls() -> None:
    spaces = several().spaces
    assert [one.name for one in spaces] == ["raw", "leace", "isp", "random", "pca"]
    assert spaces[0].erasure is None
    assert [one.erasure.control for one in spaces if one.erasure] == [False, False, True, True]


def test_an_eraser_of_the_planted_rank_leaves_chance_and_a_random_one_leaves_most() -> None:
    """Three of sixteen dimensions at random are three sixteenths of the identity, give or take."""
    result = looped()
    raw, isp, random = (space(result, name) for name in ("raw", "isp", "random"))
    after = worst(isp)
    assert after.tar is not None
    assert after.chance is not None
    assert after.tar.low <= max(after.chance, after.far)
    assert tar(raw) > 0.1
    assert tar(random) > 0.6 * tar(raw)


def test_changes_say_that_the_eraser_lowers_it_and_that_the_random_control_does_not() -> None:
    certain = {one.name: {change.against: change.high < 0 for change in one.changes} for one in looped().spaces}
    assert certain["isp"] == {"raw": True, "random": True, "pca": False}
    assert certain["random"] == {"raw": False, "isp": False, "pca": False}
    assert certain["raw"] == {}


def test_a_change_is_the_difference_of_two_points_and_its_interval_holds_it() -> None:
    result = looped()
    for one in result.spaces[1:]:
        for change in one.changes:
            other = space(result, change.against)
            assert change.value == pytest.approx(tar(one) - tar(other))
            assert change.low <= change.value <= change.high
            assert (change.probe, change.against_probe) == (worst(one).probe, worst(other).probe)


def test_intervals_of_changes_are_paired() -> None:
    """isp and pca remove nearly the same here: on the same draws of people their difference moves little."""
    result = looped()
    change = next(change for change in space(result, "isp").changes if change.against == "pca")
    widths = [one.high - one.low for name in ("isp", "pca") for one in [worst(space(result, name)).tar] if one]
    assert change.high - change.low < 0.75 * np.linalg.norm(widths)


def test_ready_projections_are_measured_without_a_fit_and_beside_controls_of_their_ranks() -> None:
    result = quick(eraser=None, rank=None, projections=(axes(0, 1), axes(4)))
    names = ["raw", "projection", "projection 2", "random@1", "pca@1", "random@2", "pca@2"]
    assert [one.name for one in result.spaces] == names
    erasure = space(result, "projection 2").erasure
    assert erasure is not None
    assert (erasure.method, erasure.rank, erasure.fit_identities, erasure.fitted_on) == ("axes", 1, None, "elsewhere")
    assert erasure.projection_sha256 == axes(4).sha256


def test_a_ready_projection_leaves_what_an_audit_of_the_vectors_it_makes_measures() -> None:
    """By hand: the same people, projected before the audit sees them."""
    unit = PEOPLE.unit().vectors.astype(np.float64)
    unit[:, [2, 5]] = 0
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    made = EmbeddingSet.from_arrays(unit.astype(np.float32), named(PEOPLE), ids=PEOPLE.ids)
    assert tar(space(quick(eraser=(), projections=[axes(2, 5)]), "projection")) == tar(quick(made, eraser=()).raw)


def test_a_projection_of_another_space_is_refused() -> None:
    assert refusal(projections=[axes(0, dim=8)]).startswith("projection: fitted in unknown encoder, 8 dimensions")


def test_an_unknown_eraser_is_refused_with_those_there_are() -> None:
    known = "isp, isp-whitened, leace, sal, inlp, rlace, fair-pca, utility-pca, utility-leace, keeper, random, pca"
    assert refusal(eraser="magic") == f"eraser 'magic' is not known; choose from {known}"


def test_controls_are_of_the_rank_of_each_eraser_and_compared_with_that_one_alone() -> None:
    result = with_axes()
    ranks = {one.name: one.erasure.rank for one in result.spaces if one.erasure}
    assert ranks == {"projection": 1, "isp": 3, "random@1": 1, "pca@1": 1, "random@3": 3, "pca@3": 3}
    assert {change.against for change in space(result, "isp").changes} == {"raw", "random@3", "pca@3"}
    assert {change.against for change in space(result, "projection").changes} == {"raw", "random@1", "pca@1"}


def test_without_an_eraser_it_is_said_that_none_was_measured() -> None:
    missing = "what an eraser leaves: this is the space as it is"
    alone = quick(eraser=())
    assert [one.name for one in alone.spaces] == ["raw"]
    assert missing in alone.not_measured
    assert missing not in looped().not_measured


def test_of_many_erasers_the_verdict_takes_the_one_that_is_best_on_calibrate() -> None:
    on_calibrate = {name: worst(space(with_inlp(), name)).calibrate_tar for name in ("inlp", "isp")}
    assert on_calibrate["isp"] is not None
    assert on_calibrate["inlp"] is not None
    assert on_calibrate["isp"] < on_calibrate["inlp"]
    assert " After ISP, the best of 2 erasers (3 of 16 dimensions removed): " in with_inlp().verdict


def test_a_control_that_does_as_well_is_named() -> None:
    """People who differ in the largest directions: principal components find them without any label."""
    (finding,) = (finding for finding in looped().findings if finding.about == "isp")
    assert finding.severity == "warning"
    assert finding.text.startswith("no measurable difference from label-free PCA of equal rank (")
    assert " points of TAR): identity labels gave no measurable benefit over PCA" in finding.text
    assert "a random subspace" not in finding.text


def test_an_eraser_that_is_certainly_worse_than_a_control_is_not_said_to_be_like_it() -> None:
    texts = [finding.text for finding in with_inlp().findings if finding.about == "inlp"]
    assert any(text.startswith("leaves more than label-free PCA of equal rank (+") for text in texts)
    assert not any(text.startswith("no measurable difference from label-free PCA") for text in texts)


def test_vectors_of_which_nothing_is_left_are_counted() -> None:
    erasure = space(with_axes(), "projection").erasure
    assert erasure is not None
    assert erasure.degenerate == 5
    assert "nothing is left of 5 vectors after erasure; what becomes zero matches nobody" in about(
        with_axes(), "projection"
    )


def test_a_ready_projection_is_said_to_be_of_unknown_people() -> None:
    assert "this projection does not record who it was fitted on" in about(with_axes(), "projection")
    assert not any("does not record" in finding.text for finding in looped().findings)


def test_a_fit_whose_directions_are_all_used_up_says_so() -> None:
    few = make_identities(40, 6, 16, between=2.0, seed=1)
    notes = [finding.text for finding in quick(few, far=0.05, rank=11).findings if finding.severity == "note"]
    assert "rank is capped at 11 because only 12 people were available to fit on; add people to remove more" in notes


def test_removing_more_directions_than_vectors_vary_in_is_a_finding() -> None:
    """Sixteen numbers, five directions: the other eleven hold a thousandth of them."""
    vectors = PEOPLE.vectors * np.where(np.arange(16) < 5, 1.0, 1e-3).astype(np.float32)
    thin = EmbeddingSet.from_arrays(vectors, named(PEOPLE))
    assert "only 5 of the 7 removed directions reach 1 % of the largest singular value" in about(
        quick(thin, rank=7), "isp"
    )
    assert "directions removed carry" not in about(quick(thin, rank=5), "isp")


def test_unlike_rates_on_test_people_stand_beside_their_change() -> None:
    """Calibrated thresholds of two spaces may accept unlike shares of test impostors: part of a change is theirs."""
    result, seen = several(), 0
    for one in result.spaces[1:]:
        for change in one.changes:
            other = result.space(change.against)
            assert other is not None
            ours, theirs = one.worst_at(change.k, change.far), other.worst_at(change.k, change.far)
            assert ours is not None
            assert theirs is not None
            assert ours.achieved_far is not None
            assert theirs.achieved_far is not None
            low, high = sorted((ours.achieved_far.value, theirs.achieved_far.value))
            assert (change.same_rate is not None) == (high > 1.5 * low)
            if change.same_rate is not None:
                seen += 1
                assert change.same_rate.achieved_far == ours.achieved_far
                assert change.same_rate.against_achieved_far == theirs.achieved_far
                for point, here in ((ours, change.same_rate.tar), (theirs, change.same_rate.against_tar)):
                    assert point.tar is not None
                    assert point.achieved_far is not None
                    assert here.denominator == point.tar.denominator
                    assert point.achieved_far is not None
                    if point.achieved_far.value > point.far:  # a stricter threshold than the calibrated one
                        assert here.numerator <= point.tar.numerator
                    else:
                        assert here.numerator >= point.tar.numerator - 3
    assert seen
