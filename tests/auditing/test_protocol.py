"""If these fail, an audit begins that can end in nothing, or refuses without saying what would do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.auditing.audits import FEW, bare, bare_refusal
from unface import Protocol, UnfaceError, make_identities
from unface.auditing import require_people
from unface.data import EmbeddingSet, ImageRef, ImageSet

Roles = np.ndarray[tuple[int], np.dtype[np.object_]]


def test_a_k_that_was_asked_for_and_does_not_fit_is_refused() -> None:
    expected = "k = 6 needs 6 images of most people, and their median is 5; ask for a smaller k, or for all"
    assert bare_refusal(k=(1, 6)) == expected
    paper = "k = 4 needs 6 images for each identity, 5 are used; ask for a smaller k, or for more --images of fewer "
    assert bare_refusal(k=(1, 4), variant="paper", seeds=2) == paper + "identities"


def test_all_pictures_cannot_be_learned_from_where_the_variant_holds_some_out() -> None:
    expected = "k = all: the paper variant compares what k images leave; give numbers"
    assert bare_refusal(k=(1, "all"), variant="paper", seeds=2) == expected


def test_too_few_images_are_refused() -> None:
    expected = "synthetic: 0 of 40 identities have at least 2 images, 2 are needed; identities by images: 40 with 1"
    assert bare_refusal(make_identities(40, 1, 4)) == expected
    expected = (
        "2 images for each identity are too few; 3 are needed, 1 to learn from and 2 to compare: --images 3 or more "
        "leaves out identities with fewer"
    )
    assert bare_refusal(make_identities(40, 2, 4), variant="paper", seeds=2) == expected


def test_a_rate_that_cannot_be_resolved_is_refused_with_the_identities_it_needs() -> None:
    """8 calibrate identities of 5 images: 28 · 25 pairs; m (m − 1) / 2 · 25 · 1e-3 ≥ 3 from m = 16 on.

    16 calibrate from 79 people on: of 78, the shares of 20 % between 55 % and 75 % round to 15.
    """
    assert bare_refusal(far=(1e-3, 1e-4)) == (
        "synthetic: FAR 1e-3 needs at least 79 people with 5 pictures each; this set has 40. "
        "Use --far 0.01 or add people"
    )


def test_a_rate_that_is_asked_for_must_be_measurable() -> None:
    people = make_identities(80, 5, 4)
    assert {point.far for point in bare(people, far=(1e-2, 1e-6), k=1).raw.points} == {1e-2, 1e-6}
    told = "synthetic: FAR 1e-6 needs at least 2,455 people with 5 pictures each; this set has 80. "
    assert bare_refusal(people, far=(1e-2, 1e-6), k=1, every_far=True) == told + "Use --far 1e-3 or add people"


def test_of_roles_of_ones_own_the_people_of_that_role_are_counted() -> None:
    people = make_identities(40, 5, 4)
    roles = np.repeat(["fit", "train", "calibrate", "test"], 10)[people.identities]
    own = EmbeddingSet.from_arrays(people.vectors, people.identities, labels={"role": roles})
    told = "arrays: FAR 1e-3 needs at least 16 people of role calibrate; this set has 10. Use --far 0.01 or add people"
    assert bare_refusal(own, far=1e-3, k=1, split="role") == told


def pictures(people: int, each: int) -> ImageSet:
    refs = [ImageRef(f"{who}/{row}", f"p{who}", bytes) for who in range(people) for row in range(each)]
    return ImageSet(tuple(refs), "faces.zip")


@pytest.mark.parametrize(
    ("protocol", "rank", "told"),
    [
        (
            Protocol(far=1e-6),
            None,
            "faces.zip: FAR 1e-6 needs at least 2,455 people with 5 pictures each; this set has",
        ),
        (Protocol(k=9), None, "k = 9 needs 9 images of most people, and their median is 5; ask for a smaller k"),
        (
            Protocol(),
            30,
            "faces.zip: rank 30 needs at least 102 people with 2 pictures; this set has 80. Use",
        ),
    ],
    ids=["rate", "k", "rank"],
)
def test_pictures_are_counted_before_they_are_encoded(protocol: Protocol, rank: int | None, told: str) -> None:
    with pytest.raises(UnfaceError) as caught:
        require_people(pictures(80, 5), protocol, rank=rank)
    assert str(caught.value).startswith(told)
    require_people(pictures(80, 5), Protocol(), rank=23)


def test_the_identities_said_to_be_needed_do_resolve_it() -> None:
    """16 of 80 identities calibrate."""
    (point,) = bare(make_identities(80, 5, 4), far=1e-3, k=1).raw.points
    assert (point.worst, point.resolution) == (True, "coarse")
    assert "needs at least 79 people" in bare_refusal(make_identities(75, 5, 4), far=1e-3, k=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"probe": ["cosine", "forest"]},
            "probe 'forest' is not known; choose from cosine, ridge, lda, plda, net, mlp",
        ),
        ({"probe": "mlp"}, "probe 'mlp' belongs to the paper variant; use 'net', or --variant paper"),
        ({"variant": "mine"}, "variant 'mine' is not known; use unface or paper"),
        ({"bootstrap": "jackknife"}, "bootstrap 'jackknife' is not known; use double-or-nothing or multinomial"),
        ({"device": "tpu"}, "device 'tpu' is not known; use 'cpu' or 'cuda'"),
        ({"far": (0.0,)}, "a false-accept rate lies between 0 and 1, not 0"),
        ({"far": 2.0}, "a false-accept rate lies between 0 and 1, not 2"),
        ({"far": float("nan")}, "a false-accept rate lies between 0 and 1, not nan"),
        ({"far": 1e-320}, "no set of pairs resolves a false-accept rate of 9.99989e-321; ask for 1e-12 or more"),
        ({"far": ()}, "at least one false-accept rate and one k are needed"),
        ({"k": 0}, "k is the number of support images, at least 1, not 0"),
        ({"k": (1.5,)}, "k is a whole number of images or 'all', not 1.5"),
        (
            {"seeds": 1, "variant": "paper"},
            "the paper variant takes its intervals from the spread over seeds; give at least 2",
        ),
        ({"seed": -1}, "a seed is a number from 0, not -1"),
        ({"bootstraps": 301}, "double-or-nothing replicates come in mirrored pairs; give an even number, not 301"),
        ({"seeds": 0}, "at least one seed is needed, not 0"),
        ({"impostor_quota": 0}, "a quota is a number of image pairs, at least 1, not 0"),
        ({"group": "shoot"}, "synthetic: has no column 'shoot'; other columns are: none"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, Any], sentence: str) -> None:
    assert bare_refusal(**options) == sentence


def with_roles(change: Callable[[Roles], None]) -> EmbeddingSet:
    roles = np.array(["fit", "train", "calibrate", "test"], dtype=object)[FEW.identities % 4]
    change(roles)
    return EmbeddingSet.from_arrays(
        FEW.vectors, np.array(FEW.names)[FEW.identities], labels={"role": roles}, source="faces.parquet"
    )


def test_a_split_of_ones_own_is_kept_to() -> None:
    roles = bare(with_roles(lambda roles: None), split="role").roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test, roles.seed) == (10, 10, 10, 10, None)


@pytest.mark.parametrize("seed", range(6))
def test_an_identity_in_two_roles_is_refused_also_where_curation_would_drop_the_row(seed: int) -> None:
    def change(roles: Roles) -> None:
        roles[0] = "test"

    twofold = with_roles(change)
    expected = "split: identity 'p0001' is in two roles, test and fit; give it one"
    assert bare_refusal(twofold, split="role", images=3, seed=seed) == expected


def test_an_unknown_role_is_named_by_the_row_it_has_in_the_file() -> None:
    def change(roles: Roles) -> None:
        roles[17] = "validation"

    expected = "split: row 17 has role 'validation'; roles are fit, train, calibrate, test"
    assert bare_refusal(with_roles(change), split="role", images=3) == expected


def test_a_role_with_one_identity_is_refused() -> None:
    def change(roles: Roles) -> None:
        roles[(roles == "calibrate") & (FEW.identities > 4)] = "fit"

    expected = "faces.parquet: role 'calibrate' has 1 identity of 40; at least 5 are needed for a result"
    assert bare_refusal(with_roles(change), split="role") == expected


def test_a_context_column_must_hold_vectors() -> None:
    expected = (
        "faces.parquet: 'role' is no column of vectors; --context needs one vector for each row, --group takes a name"
    )
    assert bare_refusal(with_roles(lambda roles: None), context="role") == expected


@pytest.mark.parametrize("group", [None, "one for all"])
def test_a_group_that_says_nothing_is_refused(group: str | None) -> None:
    sentence = bare_refusal(grouped([group] * len(FEW)), group="shoot")
    assert sentence == "arrays: 'shoot' names fewer than two groups; there is nothing to compare"


def test_shoots_by_name_and_by_vectors_are_refused_together() -> None:
    sentence = bare_refusal(grouped([f"s{row // 2}" for row in range(len(FEW))]), group="shoot", context="wall")
    assert sentence == "--group shoot: names shoots, and --context adjusts for shoots too; give one of them"


def test_pairs_of_unknown_groups_are_left_out_and_counted() -> None:
    """Every other picture has no group: 1 or 3 pairs of 10 are known."""
    result = bare(grouped([None if row % 2 else f"s{row}" for row in range(len(FEW))]), group="shoot")
    point = next(point for point in result.raw.points if point.worst)
    assert point.context_adjusted is not None
    assert 0.5 < point.context_adjusted.unknown < 0.95
    assert any("is not known for both pictures" in finding.text for finding in result.findings)


def grouped(groups: list[str | None]) -> EmbeddingSet:
    """The same people, each picture of the group named for it."""
    names = np.array(FEW.names)[FEW.identities]
    return EmbeddingSet.from_arrays(FEW.vectors, names, labels={"shoot": np.array(groups, dtype=object)})
