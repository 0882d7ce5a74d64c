"""Exact thresholds against the bare matrix product of the same scores, against scikit-learn, and in memory."""

import subprocess
import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Ratio, cpu_seconds
from unface import verify
from unface.threads import one_blas_thread

DIMENSION = 512
FAR = 1e-6


def run() -> list[Ratio]:
    """1e9 impostor pairs, and fewer to see that cost is linear in them."""
    large, small = _people(44_740), _people(22_370)
    pairs = _pairs(large)
    exact = cpu_seconds(lambda: _thresholds(large), repeats=2)
    bare = cpu_seconds(lambda: bare_products(large), repeats=2)
    fewer = cpu_seconds(lambda: _thresholds(small), repeats=2)
    each, each_small = exact / pairs, fewer / _pairs(small)
    reference = roc_curve_each()
    return [
        Ratio(
            "exact thresholds at FAR 1e-6 over 10⁹ pairs of 512 dimensions / the bare product of the same scores, CPU",
            exact / bare,
            1.2,
            detail=f"{1e9 * each:.1f} against {1e9 * bare / pairs:.1f} ns a pair",
        ),
        Ratio("CPU for each pair / with a quarter of the pairs", each / each_small, 1.1),
        Ratio(
            "scikit-learn's `roc_curve` on 10⁸ ready scores / ours with the product, CPU for each pair",
            reference / each,
            30,
            at_least=True,
            detail=f"{1e9 * reference:.0f} against {1e9 * each:.1f} ns",
        ),
        Ratio("peak memory over 10⁹ pairs, MB", peak_megabytes(), 500),
    ]


def bare_products(vectors: NDArray[np.float32]) -> None:
    """The scores and nothing else: every block on or above the diagonal, in the block shape that is fastest here."""
    rows, columns = 2048, 2048
    out = np.empty((rows, columns), np.float32)
    with one_blas_thread():
        for i in range(0, len(vectors), rows):
            for j in range(i, len(vectors), columns):
                left, right = vectors[i : i + rows], vectors[j : j + columns]
                np.matmul(left, right.T, out=out[: len(left), : len(right)])


def roc_curve_each() -> float:
    """CPU seconds of scikit-learn for each of 100 million ready scores."""
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(0)
    scores = rng.standard_normal(100_000_000, np.float32)
    truth = rng.random(len(scores)) < 1e-3
    return cpu_seconds(lambda: roc_curve(truth, scores)) / len(scores)


def peak_megabytes() -> float:
    """Peak resident memory of a process that does only this."""
    program = "from benchmarks.pairs_speed import _people, _thresholds; _thresholds(_people(44_740));"
    # VmHWM and not getrusage, whose maximum a child inherits from the process that forked it
    program += "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout) / 1024


def _people(images: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((images, DIMENSION), np.float32)


def _pairs(vectors: NDArray[np.float32]) -> float:
    return len(vectors) * (len(vectors) - 20) / 2


def _thresholds(vectors: NDArray[np.float32]) -> None:
    verify(vectors, np.arange(len(vectors)) // 20, far=(FAR,))
