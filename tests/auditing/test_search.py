"""If these fail, a search is reported at another threshold or gallery than it says, or without its chance."""

import pytest
from benchmarks.audit_coverage import Population, search_holds

from tests.auditing.audits import FEW, bare, quick
from unface.auditing import Search
from unface.auditing.search.run import gallery_sizes
from unface.data import make_identities


def test_galleries_grow_to_all_other_pictures() -> None:
    assert gallery_sizes(5, 49) == [10, 30, 49]
    assert gallery_sizes(20, 30) == [30]


def test_a_search_is_measured_in_every_space_beside_chance() -> None:
    result = quick(parts=(Search(),))
    found = Search.of(result)
    assert found is not None
    assert {one.space for one in found.searches} == {space.name for space in result.spaces}
    raw, erased = found.worst("raw"), found.worst("isp")
    assert raw is not None
    assert erased is not None
    images, test = result.curated.images, result.roles.test
    last = raw.rates[-1]
    assert last.gallery == images * test - 1
    assert last.chance_first == pytest.approx((images - 1) / last.gallery)
    assert [at.first.value for at in raw.rates] == sorted((at.first.value for at in raw.rates), reverse=True)
    assert raw.rates[-1].first.low > last.chance_first
    # the planted identity is gone: what is left is chance
    assert erased.rates[-1].first.low < 2 * last.chance_first


def test_strangers_are_returned_as_often_as_was_allowed() -> None:
    people = make_identities(300, 6, 24, between=1.3, seed=5)
    result = bare(people, far=0.01, parts=(Search(),))
    found = Search.of(result)
    assert found is not None
    (one,) = found.searches
    assert one.open_set is not None
    assert one.open_set.people == min(result.roles.calibrate, result.roles.test) == 60
    assert one.open_set.resolution == "coarse"
    assert 0 < one.open_set.found.low < one.open_set.found.value < one.rates[-1].first_ten.value
    assert one.open_set.achieved_fpir.value < 0.05
    assert one.open_set.found.denominator == one.open_set.achieved_fpir.denominator == 360


def test_too_few_pictures_for_the_rate_are_not_resolved() -> None:
    result = bare(FEW, parts=(Search(),))
    found = Search.of(result)
    assert found is not None
    assert all(one.open_set is None for one in found.searches)
    assert Search.not_measured(bare())
    assert any("FPIR" in missing for missing in result.not_measured)


def test_the_share_found_at_a_threshold_is_covered() -> None:
    """Nominal 95 % with families of look-alikes; where queries alone are drawn anew, 33 of these 60."""
    population = Population("clusters", 1.2, 6, 6)
    assert sum(search_holds(population, 80, number) for number in range(60)) >= 53
