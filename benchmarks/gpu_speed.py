"""The pair engine on a GPU against the GPU's own float32 product, and its answers against the CPU's."""

import time

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.ratios import Ratio
from unface.pairs import Pairing, Screen, cosine_space, count_impostors, highest_impostors, open_screen, pair_up

DIMENSION = 512
FAR = 1e-6
_SIDE = 16_384


def run() -> list[Ratio]:
    """Speed on 3.4e10 pairs, agreement on 4.5e8."""
    return [*agreement(_people(30_000)), *speed(_people(262_144))]


def agreement(pairing: Pairing) -> list[Ratio]:
    """The same thresholds, pairs and counts from both devices; and how much of the margin the error really uses."""
    cpu, gpu = open_screen(pairing.space, "cpu"), open_screen(pairing.space, "cuda")
    keep = int(FAR * pairing.impostors)
    tails = [highest_impostors(pairing, keep, screen) for screen in (cpu, gpu)]
    thresholds = np.array([float(tails[0].scores[keep // 2]), 0.15, 0.1])
    counts = [count_impostors(pairing, thresholds, screen) for screen in (cpu, gpu)]
    differing = int((tails[0].scores != tails[1].scores).sum() + (tails[0].rows != tails[1].rows).sum())
    differing += int((counts[0].by_identity != counts[1].by_identity).sum())
    listed = f"{keep} pairs listed, {counts[0].total.tolist()} counted"
    return [
        Ratio("differences between GPU and CPU in tails and counts", differing, 0, detail=listed),
        Ratio(
            "largest TF32 error / the margin kept for it",
            largest_error(pairing, gpu) / gpu.margin,
            1,
            detail=f"{gpu.margin:.2e}",
        ),
    ]


def largest_error(pairing: Pairing, screen: Screen) -> float:
    """Over the first 4,096 × 4,096 scores."""
    block = next(iter(pairing.blocks(4096, 4096)))
    left, right = (side[:4096].astype(np.float64) for side in (pairing.space.left, pairing.space.right))
    return float(np.abs(screen.scores(block) - left @ right.T).max())


def speed(pairing: Pairing) -> list[Ratio]:
    """Rates in scores made and judged a second, against float32 products of the same blocks."""
    screen = open_screen(pairing.space, "cuda")
    keep = int(FAR * pairing.impostors)
    highest_impostors(_people(40_000), 100, screen=open_screen(_people(40_000).space, "cuda"))
    start = time.monotonic()
    tail = highest_impostors(pairing, keep, screen)
    ours = time.monotonic() - start
    plain, tf32 = product_seconds(pairing.space.left, "highest"), product_seconds(pairing.space.left, "high")
    work = 2 * DIMENSION * pairing.impostors / 1e12
    rates = {"tflops": work / ours, "bare_tflops": work / plain, "bare_tf32_tflops": work / tf32}
    said = "{tflops:.0f} against {bare_tflops:.0f} TFLOP/s, bare TF32 {bare_tf32_tflops:.0f}".format(**rates)
    return [
        Ratio(
            "exact thresholds at FAR 1e-6 over 3.4 × 10¹⁰ pairs / the bare float32 product, rate",
            plain / ours,
            2,
            at_least=True,
            detail=f"{said}; {pairing.impostors:.2e} pairs in {ours:.2f} s, {len(tail)} listed",
            figures={**rates, "seconds": ours},
        )
    ]


def product_seconds(vectors: NDArray[np.float32], precision: str) -> float:
    """Seconds for the bare products of all blocks on or above the diagonal."""
    on_device = torch.from_numpy(np.array(vectors)).cuda()
    torch.set_float32_matmul_precision(precision)
    out = torch.empty((_SIDE, _SIDE), device="cuda")
    for timed in (False, True):
        torch.cuda.synchronize()
        start = time.monotonic()
        for i in range(0, len(vectors) if timed else _SIDE, _SIDE):
            for j in range(i, len(vectors), _SIDE):
                torch.mm(on_device[i : i + _SIDE], on_device[j : j + _SIDE].T, out=out)
        torch.cuda.synchronize()
    torch.set_float32_matmul_precision("highest")
    return time.monotonic() - start


def _people(images: int) -> Pairing:
    rng = np.random.default_rng(1)
    identities = np.arange(images) // 20
    means = rng.standard_normal((images // 20 + 1, DIMENSION), np.float32)
    vectors = 0.5 * means[identities] + rng.standard_normal((images, DIMENSION), np.float32)
    return pair_up(cosine_space(vectors), identities)
