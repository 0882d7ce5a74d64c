"""If these fail, the nearest person of a synthetic face is not the nearest one."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.pairs.crowd import NoisyScreen, everything, make_crowd, small_blocks
from tests.refusals.table import refused
from unface.pairs import (
    Nearest,
    Pairing,
    Screen,
    compared,
    cosine_space,
    count_impostors,
    fine_histogram,
    highest_impostors,
    impostor_histogram,
    impostors_above,
    impostors_between,
    nearest_between,
    open_screen,
    pair_up,
    pairs_above,
    ranked_impostor,
)
from unface.pairs.pairing import Block
from unface.pairs.screen import Hits
from unface.pairs.space import PairSpace
from unface.pairs.sweep import raise_cut, sweep
from unface.seeds import stream


def unit(rows: int, dim: int, *name: str | int) -> np.ndarray:
    vectors = stream(0, "test nearest", *name).standard_normal((rows, dim))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


def all_scores(space: PairSpace) -> np.ndarray:
    i, j = np.indices((len(space.left), len(space.right)))
    return space.exact(i.ravel(), j.ravel()).reshape(i.shape)


def expected(scores: np.ndarray) -> tuple[Nearest, Nearest]:
    return tuple(  # type: ignore[return-value]
        Nearest(side.max(axis=1), np.where(np.isfinite(side.max(axis=1)), side.argmax(axis=1), -1))
        for side in (scores, scores.T)
    )


def same(found: tuple[Nearest, Nearest], wanted: tuple[Nearest, Nearest]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.rows, other.rows)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (300, 5000), (2500, 37)])
def test_both_sides_equal_brute_force_whatever_the_blocks_and_threads(left: int, right: int) -> None:
    space = compared(unit(left, 24, "left"), unit(right, 24, "right"))
    for threads in (1, 3):
        same(nearest_between(space, threads=threads), expected(all_scores(space)))


def test_candidates_of_columns_that_are_thinned_on_the_way_lose_no_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.pairs.nearest._KEPT_AT_ONCE", 40)
    space = compared(unit(2500, 24, "left"), unit(37, 24, "right"))
    same(nearest_between(space, threads=1), expected(all_scores(space)))


def test_equal_and_nearly_equal_scores_are_decided_exactly_and_to_the_earlier_row() -> None:
    # Duplicates, and duplicates that differ in the last bit: a float32 product cannot tell them apart.
    base = unit(40, 16, "base")
    nudged = base.copy()
    nudged[:, 0] = np.nextafter(nudged[:, 0], np.float32(2))
    right = np.concatenate([nudged, base, base, nudged])
    for space in (compared(np.concatenate([base, base]), right), compared(right, np.concatenate([base, base]))):
        same(nearest_between(space), expected(all_scores(space)))


def test_own_pairs_are_left_out_on_both_sides() -> None:
    left, right = unit(50, 8, "a"), unit(3000, 8, "b")
    codes = stream(0, "codes").integers(-1, 6, 50), stream(0, "more codes").integers(-1, 6, 3000)
    scores = all_scores(compared(left, right))
    own = (codes[0][:, None] == codes[1]) & (codes[0][:, None] >= 0)
    same(nearest_between(compared(left, right), own=codes), expected(np.where(own, -np.inf, scores)))
    everything = (np.zeros(50, np.int64), np.zeros(3000, np.int64))
    of_left, of_right = nearest_between(compared(left, right), own=everything)
    assert (of_left.rows == -1).all()
    assert (of_right.rows == -1).all()


def test_floors_lose_nothing_above_them_and_pieces_merge_to_the_whole() -> None:
    left, right = unit(200, 12, "l"), unit(5000, 12, "r")
    whole = nearest_between(compared(left, right))
    found_left, found_right = Nearest.nothing(200), []
    for start in range(0, 5000, 1700):
        part = right[start : start + 1700]
        floors = (found_left.scores, np.full(len(part), -np.inf, np.float32))
        of_left, of_right = nearest_between(compared(left, part), floors=floors)
        moved = Nearest(of_left.scores, np.where(of_left.rows < 0, -1, of_left.rows + start))
        found_left = found_left.merged(moved)
        found_right.append(of_right)
    merged = Nearest(*(np.concatenate([getattr(one, name) for one in found_right]) for name in ("scores", "rows")))
    same((found_left, merged), whole)


def test_pairs_above_lists_each_pair_once_by_exact_score() -> None:
    space = compared(unit(300, 6, "x"), unit(2500, 6, "y"))
    scores = all_scores(space)
    cut = float(np.sort(scores.ravel())[-50])
    i, j, found = pairs_above(space, cut)
    np.testing.assert_array_equal(np.stack([i, j]), np.nonzero(scores >= cut))
    np.testing.assert_array_equal(found, scores[i, j])


def test_the_torch_screen_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from unface.pairs.torch_screen import TorchScreen

    space = compared(unit(700, 20, "tl"), unit(900, 20, "tr"))
    own = np.where(np.arange(700) < 5, np.arange(700), -1), np.where(np.arange(900) < 5, np.arange(900), -1)
    scores = all_scores(space)
    scores[np.arange(5), np.arange(5)] = -np.inf
    monkeypatch.setattr("unface.pairs.nearest.open_screen", lambda space, device: TorchScreen(space, "cpu"))
    same(nearest_between(space, own=own), expected(scores))


def test_of_two_pieces_the_better_counts_and_of_equal_ones_the_earlier_row_in_either_order() -> None:
    """Better, worse, equal and later, equal and earlier, nothing against something, nothing at all."""
    low = -np.inf
    one = Nearest(np.array([0.5, 0.5, 0.5, 0.5, low, low], np.float32), np.array([4, 4, 4, 4, -1, -1]))
    two = Nearest(np.array([0.6, 0.4, 0.5, 0.5, 0.1, low], np.float32), np.array([9, 9, 9, 1, 9, -1]))
    for merged in (one.merged(two), two.merged(one)):
        assert merged.rows.tolist() == [9, 4, 4, 1, 9, -1]
        assert merged.scores.tolist() == np.array([0.6, 0.5, 0.5, 0.5, 0.1, low], np.float32).tolist()
    found = Nearest(np.array([low], np.float32), np.array([3]))
    assert Nearest.nothing(1).merged(found).rows.tolist() == [3], "a score of −Inf that was found is found"
    assert Nearest.nothing(2).scores.dtype == np.float32


PASSES: dict[str, Callable[[Pairing, Screen, int], object]] = {
    "highest": lambda pairing, screen, threads: highest_impostors(pairing, 50, screen, threads=threads),
    "above": lambda pairing, screen, threads: impostors_above(pairing, 0.5, screen, most=9, threads=threads),
    "count": lambda pairing, screen, threads: count_impostors(pairing, np.array([0.5]), screen, threads=threads),
    "histogram": lambda pairing, screen, threads: impostor_histogram(pairing, screen, -1, 1, 64, threads=threads),
    "fine": lambda pairing, screen, threads: fine_histogram(pairing, screen, threads=threads),
    "between": lambda pairing, screen, threads: impostors_between(pairing, 0.4, 0.5, screen, threads=threads),
    "ranked": lambda pairing, screen, threads: ranked_impostor(pairing, 50, screen, threads=threads),
}


class Watched:
    """A screen that notes which threads ask it, and with which cuts."""

    def __init__(self, screen: Screen, workers: int | None = None) -> None:
        self.margin, self.block_rows, self.block_columns = screen.margin, screen.block_rows, screen.block_columns
        self.workers, self.callers, self.cuts = workers, set[int](), list[float]()
        self._screen = screen

    def above(self, block: Block, cut: float, most: int | None = None) -> Hits:
        self.callers.add(threading.get_ident())
        self.cuts.append(cut)
        return self._screen.above(block, cut, most)

    def scores(self, block: Block) -> NDArray[np.float32]:
        self.callers.add(threading.get_ident())
        return self._screen.scores(block)


@pytest.mark.parametrize("name", PASSES)
def test_one_thread_means_the_callers_own_and_more_means_others(name: str) -> None:
    pairing = make_crowd(0, "continuous", 60).pairing
    alone, helped = Watched(small_blocks(pairing)), Watched(small_blocks(pairing))
    PASSES[name](pairing, alone, 1)
    PASSES[name](pairing, helped, 3)
    assert alone.callers == {threading.get_ident()}
    assert threading.get_ident() not in helped.callers


@pytest.mark.parametrize("name", PASSES)
def test_a_screen_that_knows_its_number_of_workers_is_asked_by_so_many(name: str) -> None:
    pairing = make_crowd(0, "continuous", 60).pairing
    screen = Watched(small_blocks(pairing), workers=1)
    PASSES[name](pairing, screen, 3)
    assert screen.callers == {threading.get_ident()}


def test_cuts_rise_only_between_waves_that_double_up_to_thirty_two_blocks() -> None:
    pairing = pair_up(cosine_space(np.random.default_rng(0).normal(size=(704, 4))), np.arange(704))
    screen = Watched(small_blocks(pairing, 32, 32))
    _, last = sweep(pairing, screen, -np.inf, keep=100, threads=1)
    # 253 blocks of 1,024 pairs; 2, 6, 14, 30 and 62 blocks hold fewer than the 65,936 that are worth a look, 94 more
    assert screen.cuts[:94] == [-np.inf] * 94
    assert len(screen.cuts) == 253
    assert len(set(screen.cuts[94:])) == 1
    assert last == screen.cuts[-1] > -np.inf


def some_hits(scores: list[float]) -> Hits:
    rows = np.arange(len(scores))
    return Hits(rows, rows + 10, np.array(scores, np.float32))


def test_a_cut_rises_to_two_margins_below_the_last_that_is_kept() -> None:
    hits, cut = raise_cut(some_hits([3, 5, 1, 4, 3.5, 2]), 0.0, keep=2, margin=0.25)
    assert cut == 3.5
    assert (hits.i.tolist(), hits.j.tolist(), hits.scores.tolist()) == ([1, 3, 4], [11, 13, 14], [5, 4, 3.5])


def test_a_cut_never_falls_and_stays_where_too_few_are_known() -> None:
    assert raise_cut(some_hits([5, 4, 3]), 3.75, keep=2, margin=0.25)[1] == 3.75
    assert raise_cut(some_hits([5, 4]), 0.0, keep=2, margin=0.25)[1] == 3.5
    hits, cut = raise_cut(some_hits([5, 4]), 0.0, keep=3, margin=0.25)
    assert (cut, len(hits)) == (0.0, 2)


@pytest.mark.parametrize("kind", ["continuous", "integers"])
def test_a_cut_that_rises_on_the_way_loses_nothing(kind: str) -> None:
    crowd = make_crowd(2, kind, 700)
    pairing, truth = crowd.pairing, everything(crowd).impostor
    hits, cut = sweep(pairing, NoisyScreen(pairing, 0.05, 0, rows=64, columns=64), -np.inf, keep=100)
    assert -np.inf < cut <= truth[99]
    found = np.sort(pairing.space.exact(hits.i, hits.j))[::-1]
    np.testing.assert_array_equal(found[:100], truth[:100])


def test_vectors_that_are_all_the_same_are_told_instead_of_filling_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.pairs.sweep._MOST_HITS", 1000)
    pairing = pair_up(cosine_space(np.ones((90, 4))), np.arange(90) // 3)
    with refused("pairs", None, "1,000 impostor pairs"):
        highest_impostors(pairing, 5, open_screen(pairing.space))


def test_as_many_pairs_as_the_memory_is_meant_for_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    pairing = pair_up(cosine_space(np.ones((90, 4))), np.arange(90) // 3)
    monkeypatch.setattr("unface.pairs.sweep._MOST_HITS", pairing.impostors)
    assert len(highest_impostors(pairing, 5, open_screen(pairing.space))) == 5
