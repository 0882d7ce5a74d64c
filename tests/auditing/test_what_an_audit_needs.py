"""If these fail, an audit begins that cannot be answered, or a space is not what it says it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.auditing.audits import FEW, RANK, axes, bare_refusal, looped, quick, refusal
from unface import Protocol, UnfaceError
from unface.auditing import is_streamed, require_people
from unface.data import ImageRef, ImageSet


def refused(what: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(UnfaceError) as caught:
        what(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"mu": float("inf")}, "--mu"),
        ({"mu": -0.5}, "--mu"),
        ({"keep": 0}, "--keep"),
        ({"keep": 16}, "--keep"),
        ({"keep": 3, "rank": 3}, "--keep"),
        ({"keep": 3, "rank": 0.5}, "--keep"),
        ({"keep": 2, "eraser": "isp"}, "--keep"),
        ({"mu": 0.0, "eraser": "isp"}, "--mu"),
    ],
)
def test_a_rule_that_contradicts_itself_or_its_eraser_is_refused(options: dict[str, Any], place: str) -> None:
    assert refusal(**{"eraser": "keeper", "rank": None, **options}).startswith(place)


def test_vectors_that_hardly_differ_are_the_same_and_one_that_does_is_enough() -> None:
    same = replace(FEW, vectors=np.tile(FEW.vectors[:1], (len(FEW), 1)))
    rounded = same.vectors.copy()
    rounded[-1] *= 1 + 5e-7
    for vectors in (same.vectors, rounded):
        assert "200 vectors are the same" in bare_refusal(replace(FEW, vectors=vectors))


def pictures(people: int, each: int, copies: int = 0) -> ImageSet:
    refs = [ImageRef(f"{who}/{row}", f"p{who}", bytes) for who in range(people) for row in range(each)]
    refs += [ImageRef(f"c{row}", "p0", bytes, copy_of="0/0") for row in range(copies)]
    return ImageSet(tuple(refs), "faces.zip")


def test_pictures_are_counted_by_the_paper_variants_own_shares_and_without_copies() -> None:
    """The paper fits erasers on its train identities: 54 of 80 people."""
    paper = Protocol(far=0.01, variant="paper", k=1)
    require_people(pictures(80, 5), paper, rank=52)
    assert "rank 60" in refused(require_people, pictures(80, 5), paper, rank=60)
    assert "rank 24" in refused(require_people, pictures(80, 5), Protocol(far=0.01), rank=24)
    few = refused(require_people, pictures(80, 5), replace(Protocol(far=0.01), max_identities=30), rank=9)
    assert "--rank 8 " in few
    require_people(pictures(80, 5), replace(Protocol(far=1e-9), split="role"), rank=500)
    require_people(ImageSet((), "faces.zip"), Protocol())
    assert "k = 9" in refused(require_people, pictures(1, 2, copies=9), Protocol(k=9))


def test_a_policy_that_asks_for_a_k_that_is_not_measured_is_refused_with_what_would_do() -> None:
    asked = bare_refusal(k=(1, 2), needed_k=(2, 3))
    assert "--k 3" in asked
    assert "more pictures of each person" in bare_refusal(k=(1, 2), needed_k=(6,))


def test_few_pairs_of_a_quota_resolve_less() -> None:
    """8 calibrate people, one pair of pictures for each two of them: 28 pairs do not resolve 0.1, but 112 do."""
    assert "--far" not in bare_refusal(far=0.1, impostor_quota=1)
    assert "--far 0.1 " in bare_refusal(far=0.01, impostor_quota=4)
    assert "24" in refused(Protocol, max_identities=24)
    assert refused(Protocol, bootstraps=1, bootstrap="multinomial")
    assert Protocol(max_identities=25, bootstraps=3, bootstrap="multinomial").bootstraps == 3


def test_what_is_fitted_from_sums_can_be_fitted_on_any_number_of_files() -> None:
    able = ("isp", "leace", "pca", "random", "keeper")
    assert [is_streamed(method) for method in (*able, "rlace", "magic")] == [True] * 5 + [False] * 2


def test_ready_projections_are_numbered_from_the_second_on() -> None:
    made = quick(eraser=(), projections=[axes(0), axes(1)], probe="cosine")
    assert [one.name for one in made.spaces] == ["raw", "projection", "projection 2", "random", "pca"]
    (first, second) = (one.erasure for one in made.spaces[1:3])
    assert first is not None
    assert (first.method, first.rank_rule, first.fitted_on, first.fit_identities) == (
        "axes",
        "of a ready projection",
        "elsewhere",
        None,
    )
    assert second is not None
    isp = looped().spaces[1].erasure
    assert isp is not None
    assert (isp.rank, isp.dim, isp.kept, isp.mu, isp.fit_identities, isp.overlap) == (RANK, 16, None, None, 36, None)


def test_changes_are_of_all_that_removed_as_many_dimensions() -> None:
    changes = {one.name: [change.against for change in one.changes] for one in looped().spaces}
    assert changes == {
        "raw": [],
        "isp": ["raw", "random", "pca"],
        "random": ["raw", "isp", "pca"],
        "pca": ["raw", "isp", "random"],
    }


def test_what_an_audit_fits_is_certified_on_its_test_identities() -> None:
    for one in looped().spaces[1:]:
        assert one.erasure is not None
        assert one.erasure.certificate is not None
        assert one.erasure.certificate.identities == looped().roles.test
