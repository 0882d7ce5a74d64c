"""If these fail, the sentences about erasure say something else than the numbers of the spaces."""

import numpy as np
from unface.auditing.aftermath import after_sentence
from unface.auditing.schema import SpaceResult
from unface.auditing.words import interval, percent, times

from tests.auditing.looped import PEOPLE, axes, looped, named, quick, space, worst
from unface import make_identities
from unface.auditing import AuditResult, headline
from unface.data import EmbeddingSet


def test_the_sentence_after_erasure_says_the_numbers_of_the_points() -> None:
    result = looped()
    head = headline(result.raw.points)
    assert head is not None
    isp, random, pca = (worst(space(result, name)) for name in ("isp", "random", "pca"))
    assert isp.tar
    assert random.tar
    assert pca.tar
    assert isp.times_chance
    kept = space(result, "isp").utility[0].retained
    assert result.verdict.endswith(
        f" After ISP (3 of 16 dimensions removed): {percent(isp.tar.value)} {interval(isp.tar.low, isp.tar.high)}, "
        f"{times(isp.times_chance)} chance; {percent(random.tar.value)} after a random subspace and "
        f"{percent(pca.tar.value)} after label-free PCA of equal rank; "
        f"{percent(kept.value)} {interval(kept.low, kept.high)} of nearest neighbours stay."
    )


def test_of_many_erasers_the_verdict_takes_the_one_that_is_best_on_calibrate() -> None:
    result = quick(erasers=("inlp", "isp"))
    on_calibrate = {name: worst(space(result, name)).calibrate_tar for name in ("inlp", "isp")}
    assert on_calibrate["isp"] is not None
    assert on_calibrate["inlp"] is not None
    assert on_calibrate["isp"] < on_calibrate["inlp"]
    assert " After ISP, the best of 2 on calibrate (3 of 16 dimensions removed): " in result.verdict


def test_a_control_that_does_as_well_is_told() -> None:
    """People who differ in the largest directions: principal components find them without any label."""
    told = {(finding.about, finding.severity): finding.text for finding in looped().findings}
    assert told["isp", "warning"].startswith("cannot be told from label-free PCA of equal rank (")
    assert " points of TAR): here " in told["isp", "warning"]
    assert "a random subspace" not in told["isp", "warning"]


def test_an_eraser_that_is_surely_worse_than_a_control_is_not_said_to_be_like_it() -> None:
    told = [finding.text for finding in quick(erasers="inlp").findings if finding.about == "inlp"]
    assert any(text.startswith("leaves the attacker more than label-free PCA of equal rank does (+") for text in told)
    assert not any(text.startswith("cannot be told from label-free PCA") for text in told)


def test_vectors_of_which_nothing_is_left_are_counted_and_told() -> None:
    """Five pictures on the one axis that goes."""
    vectors = PEOPLE.vectors.copy()
    vectors[[0, 50, 100, 150, 200]] = np.eye(16, dtype=np.float32)[0]
    result = quick(EmbeddingSet.from_arrays(vectors, named(PEOPLE)), erasers=(), projections=[axes(0)])
    erasure = space(result, "projection").erasure
    assert erasure is not None
    assert erasure.degenerate == 5
    told = [finding.text for finding in result.findings if finding.about == "projection"]
    assert "5 vectors have nothing left after it; they become zero and match nobody" in told


def test_a_fit_whose_directions_are_all_used_up_says_so() -> None:
    few = make_identities(40, 6, 16, between=2.0, seed=1)
    told = [finding.text for finding in quick(few, fars=(0.05,), rank=11).findings if finding.severity == "note"]
    assert "all 11 directions of 12 fit identities go; more need more identities" in told


def test_removing_more_directions_than_vectors_vary_in_is_told() -> None:
    """Sixteen numbers, five directions: the other eleven hold a thousandth of them."""
    vectors = PEOPLE.vectors * np.where(np.arange(16) < 5, 1.0, 1e-3).astype(np.float32)
    thin = EmbeddingSet.from_arrays(vectors, named(PEOPLE))
    assert "only 5 of the 7 directions removed carry 1 % of the first or more" in said_of(quick(thin, rank=7), "isp")
    assert "directions removed carry" not in said_of(quick(thin, rank=5), "isp")


def said_of(result: AuditResult, name: str) -> str:
    return " ".join(finding.text for finding in result.findings if finding.about == name)


def at_k(one: SpaceResult, calibrate: dict[int, float]) -> SpaceResult:
    """The worst case of a space at several k, with these TARs on calibrate and ten times as much on test."""
    (point,) = [point for point in one.points if point.worst]
    assert point.tar is not None
    made = [
        point.model_copy(
            update={"k": k, "calibrate_tar": tar, "tar": point.tar.model_copy(update={"value": 10 * tar})},
        )
        for k, tar in calibrate.items()
    ]
    return one.model_copy(update={"points": made})


def test_what_is_left_is_said_at_the_k_that_is_worst_after_erasure_and_not_before_it() -> None:
    result = looped()
    raw, isp = at_k(result.raw, {1: 0.05, 4: 0.09}), at_k(space(result, "isp"), {1: 0.02, 4: 0.01})
    head = headline(raw.points)
    assert head is not None
    assert head.k == 4
    said = after_sentence([raw, isp], head)
    assert f": {percent(0.2)} [" in said
    assert "chance (worst with 1 picture)" in said


def test_a_ready_projection_is_said_to_be_of_unknown_people() -> None:
    told = [finding.text for finding in quick(projections=[axes(0)]).findings if finding.about == "projection"]
    assert any(text.startswith("nobody knows here whom this projection was fitted on") for text in told)
    assert not any("nobody knows here" in finding.text for finding in looped().findings)


def test_usefulness_measured_on_the_very_vectors_that_were_spared_is_told() -> None:
    things = make_identities(6, 8, 16, between=2.0, seed=9)
    others = make_identities(6, 8, 16, between=2.0, seed=10)
    told = [finding for finding in quick(utility=[things], utility_aware=things).findings if finding.about == "utility"]
    assert [finding.severity for finding in told] == ["warning"]
    assert told[0].text.startswith(f"{len(things)} vectors of synthetic were also given to be spared")
    clean = quick(utility=[things], utility_aware=others)
    assert not [finding for finding in clean.findings if finding.about == "utility"]
    assert clean.utility_aware_source is not None
    assert clean.utility_aware_source.sha256 == others.sha256()
