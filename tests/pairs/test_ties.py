"""If these fail, vectors that are all the same fill the memory, or what was left out on the way changes a result."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, NoisyScreen, crowds, everything, make_crowd, small_blocks
from tests.pairs.test_nearest import all_scores, expected, same, unit
from tests.pairs.test_tail import assert_same_bytes
from tests.refusals.table import refused
from unface import verify
from unface.memory import limit_memory
from unface.pairs import (
    Hits,
    Pairing,
    Screen,
    all_mated,
    compared,
    cosine_space,
    count_impostors,
    highest_impostors,
    impostors_above,
    impostors_between,
    mated_pairs,
    nearest_between,
    open_screen,
    pair_up,
    pairs_above,
    ranked_impostor,
    reaching_impostors,
    visit_above,
)
from unface.pairs.nearest import _Own
from unface.pairs.pairing import Block
from unface.pairs.sweep import Highest, hits_of, most_held


@pytest.fixture(autouse=True)
def _default_again() -> Iterator[None]:
    yield
    limit_memory(None)


@contextmanager
def room_for(hits: int) -> Iterator[None]:
    """Passes hold no more hits than that before they decide among them, and list as few at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unface.pairs.sweep._FEWEST_HELD", hits)
        patch.setattr("unface.pairs.sweep._OF_THE_BUDGET", 1 << 60)
        for module in ("sweep", "count"):
            patch.setattr(f"unface.pairs.{module}.PIECE", hits)
        yield


def screens(pairing: Pairing, seed: int) -> list[Screen]:
    return [small_blocks(pairing), NoisyScreen(pairing, 0.1 * pairing.space.bound, seed)]


@given(crowds(), st.integers(0, 60), st.integers(0, 2**32), st.integers(1, 30))
def test_the_highest_are_the_same_however_few_are_held(crowd: Crowd, keep: int, seed: int, room: int) -> None:
    pairing = crowd.pairing
    whole = highest_impostors(pairing, keep, open_screen(pairing.space))
    np.testing.assert_array_equal(whole.scores, everything(crowd).impostor[:keep])
    for screen in screens(pairing, seed):
        with room_for(room):
            assert_same_bytes(highest_impostors(pairing, keep, screen), whole)


@given(crowds(), st.integers(0, 2**32), st.integers(1, 30), st.data())
def test_counts_and_ranks_are_the_same_however_few_are_held(
    crowd: Crowd, seed: int, room: int, data: st.DataObject
) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    score = float(data.draw(st.sampled_from(truth.tolist())))
    rank, most = data.draw(st.integers(0, len(truth) - 1)), data.draw(st.integers(0, len(truth)))
    reaching = int(np.count_nonzero(truth >= score))
    thresholds = np.array([score, float(np.nextafter(np.float32(score), np.float32(np.inf)))])
    for screen in screens(pairing, seed):
        with room_for(room), pytest.MonkeyPatch.context() as patch:
            counted = count_impostors(pairing, thresholds, screen)
            assert counted.total.tolist() == [reaching, np.count_nonzero(truth > score)]
            assert counted.by_identity.sum(axis=0).tolist() == (2 * counted.total).tolist()
            assert reaching_impostors(pairing, score, most, screen) == (reaching if reaching <= most else None)
            tail, count = impostors_above(pairing, score, screen, most=room)
            assert count == reaching
            assert tail.scores.tolist() == truth[: min(room, reaching)].tolist()
            assert tail.floor == (truth[room] if reaching > room else np.nextafter(np.float32(score), -np.inf))
            patch.setattr("unface.pairs.count.most_held", lambda: len(np.unique(truth)))
            found, higher = ranked_impostor(pairing, rank, screen)
            assert found == truth[rank]
            assert higher == np.count_nonzero(truth > truth[rank])


@pytest.mark.parametrize("rows", [60, 3000])
def test_nearest_rows_are_the_same_however_few_are_held(rows: int) -> None:
    """Vectors and doubles that differ in the last bit, as many of each as there is no room for."""
    base = unit(6, 8, "ties")
    nudged = base.copy()
    nudged[:, 0] = np.nextafter(nudged[:, 0], np.float32(2))
    both = np.concatenate([nudged, base])
    space = compared(both[np.arange(rows) % 12], both[::-1][np.arange(700) % 12])
    whole = nearest_between(space)
    with room_for(64):
        same(nearest_between(space), expected(all_scores(space)))
    same(whole, expected(all_scores(space)))


def test_pairs_of_one_code_are_found_block_by_block() -> None:
    left, right = np.array([3, -1, 0, 3, 7]), np.array([3, 3, -1, 0, 8, 3, 0])
    own = _Own(left, right, 4)
    for rows in (slice(0, 3), slice(3, 5)):
        for columns in (slice(0, 4), slice(4, 7)):
            i, j = np.nonzero((left[rows, None] == right[columns]) & (left[rows, None] >= 0))
            found = own.inside(Block(rows, columns))
            assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == (
                [] if found is None else sorted(zip(found[0].tolist(), found[1].tolist(), strict=True))
            )


@pytest.mark.parametrize("kind", ["cpu", "torch"])
def test_a_block_of_ties_is_listed_in_parts(kind: str) -> None:
    space = cosine_space(np.ones((700, 4), np.float32))
    screen: Screen = open_screen(space)
    if kind == "torch":
        pytest.importorskip("torch")
        from unface.pairs.torch_screen import TorchScreen

        screen = TorchScreen(space, "cpu")
    with room_for(10_000):
        parts = list(hits_of(screen, Block(slice(100, 700), slice(0, 512)), 0.5))
    assert len(parts) == 32, "19 rows of 512 columns at once"
    assert [len(hits) for _, hits in parts] == [19 * 512] * 31 + [11 * 512]
    i, j = (np.concatenate([getattr(hits, side) for _, hits in parts]) for side in "ij")
    np.testing.assert_array_equal(i, np.repeat(np.arange(100, 700), 512))
    np.testing.assert_array_equal(j, np.tile(np.arange(512), 600))


def test_what_was_decided_exactly_is_not_lost_when_the_cut_rises() -> None:
    """Ten pairs fill the room and are decided; later ones that screen within the margin still lose to the best."""
    space = make_crowd(4, "continuous", 30).space
    with room_for(8):
        highest = Highest(space, 3, 0.01)
        i, j = np.triu_indices(30, 1)
        exact = space.exact(i, j)
        for start in range(0, len(i), 5):
            part = slice(start, start + 5)
            highest.take(Hits(i[part], j[part], exact[part] + np.float32(0.009) * (-1) ** (start % 2)))
        hits = highest.hits()
    best = np.lexsort((j, i, -exact))[:3]
    found = {(int(a), int(b)) for a, b in zip(hits.i, hits.j, strict=True)}
    assert {(int(i[at]), int(j[at])) for at in best} <= found
    assert len(found) <= 8


ROWS = 4000
"""8 million pairs, 160 MB of hits."""


def equal() -> Pairing:
    return pair_up(cosine_space(np.ones((ROWS, 4), np.float32)), np.arange(ROWS) // 2)


PASSES: dict[str, Callable[[Pairing], object]] = {
    "highest": lambda pairing: highest_impostors(pairing, 10, open_screen(pairing.space)),
    "above": lambda pairing: impostors_above(pairing, 0.5, open_screen(pairing.space), most=10),
    "count": lambda pairing: count_impostors(pairing, np.array([0.5, 1.0]), open_screen(pairing.space)),
    "reaching": lambda pairing: reaching_impostors(pairing, 1.0, ROWS**2, open_screen(pairing.space)),
    "between": lambda pairing: impostors_between(pairing, 0.5, 1.5, open_screen(pairing.space)),
    "ranked": lambda pairing: ranked_impostor(pairing, 5_000_000, open_screen(pairing.space)),
    "nearest": lambda pairing: nearest_between(pairing.space),
    "own": lambda pairing: nearest_between(pairing.space, own=(np.zeros(ROWS, int), np.zeros(ROWS, int))),
    "visit": lambda pairing: visit_above(pairing.space, 0.5, lambda hits: None),
}


@pytest.mark.parametrize("name", PASSES)
def test_vectors_that_are_all_the_same_are_compared_in_little_memory(name: str) -> None:
    limit_memory("64M")
    pairing = equal()
    tracemalloc.start()
    PASSES[name](pairing)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 110 << 20


def test_of_vectors_that_are_all_the_same_the_first_pairs_are_the_highest() -> None:
    limit_memory("64M")
    pairing = pair_up(cosine_space(np.ones((1000, 4), np.float32)), np.arange(1000) // 2)
    tail = highest_impostors(pairing, 3, open_screen(pairing.space))
    assert tail.rows.tolist() == [[0, 2], [0, 3], [0, 4]]
    assert tail.floor == tail.scores[0]
    of_left, of_right = nearest_between(pairing.space)
    assert of_left.rows.tolist() == of_right.rows.tolist() == [0] * 1000
    assert count_impostors(pairing, np.array([1.0]), open_screen(pairing.space)).total.tolist() == [999_000 // 2 - 500]


def test_more_scores_than_the_budget_can_list_are_refused_before_any_is_made() -> None:
    limit_memory("64M")
    with refused("memory", ..., "3,000,000", "7,996,000", "64 MB", "--memory"):
        highest_impostors(equal(), 3_000_000, open_screen(equal().space))


def test_pairs_that_have_to_be_listed_are_refused_where_they_do_not_fit() -> None:
    limit_memory("64M")
    assert most_held() == 1 << 16
    with refused("pairs", None, "than 262,144", "score 0.5"):
        pairs_above(equal().space, 0.5)


def test_mated_pairs_of_one_large_identity_come_in_small_chunks_and_are_not_held_beyond_the_budget() -> None:
    limit_memory("64M")
    pairing = pair_up(cosine_space(np.random.default_rng(0).normal(size=(5000, 4))), np.zeros(5000, int))
    tracemalloc.start()
    counted = sum(map(len, mated_pairs(pairing)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted == 5000 * 4999 // 2
    assert peak < 120 << 20
    with refused("memory", "12,497,500 mated pairs"):
        all_mated(pairing)


def test_an_equal_error_rate_of_more_mated_pairs_than_fit_the_budget_is_refused() -> None:
    limit_memory("64M")
    measured = verify(np.random.default_rng(0).normal(size=(6500, 4)), np.minimum(np.arange(6500), 1), far=0.1)
    assert measured.at[0.1].mated == 6499 * 6498 // 2
    with refused("memory", "the equal error rate of 21,115,251 mated pairs"):
        _ = measured.eer
