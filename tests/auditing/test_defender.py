"""If these fail, an eraser learns from people it is judged on, or from nobody, and no one is told."""

import numpy as np

from tests.auditing.looped import PEOPLE, RANK, named, quick, refusal, renamed, space
from unface import make_identities
from unface.data import DEFAULT_SHARES, PAPER_SHARES, EmbeddingSet, Role, Space, split_identities


def people_with_roles(*roles: str) -> EmbeddingSet:
    column = np.array(roles)[PEOPLE.identities % len(roles)]
    return EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"role": column}, source="faces.npz")


def test_erasers_and_controls_are_fitted_on_fit_identities_and_on_all_of_them(fitted_on: list[EmbeddingSet]) -> None:
    result = quick(erasers=("isp", "sal"))
    split = split_identities(PEOPLE.names, shares=DEFAULT_SHARES, seed=0)
    assert split.hash == result.roles.sha256
    assert len(fitted_on) == 4
    expected = {name for name in PEOPLE.names if split.role_of(name) is Role.FIT}
    assert all(set(seen.names) == expected for seen in fitted_on)
    told = {(one.erasure.fit_identities, one.erasure.fit_images) for one in result.spaces if one.erasure}
    assert told == {(36, 36 * 6)}


def test_the_paper_variant_fits_on_the_attackers_own_identities(fitted_on: list[EmbeddingSet]) -> None:
    quick(variant="paper", seeds=2, fars=(0.05,))
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


def test_the_same_pictures_under_other_names_cannot_be_fitted_on_or_spared() -> None:
    again = f"{len(PEOPLE)} vectors of it also in the audited set"
    assert again in refusal(fit_on=renamed(PEOPLE, "other"))
    assert again in refusal(utility_aware=renamed(PEOPLE, "other"))


def test_a_set_fitted_on_may_not_be_the_one_transferred_to() -> None:
    others = renamed(make_identities(100, 6, 16, rank=RANK, between=3.0, seed=11), "other")
    assert f"{len(others.names)} identities of it also in" in refusal(fit_on=others, transfer=others)


def test_a_set_of_another_space_cannot_be_fitted_on() -> None:
    others = renamed(PEOPLE, "other", space=Space("clip", None, 16, normalised=False))
    assert refusal(fit_on=others) == (
        "two embedding spaces never mix: unknown encoder, 16 dimensions, normalised; and 'clip', 16 dimensions, "
        "normalised"
    )


def test_people_of_the_audited_set_cannot_be_fitted_on_from_elsewhere() -> None:
    some = PEOPLE.identities < 30
    names = [
        name if code == 7 else f"other {name}" for name, code in zip(named(PEOPLE), PEOPLE.identities, strict=True)
    ]
    others = EmbeddingSet.from_arrays(PEOPLE.vectors[some], np.array(names)[some], source="other.npz")
    assert refusal(fit_on=others) == (
        "other.npz: 1 identity of it also in the audited set, such as 'p0008'; nobody may have two roles: take them "
        "out, or rename them if they are other people"
    )


def test_the_usual_eraser_is_left_out_where_nobody_can_be_fitted_and_one_asked_for_is_refused() -> None:
    nobody = people_with_roles("train", "calibrate", "test")
    assert [one.name for one in quick(nobody, erasers=None, rank=None, split_column="role").spaces] == ["raw"]
    told = "faces.npz: 0 identities for an eraser to learn from; at least 3 are needed: name more as 'fit', or give"
    assert refusal(nobody, split_column="role") == f"{told} --fit-on"
    roles = np.array(["train", "calibrate", "test"])[PEOPLE.identities % 3]
    roles[PEOPLE.identities < 2] = "fit"
    two = EmbeddingSet.from_arrays(PEOPLE.vectors, named(PEOPLE), labels={"role": roles})
    assert [one.name for one in quick(two, erasers=None, rank=None, split_column="role").spaces] == ["raw"]
    assert refusal(two, split_column="role", rank=1).startswith("arrays: 2 identities for an eraser to learn from; ")


def test_a_rank_asked_for_is_refused_also_for_the_usual_eraser() -> None:
    assert refusal(erasers=None, rank=17) == "isp: rank 17 with 16 dimensions; expected 0 to 16"
    assert refusal(make_identities(30, 6, 16), rank=9) == "isp: rank 9 with 9 identities; expected at most 8"
