"""If this fails, the GPU's screen is less exact than it says, and counts made with it would differ from the CPU's.

PyTorch on the CPU stands in for the GPU: rounding to TF32, margin and search for hits are the same code there.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, crowds
from unface import UnfaceError, verify
from unface.pairs import PairSpace, cosine_space, count_impostors, highest_impostors, open_screen, pair_up
from unface.pairs.pairing import Block

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from unface.pairs.torch_screen import TorchScreen, _rounded  # noqa: E402 - needs torch


def test_vectors_are_rounded_to_eleven_bits_to_nearest_even() -> None:
    ulp = 2.0**-10
    given_ = np.array([[1.0, 1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.51 * ulp, -(1 + 0.49 * ulp)]], np.float32)
    rounded, error = _rounded(given_, "cpu")
    assert rounded.tolist() == [[1.0, 1.0, 1 + 2 * ulp, 1 + ulp, -1.0]]
    assert error == pytest.approx(np.linalg.norm(given_ - rounded.numpy()), rel=1e-6)


@given(crowds())
def test_tails_and_counts_equal_the_cpus(crowd: Crowd) -> None:
    pairing = crowd.pairing
    if not pairing.impostors:
        return
    cpu, gpu = open_screen(pairing.space), TorchScreen(pairing.space, "cpu")
    keep = max(1, pairing.impostors // 3)
    ours, theirs = highest_impostors(pairing, keep, cpu), highest_impostors(pairing, keep, gpu)
    np.testing.assert_array_equal(ours.scores, theirs.scores)
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    thresholds = np.quantile(ours.scores, [0.1, 0.5, 0.9]).astype(np.float64)
    counts = [count_impostors(pairing, thresholds, screen).by_identity for screen in (cpu, gpu)]
    np.testing.assert_array_equal(counts[0], counts[1])


@pytest.mark.parametrize("columns", [200, 256, 700])
def test_hits_are_the_scores_above_the_cut_whatever_the_width(columns: int) -> None:
    rng = np.random.default_rng(0)
    space = cosine_space(rng.normal(size=(columns + 50, 32)))
    screen = TorchScreen(space, "cpu")
    block = Block(slice(0, 50), slice(50, 50 + columns))
    hits = screen.above(block, 0.3)
    i, j = np.nonzero(screen.scores(block) >= 0.3)
    assert sorted(zip(hits.i, hits.j, strict=True)) == sorted(zip(i, j + 50, strict=True))
    np.testing.assert_array_equal(hits.scores, screen.scores(block)[hits.i, hits.j - 50])


@given(st.integers(0, 2**32), st.sampled_from([1, 7, 64, 700]), st.sampled_from([1e-6, 1.0, 1e6]))
def test_no_product_is_further_from_exact_than_the_margin(seed: int, dim: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=(20, dim)).astype(np.float32) * np.float32(scale) for _ in range(2))
    space = PairSpace(left, right)
    screen = TorchScreen(space, "cpu")
    exact = left.astype(np.float64) @ right.astype(np.float64).T
    error = np.abs(screen.scores(Block(slice(0, 20), slice(0, 20))) - exact).max()
    assert error <= screen.margin
    assert screen.margin < 2.5e-3 * space.bound


def test_a_gpu_that_is_not_there_is_told() -> None:
    if torch.cuda.is_available():
        assert verify(np.eye(4), [0, 0, 1, 1], device="cuda").at[1e-4].mated == 2
    else:
        with pytest.raises(UnfaceError, match="PyTorch sees no GPU here; use 'cpu'"):
            verify(np.eye(4), [0, 0, 1, 1], device="cuda")


def test_pairing_is_shared_by_both_sides_when_they_are_one() -> None:
    space = cosine_space(np.random.default_rng(0).normal(size=(30, 8)))
    screen = TorchScreen(pair_up(space, np.arange(30) // 3).space, "cpu")
    assert screen._left is screen._right
