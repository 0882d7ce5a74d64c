"""A front end's channels against the two thin products Y = B X Bᵀ that they are made of."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Ratio, cpu_seconds
from unface.protect.frequency import SCHEMES, FrontEnd, scheme
from unface.seeds import stream
from unface.threads import one_blas_thread

SIZE, PICTURES, REPEATS = 112, 8, 7


def run() -> list[Ratio]:
    """Eight pictures of 112 × 112, three planes each; the least of seven runs of either side."""
    planes = stream(0, "frequency_speed").uniform(-128, 127, (PICTURES, 3, SIZE, SIZE)).astype(np.float32)
    ratios = []
    with one_blas_thread():
        for name in SCHEMES:
            front = FrontEnd(scheme(name), SIZE)
            thin = front.bases.astype(np.float32).reshape(-1, SIZE)
            front.channels(planes)
            ours = cpu_seconds(lambda front=front: front.channels(planes), REPEATS)  # type: ignore[misc]
            bare = cpu_seconds(lambda thin=thin: thin_products(thin, planes), REPEATS)  # type: ignore[misc]
            ratios.append(
                Ratio(
                    f"channels of {name} at {SIZE}² / two thin products for each plane, CPU",
                    ours / bare,
                    1.3,
                    detail=f"{1e3 * ours / PICTURES:.1f} against {1e3 * bare / PICTURES:.1f} ms a picture",
                )
            )
    return ratios


def thin_products(thin: NDArray[np.float32], planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """B X Bᵀ (8 size, 8 size) of every plane, each in the place of the one before it; returns the last."""
    product = np.empty((len(thin), len(thin)), np.float32)
    for plane in planes.reshape(-1, *planes.shape[2:]):
        np.matmul(thin @ plane, thin.T, out=product)
    return product
