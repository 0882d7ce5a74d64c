"""Fitting and applying erasers against concept-erasure's LEACE and against nothing but their matrix products."""

import time
from collections.abc import Callable

import numpy as np
import torch
from concept_erasure import LeaceEraser
from numpy.typing import NDArray

from benchmarks.ratios import Ratio, cpu_seconds
from unface.data import EmbeddingSet, make_identities
from unface.erase import ISP, LEACE, Projection
from unface.threads import one_blas_thread

DIM, RANK = 512, 192


def run() -> list[Ratio]:
    """9,920 × 512 of 320 identities and 40,000 × 512 of 10,000, then the projection of the former."""
    torch.set_num_threads(1)  # its threads wait for each other in busy loops, which would count as its CPU time
    few, many = people(320, 31), people(10_000, 4)
    isp, leace = cpu_seconds(lambda: isp_of(few), 9), cpu_seconds(lambda: leace_of(few), 5)
    peer, exact_peer = cpu_seconds(theirs(few, torch.float32), 5), cpu_seconds(theirs(few, torch.float64), 3)
    leace_many, peer_many = cpu_seconds(lambda: leace_of(many), 2), cpu_seconds(theirs(many, torch.float32))
    return [
        at_least(
            "concept-erasure's LEACE fit in float64, as ours / our ISP fit, 9,920 × 512, 320 identities",
            exact_peer,
            isp,
            10,
        ),
        at_least("concept-erasure's LEACE fit in float32, its default / our ISP fit, 320 identities", peer, isp, 10),
        at_least("concept-erasure's LEACE fit in float32 / our LEACE fit, 320 identities", peer, leace, 1),
        at_least(
            "concept-erasure's LEACE fit in float32 / our LEACE fit, 10,000 identities × 4", peer_many, leace_many, 10
        ),
        *apply_ratios(isp_of(few), few.vectors),
    ]


def people(identities: int, images: int) -> EmbeddingSet:
    return make_identities(identities, images, DIM, rank=64, between=0.6, seed=1).unit()


def isp_of(made: EmbeddingSet) -> Projection:
    return ISP(RANK).fit(made.vectors, made.identities).projection_


def leace_of(made: EmbeddingSet) -> Projection:
    return LEACE().fit(made.vectors, made.identities).projection_


def theirs(made: EmbeddingSet, dtype: torch.dtype) -> Callable[[], object]:
    """Its default fit; the one-hot matrix that it wants is made outside of the timing."""
    vectors, codes = torch.from_numpy(made.vectors.copy()).to(dtype), torch.from_numpy(made.identities.copy())
    one_hot = torch.nn.functional.one_hot(codes).to(dtype)
    return lambda: LeaceEraser.fit(vectors, one_hot)


def apply_ratios(projection: Projection, vectors: NDArray[np.float32]) -> list[Ratio]:
    """One vector against 50 µs, a batch against its two thin products alone."""
    one = min(wall_seconds(lambda: projection.apply(vectors[0]), 200) for _ in range(20))
    whole = cpu_seconds(lambda: projection.apply(vectors), 7)
    exact = vectors.astype(np.float64)
    bare = cpu_seconds(lambda: bare_products(projection, exact), 7)
    single = cpu_seconds(lambda: bare_products(projection, vectors), 7)
    detail = f"{1e3 * whole:.0f} against {1e3 * bare:.0f} ms; {1e3 * single:.0f} ms if erased in float32, which leaks"
    return [
        Ratio("one vector through a projection of rank 192 in 512 dimensions, µs", 1e6 * one, 50),
        Ratio("a batch through it / its two thin float64 products, CPU", whole / bare, 1.3, detail=detail),
    ]


def bare_products(projection: Projection, vectors: NDArray[np.float32] | NDArray[np.float64]) -> None:
    left = projection.directions.astype(vectors.dtype)
    with one_blas_thread():
        (vectors @ left) @ left.T


def wall_seconds(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def at_least(name: str, theirs: float, ours: float, bound: float) -> Ratio:
    return Ratio(f"{name}, CPU", theirs / ours, bound, True, f"{1e3 * theirs:.0f} against {1e3 * ours:.0f} ms")
