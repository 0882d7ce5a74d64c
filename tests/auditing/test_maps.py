"""If these fail, a map shows other people than those it is said to show, or one space in place of another."""

from tests.auditing.audits import bare, several
from unface import audit, make_identities
from unface.auditing import Maps, Protocol


def test_maps_are_of_the_raw_space_and_of_the_first_eraser_on_the_same_pictures() -> None:
    before, after = Maps.of(several())
    assert (before.space, after.space) == ("raw", "leace")
    assert before.identity == after.identity
    assert len(set(before.identity)) == 12
    assert len(before.x) == len(before.y) == len(before.identity) == 12 * 6


def test_without_an_eraser_the_raw_space_alone_is_drawn() -> None:
    assert [one.space for one in Maps.of(bare(parts=(Maps(),)))] == ["raw"]


def test_a_seed_of_any_size_draws_a_map() -> None:
    quick = Protocol(far=0.05, k=1, probe="cosine", seeds=1, bootstraps=50, threads=1, seed=2**32 + 5)
    people = make_identities(60, 8, 8, between=1.2, seed=1)
    (drawn,) = Maps.of(audit(people, eraser=(), parts=(Maps(),), protocol=quick))
    assert len(drawn.x) > 0
