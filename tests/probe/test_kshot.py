"""If these fail, the attacker is shown the pictures it is tested on, or rates are called resolved that are not."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.probe.small import consecutive, people, roles_of
from unface.metrics import Resolution
from unface.probe import Roles
from unface.probe.kshot import Shot, draw_shot
from unface.probe.plan import resolve

PEOPLE = people(40, 7, 3)
ROLES = roles_of(PEOPLE)


def shot(k: int = 3, seed: int = 0, roles: Roles = ROLES, *, everything: bool = False, hold_out: bool = False) -> Shot:
    return draw_shot(
        PEOPLE.vectors,
        roles.train,
        roles.calibrate,
        roles.test,
        k,
        seed,
        everything=everything,
        hold_out=hold_out,
    )


def rows_of_support(drawn: Shot) -> set[int]:
    known = {vector.tobytes(): row for row, vector in enumerate(PEOPLE.vectors)}
    return {known[vector.tobytes()] for vector in drawn.support.vectors}


def test_roles_share_no_identity_and_code_their_own_from_zero() -> None:
    names = [set(PEOPLE.identities[role.rows].tolist()) for role in (ROLES.train, ROLES.calibrate, ROLES.test)]
    assert all(not (a & b) for a, b in combinations(names, 2))
    for role in (ROLES.train, ROLES.calibrate, ROLES.test):
        assert sorted(set(role.identities.tolist())) == list(range(role.count))
        # one code for each identity and the other way round
        assert len(set(zip(role.identities.tolist(), PEOPLE.identities[role.rows].tolist(), strict=True))) == role.count


@pytest.mark.parametrize("k", [1, 3, 7])
def test_k_limits_what_is_learned_from_and_nothing_that_is_compared(k: int) -> None:
    drawn = shot(k)
    assert np.bincount(drawn.support.identities).tolist() == [k] * ROLES.train.count
    assert drawn.support.k == k
    assert rows_of_support(drawn) <= set(ROLES.train.rows.tolist())
    for query, role in ((drawn.calibrate, ROLES.calibrate), (drawn.test, ROLES.test)):
        assert np.array_equal(query.rows, role.rows)
        assert np.array_equal(query.identities, role.identities)


@pytest.mark.parametrize(
    ("k", "everything", "learned"), [(1, False, [1] * 4), (3, False, [2, 3, 3, 3]), (3, True, None)]
)
def test_an_identity_with_fewer_pictures_gives_what_it_has_and_all_means_all(
    k: int, everything: bool, learned: list[int] | None
) -> None:
    """Train identities of 2, 5, 3 and 9 pictures; test identities of 4, 1 and 2."""
    train, test = consecutive(2, 5, 3, 9), consecutive(4, 1, 2, start=40)
    uneven = Roles(train, ROLES.calibrate, test)
    drawn = shot(k, roles=uneven, everything=everything)
    assert np.bincount(drawn.support.identities).tolist() == (learned or [2, 5, 3, 9])
    assert drawn.test.images().tolist() == [4, 1, 2]
    assert drawn.test.impostors() == 4 * 1 + 4 * 2 + 1 * 2


@pytest.mark.parametrize("k", [1, 3, 5])
def test_held_out_support_is_exactly_k_of_each_identity_and_query_the_rest(k: int) -> None:
    drawn = shot(k, hold_out=True)
    assert np.bincount(drawn.support.identities).tolist() == [k] * ROLES.train.count
    for query, role in ((drawn.calibrate, ROLES.calibrate), (drawn.test, ROLES.test)):
        assert query.images().tolist() == [7 - k] * role.count
        assert set(query.rows.tolist()) < set(role.rows.tolist())
        assert np.array_equal(query.identities, role.identities[np.isin(role.rows, query.rows)])


def test_seeds_draw_other_images_and_every_image_is_drawn_by_some_seed() -> None:
    drawn = [rows_of_support(shot(seed=seed)) for seed in range(20)]
    assert len({frozenset(rows) for rows in drawn}) == 20
    assert set().union(*drawn) == set(ROLES.train.rows.tolist())
    # each image is as likely as any other: 20 draws of 3 in 7, so 8.6 of 20 with a standard deviation of 2.2
    times = np.array([sum(row in rows for rows in drawn) for row in ROLES.train.rows])
    assert times.min() >= 1
    assert times.max() <= 17


def test_seeds_that_hold_images_out_compare_others_of_calibrate_and_test() -> None:
    drawn = [shot(seed=seed, hold_out=True) for seed in range(20)]
    for name, role in (("calibrate", ROLES.calibrate), ("test", ROLES.test)):
        queries = [frozenset(getattr(one, name).rows.tolist()) for one in drawn]
        assert len(set(queries)) == 20
        assert frozenset().union(*queries) == set(role.rows.tolist())


def test_the_same_seed_draws_the_same() -> None:
    first, second = shot(seed=5, hold_out=True), shot(seed=5, hold_out=True)
    assert np.array_equal(first.support.vectors, second.support.vectors)
    assert np.array_equal(first.test.rows, second.test.rows)


def test_a_smaller_support_is_a_draw_of_its_own_and_not_part_of_a_larger_one() -> None:
    assert not rows_of_support(shot(1)) <= rows_of_support(shot(3))
    held_out = [set(shot(k, hold_out=True).test.rows.tolist()) for k in (1, 3)]
    assert not held_out[1] <= held_out[0]


def test_a_role_draws_the_same_whatever_the_other_roles_are() -> None:
    fewer = Roles(ROLES.train.where(ROLES.train.identities < 4), ROLES.calibrate, ROLES.test)
    few, all_of_them = shot(roles=fewer, hold_out=True), shot(hold_out=True)
    assert np.array_equal(few.test.rows, all_of_them.test.rows)
    assert np.array_equal(few.calibrate.rows, all_of_them.calibrate.rows)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=6).filter(any))
def test_impostors_are_the_image_pairs_of_two_identities(sizes: list[int]) -> None:
    role = consecutive(*sizes)
    pairs = combinations(role.identities.tolist(), 2)
    assert role.impostors() == sum(first != second for first, second in pairs)


def test_what_is_resolved_goes_by_thirty_and_three_expected_false_accepts() -> None:
    found = resolve((1e-1, 1e-2, 1e-3, 1e-4), 3000, 50)
    assert dict(found.of) == {
        1e-1: Resolution.RESOLVED,
        1e-2: Resolution.RESOLVED,
        1e-3: Resolution.COARSE,
        1e-4: Resolution.REFUSED,
    }
    assert found.measured == (1e-1, 1e-2, 1e-3)
    assert found.impostors == 3000


@pytest.mark.parametrize(
    ("impostors", "reference"),
    [(10**6, 1e-4), (30_000, 1e-3), (29_999, 1e-2), (300, 1e-1), (299, 1e-1), (30, 1e-1)],
)
def test_settings_are_chosen_at_the_lowest_resolved_rate_or_else_the_highest_measured(
    impostors: int, reference: float
) -> None:
    assert resolve((1e-2, 1e-4, 1e-1, 1e-3), impostors, 50).reference == reference


@pytest.mark.parametrize("far", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("images", [2, 5, 16])
def test_the_identities_said_to_be_needed_are_just_enough(far: float, images: int) -> None:
    found = resolve((far,), 10 * 9 // 2 * images**2, 10)
    for needed, accepts in ((found.needed[far], 3), (found.needed_for_resolved[far], 30)):
        if needed == 9 and accepts == 30:
            continue  # as few as any rate needs
        pairs = [m * (m - 1) // 2 * images**2 for m in (needed - 1, needed)]
        assert pairs[0] * far < accepts <= pairs[1] * far * (1 + 1e-9)


@pytest.mark.parametrize(("identities", "how"), [(8, Resolution.COARSE), (9, Resolution.RESOLVED)])
def test_a_few_people_resolve_nothing_however_many_pictures_they_have(identities: int, how: Resolution) -> None:
    assert resolve((1e-2,), 10**6, identities).of[1e-2] is how
    assert resolve((1e-2,), 10**6, identities).needed_for_resolved[1e-2] == 9
