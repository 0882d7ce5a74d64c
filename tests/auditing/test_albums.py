"""If these fail, an audit says something else of albums than was measured, or fails to say what it must."""

from functools import cache

import pytest

from tests.kit.results import AlbumResults, AuditResult, point, raw
from tests.kit.results import audited as result_of
from unface import Protocol, audit
from unface.auditing import Albums
from unface.data import make_identities
from unface.errors import UnfaceError


@cache
def audited() -> AuditResult:
    people = make_identities(120, 5, 16, rank=6, between=1.4, seed=3)
    settings = Protocol(far=(1e-1, 1e-2), k=("all",), probe=["cosine", "plda"], seeds=2, bootstraps=200, threads=1)
    return audit(people, rank=4, parts=(Albums(),), protocol=settings)


def found() -> AlbumResults:
    section = Albums.of(audited())
    assert section is not None
    return section


def test_every_probe_is_measured_in_every_space_at_every_size_and_rate() -> None:
    points = {(one.space, one.probe, one.first, one.second, one.far) for one in found().points}
    sizes = [(1, 1), (2, 2), (2, 3)]
    spaces = [space.name for space in audited().spaces]
    assert len(spaces) == 4
    expected = {(s, p, *size, f) for s in spaces for p in ("cosine", "plda") for size in sizes for f in (1e-1, 1e-2)}
    assert points == expected
    assert all(one.passed for one in found().shuffled_identities)


def test_one_against_one_is_the_audits_own_pairs() -> None:
    for space in audited().spaces:
        for single in space.points:
            (album,) = (
                one
                for one in found().points
                if (one.space, one.probe, one.far, one.second) == (space.name, single.probe, single.far, 1)
            )
            assert (album.tar, album.threshold, album.worst) == (single.tar, single.threshold, single.worst)


def test_more_pictures_a_side_link_more_and_the_verdict_says_so() -> None:
    single, *_, most = found().worst("raw", 1e-2)
    assert single.tar is not None
    assert most.tar is not None
    assert most.tar.low > single.tar.value
    assert "With 2 or 3 pictures per person on each side" in audited().verdict
    assert any(one.about == "albums" and "coarse" in one.text for one in audited().findings)


def test_differences_are_paired_with_raw_and_with_what_removed_as_much() -> None:
    against = {(one.space, one.against) for one in found().changes}
    assert {("isp", "raw"), ("isp", "pca"), ("isp", "random"), ("pca", "isp")} <= against
    by = {(one.space, one.far): one.tar.value for one in found().points if one.worst and one.second == 3 and one.tar}
    (change,) = (
        one for one in found().changes if (one.space, one.against, one.second, one.far) == ("isp", "raw", 3, 1e-1)
    )
    assert change.value == pytest.approx(by["isp", 1e-1] - by["raw", 1e-1])
    assert change.low <= change.value <= change.high


def test_an_album_larger_than_half_of_the_pictures_is_refused_before_the_attack() -> None:
    people = make_identities(40, 5, 4, seed=1)
    with pytest.raises(
        UnfaceError, match=r"--album 3: two albums need 6 pictures of an identity and at most 5 are used"
    ):
        audit(people, far=(0.01,), eraser=(), parts=(Albums([3]),))


def test_a_result_without_albums_says_that_they_were_not_measured() -> None:
    assert Albums.not_measured(result_of(raw(point())))
    assert Albums.not_measured(audited()) == []
