"""If this fails, a rising cut drops pairs that belong among the highest, or other threads work than were asked for."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.pairs.crowd import NoisyScreen, everything, make_crowd, small_blocks
from tests.refusals.table import refused
from unface.pairs import (
    Pairing,
    Screen,
    cosine_space,
    count_impostors,
    fine_histogram,
    highest_impostors,
    impostor_histogram,
    impostors_above,
    impostors_between,
    open_screen,
    pair_up,
    ranked_impostor,
)
from unface.pairs.pairing import Block
from unface.pairs.screen import Hits
from unface.pairs.sweep import raise_cut, sweep

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
