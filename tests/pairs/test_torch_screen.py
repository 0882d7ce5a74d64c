"""If this fails, the GPU's screen is less exact than it says, and counts made with it would differ from the CPU's.

PyTorch on the CPU stands in for the GPU: rounding to TF32, margin and search for hits are the same code there.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, crowds
from tests.refusals.table import refused
from unface import verify
from unface.pairs import PairSpace, cosine_space, count_impostors, highest_impostors, open_screen, pair_up
from unface.pairs.pairing import Block

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from unface.pairs.torch_screen import TorchScreen, _block_side, _rounded  # noqa: E402 - needs torch


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
        with refused("pairs", "device 'cuda'", "'cpu'"):
            verify(np.eye(4), [0, 0, 1, 1], device="cuda")


def test_pairing_is_shared_by_both_sides_when_they_are_one() -> None:
    space = cosine_space(np.random.default_rng(0).normal(size=(30, 8)))
    screen = TorchScreen(pair_up(space, np.arange(30) // 3).space, "cpu")
    assert screen._left is screen._right


def test_the_margin_of_a_case_worked_by_hand() -> None:
    unit = 2.0**-24
    # 3 and 5 fit eleven bits: four roundings for the one term, and one of exact's own
    plain = PairSpace(np.array([[3], [2]], np.float32), np.array([[4], [5]], np.float32))
    assert TorchScreen(plain, "cpu").margin == pytest.approx((4 + 1) * unit * 15, rel=1e-12)
    # 1 + 2⁻¹² becomes 1 on both sides
    off = 2.0**-12
    finer = PairSpace(np.array([[1 + off]] * 2, np.float32), np.array([[2 + 2 * off]] * 2, np.float32))
    long, wide = 1 + off, 2 + 2 * off
    rounding = off * wide + (long + off) * 2 * off
    summing = 4 * unit * (long + off) * (wide + 2 * off)
    assert TorchScreen(finer, "cpu").margin == pytest.approx(rounding + summing + unit * long * wide, rel=1e-12)


@pytest.mark.parametrize(
    ("free", "budget", "side"),
    [
        (2**37, 2**35, 32_768),
        (5 * 4 * 8192**2, 2**35, 8192),
        (5 * 4 * 8192**2 - 1, 2**35, 4096),
        (2**30, 2**35, 4096),
        (2**37, 2**31, 8192),
        (2**37, 2**31 - 1, 4096),
    ],
)
def test_blocks_are_as_large_as_five_of_them_fit_the_gpu_and_eight_the_budget(
    free: int, budget: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.pairs.torch_screen.memory_budget", lambda: budget)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 2**40) if device == "cuda:1" else None)
    assert _block_side("cuda:1") == side


class Watched:
    """A tensor that notes the precision it is multiplied in, or has no memory for it."""

    is_cuda = False

    def __init__(self, tensor: Any, *, full: bool = False) -> None:
        self.tensor, self.full, self.precision = tensor, full, ""

    def __getitem__(self, rows: slice) -> Any:
        self.precision = torch.get_float32_matmul_precision()
        if self.full:
            raise torch.OutOfMemoryError
        return self.tensor[rows]


@pytest.mark.parametrize("full", [False, True])
def test_products_are_made_in_tf32_and_the_users_precision_comes_back(*, full: bool) -> None:
    screen, block = TorchScreen(cosine_space(np.eye(4)), "cpu"), Block(slice(0, 2), slice(2, 4))
    watched = Watched(screen._left, full=full)
    screen._left = watched  # type: ignore[assignment]  # a watched one in its place
    before = torch.get_float32_matmul_precision()
    if full:
        with refused("pairs", None, "'s memory is too small for these vectors; use device '"):
            screen.scores(block)
    else:
        assert screen.scores(block).tolist() == [[0, 0], [0, 0]]
    assert watched.precision == "high"
    assert torch.get_float32_matmul_precision() == before


def test_a_cut_below_every_score_lets_through_all_of_them_and_nothing_else() -> None:
    screen = TorchScreen(cosine_space(np.random.default_rng(0).normal(size=(40, 8))), "cpu")
    hits = screen.above(Block(slice(3, 10), slice(10, 40)), -np.inf)
    assert sorted(zip(hits.i.tolist(), hits.j.tolist(), strict=True)) == [
        (i, j) for i in range(3, 10) for j in range(10, 40)
    ]


def test_a_score_on_the_cut_is_let_through() -> None:
    screen = TorchScreen(cosine_space(np.random.default_rng(0).normal(size=(300, 8))), "cpu")
    block = Block(slice(0, 5), slice(5, 300))
    scores = screen.scores(block)
    hits = screen.above(block, float(scores.max()))
    assert (hits.i.tolist(), hits.scores.tolist()) == ([int(scores.max(axis=1).argmax())], [scores.max()])


def test_a_gpu_is_opened_for_the_space_and_the_device_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[PairSpace, str]] = []
    monkeypatch.setattr("unface.pairs.torch_screen.TorchScreen", lambda *asked: opened.append(asked))
    space = cosine_space(np.eye(3))
    open_screen(space, "cuda:1")
    assert opened == [(space, "cuda:1")]
