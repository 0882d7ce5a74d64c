"""If these fail, an audit says at what price an eraser protects where its own numbers do not."""

from dataclasses import replace

from tests.auditing.audits import PEOPLE, about, axes, complete, looped, quick, refusal, renamed, space
from unface import make_identities
from unface.auditing.utility import Utility
from unface.data import EmbeddingSet, Space


def things(seed: int) -> EmbeddingSet:
    """Of no person."""
    made = make_identities(6, 8, 16, between=2.0, seed=seed)
    return EmbeddingSet.from_arrays(made.vectors, [f"class {code}" for code in made.identities], source=f"{seed}.npz")


ELSEWHERE = renamed(PEOPLE, "thing", space=Space("clip", None, 16, normalised=False))


def test_a_projection_that_removes_nothing_the_task_uses_keeps_all_of_it() -> None:
    made = make_identities(8, 12, 16, between=2.0, seed=9)
    flat = made.vectors.copy()
    flat[:, [3, 4]] = 0
    useful = EmbeddingSet.from_arrays(flat, [f"class {code}" for code in made.identities], source="things.npz")
    result = quick(eraser=(), projections=[axes(3, 4), axes(*range(5, 16))], utility=[useful])
    spared, hit = (
        {kept.measure: kept for kept in space(result, name).utility if kept.on == "things.npz"}
        for name in ("projection", "projection 2")
    )
    assert set(spared) >= {"knn", "linear"}
    for kept in spared.values():
        assert kept.retained.value == 1
        assert kept.raw.value == kept.erased.value
    assert any(kept.erased.value < kept.raw.value for kept in hit.values())


def test_sets_are_named_in_the_result_and_a_missing_one_is_listed() -> None:
    assert [given.name for given in Utility.of(complete()).sources] == ["things.npz"]
    assert not any("--utility" in text for text in complete().not_measured)
    assert any("--utility" in text for text in looped().not_measured)
    assert Utility.of(looped()).sources == []


def test_utility_in_another_space_is_refused() -> None:
    assert refusal(utility=[ELSEWHERE]).startswith("two embedding spaces never mix: ")
    assert refusal(spare=ELSEWHERE).startswith("--spare thing.npz: two embedding spaces never mix: ")


def test_vectors_to_spare_bring_one_more_eraser_and_a_warning_where_usefulness_is_measured_on_them() -> None:
    result = quick(utility=[things(9)], spare=replace(things(9), source="spared.npz"))
    names = [one.name for one in result.spaces]
    assert names[:2] == ["raw", "isp"]
    assert names[2].startswith("utility-")
    assert names[3:] == ["random", "pca"]
    assert [finding.severity for finding in result.findings if finding.about == "utility"] == ["warning"]
    assert about(result, "utility").startswith(f"{len(things(9))} vectors of 9.npz were also given as --spare")


def test_usefulness_on_other_vectors_than_those_spared_needs_no_warning() -> None:
    result = quick(utility=[things(9)], spare=things(10))
    assert about(result, "utility") == ""
    spared = Utility.of(result).spared
    assert spared is not None
    assert spared.sha256 == things(10).sha256()


def test_an_eraser_that_spares_a_task_needs_its_vectors() -> None:
    told = "eraser 'utility-pca' spares a task; give vectors of that task as --spare"
    assert refusal(eraser="utility-pca") == told
