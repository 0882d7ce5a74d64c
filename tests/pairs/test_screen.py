"""If this fails, the CPU screen misplaces scores, or an unknown device is not refused by name."""

import numpy as np
import pytest
from hypothesis import given

from tests.pairs.crowd import Crowd, crowds, make_crowd, small_blocks
from unface.pairs import cosine_space, open_screen
from unface.pairs.pairing import Block
from unface.threads import parallel_map


@given(crowds())
def test_every_block_is_screened_within_the_margin(crowd: Crowd) -> None:
    pairing = crowd.pairing
    screen = small_blocks(pairing)
    for block in pairing.blocks(screen.block_rows, screen.block_columns):
        i, j = np.meshgrid(*(np.arange(len(pairing))[side] for side in (block.rows, block.columns)), indexing="ij")
        exact = pairing.space.exact(i.ravel(), j.ravel()).reshape(i.shape).astype(np.float64)
        assert np.abs(screen.scores(block) - exact).max() <= screen.margin


@given(crowds())
def test_what_is_above_a_cut_is_found_where_it_is(crowd: Crowd) -> None:
    pairing = crowd.pairing
    screen = small_blocks(pairing)
    block = Block(slice(0, min(7, len(pairing))), slice(len(pairing) // 2, min(len(pairing) // 2 + 5, len(pairing))))
    scores = screen.scores(block).copy()
    for cut in (float(scores.min()), float(np.median(scores)), float(scores.max()), np.inf):
        hits = screen.above(block, cut)
        placed = np.full(scores.shape, -np.inf, np.float32)
        placed[hits.i - block.rows.start, hits.j - block.columns.start] = hits.scores
        np.testing.assert_array_equal(placed, np.where(scores >= cut, scores, -np.inf))


def test_threads_do_not_write_into_each_others_scores() -> None:
    pairing = make_crowd(0, "continuous", 600).pairing
    screen = small_blocks(pairing, 100, 100)
    blocks = list(pairing.blocks(100, 100)) * 5
    alone = [screen.scores(block).sum() for block in blocks]
    assert parallel_map(lambda block: screen.scores(block).sum(), blocks, 3) == alone


def test_a_thread_reuses_one_buffer_of_float32_scores() -> None:
    pairing = make_crowd(0, "continuous", 40).pairing
    screen = small_blocks(pairing)
    first, second = (
        screen.scores(block) for block in (Block(slice(0, 7), slice(0, 5)), Block(slice(7, 9), slice(9, 14)))
    )
    assert (first.shape, second.shape, str(first.dtype)) == ((7, 5), (2, 5), "float32")
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("rows", [10, 600, 100_000])
def test_blocks_fit_eight_megabytes_and_small_sets_are_cut_for_two_cores(rows: int) -> None:
    screen = open_screen(cosine_space(np.ones((rows, 1))))
    assert screen.block_rows * screen.block_columns * 4 <= 2**23
    assert rows < 256 or rows / screen.block_rows >= 4
