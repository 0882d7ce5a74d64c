"""ISP over a million identities in batches: memory is that of one sum for each, whatever the number of images."""

import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.ratios import Ratio

IDENTITIES, IMAGES, DIM, BATCH = 1_000_000, 20, 512, 100_000
SUMS = 8 * DIM * IDENTITIES


def run() -> list[Ratio]:
    """In a process of its own, whose peak is then its own too."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.many_identities"], capture_output=True, check=True, text=True
    )
    peak, seconds = map(float, done.stdout.split())
    detail = f"{peak / 2**30:.1f} GiB for sums of {SUMS / 2**30:.1f}, {seconds:.0f} s"
    name = f"streamed ISP fit of {IDENTITIES:,} identities × {IMAGES} × {DIM}, peak memory / that of the class sums"
    return [Ratio(name, peak / SUMS, 1.5, detail=detail)]


def main() -> None:
    """Each pass over all identities brings one image of everyone."""
    from unface.erase import ISP

    noise = np.random.default_rng(1).standard_normal((BATCH, DIM), np.float32)
    start = time.perf_counter()
    eraser = ISP(192)
    for _ in range(IMAGES):
        for first in range(0, IDENTITIES, BATCH):
            eraser.partial_fit(noise, np.arange(first, first + BATCH))
            noise = np.roll(noise, 7, axis=0)
    assert eraser.projection_.rank == 192
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter() - start)


if __name__ == "__main__":
    main()
