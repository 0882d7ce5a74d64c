"""One small audit for all tests to look at, and points made by hand."""

from functools import cache

import numpy as np

from unface import Protocol, audit, make_identities
from unface.data import EmbeddingSet
from unface.result.audit import AuditResult, ContextAdjusted, ControlPoint, Controls, Duplicates, Point
from unface.result.numbers import Rate, Share

SECRET_PEOPLE, SECRET_IDS, SECRET_SHOOTS = "Zaphod", "holiday-photo", "Betelgeuse"


def secret_people() -> EmbeddingSet:
    """Names, ids and shoots that must not leak; one picture is there twice, so that suspects are named."""
    made = make_identities(60, 8, 8, between=1.2, seed=1)
    vectors = made.vectors.copy()
    vectors[5] = vectors[100]
    number = np.arange(len(made))
    return EmbeddingSet.from_arrays(
        vectors,
        [f"{SECRET_PEOPLE} {code}, Jr." for code in made.identities],
        ids=[f"{SECRET_IDS}-{row}" for row in number],
        labels={"shoot": [f"{SECRET_SHOOTS} {row // 4}" for row in number]},
        source="faces.parquet",
    )


@cache
def audited() -> AuditResult:
    """60 identities of 8 images: k = 1 and 4 are run, 16 is left out; the lower rate is coarse or refused."""
    return audit(
        secret_people(),
        eraser=(),
        far=(1e-2, 1e-3),
        protocol=Protocol(probe=("cosine", "ridge", "lda", "plda"), seeds=2, bootstraps=200, group="shoot", threads=1),
    )


def point(
    tar: float | None = 0.084,
    low: float = 0.071,
    high: float = 0.099,
    *,
    far: float = 1e-4,
    chance: float | None = None,
    k: int = 4,
    probe: str = "lda",
    worst: bool = True,
    resolution: str = "resolved",
    effective_n: float = 200.0,
    achieved: float | None = None,
    needed: int | None = None,
    calibrate_tar: float | None = None,
    context_adjusted: ContextAdjusted | None = None,
) -> Point:
    measured = tar is not None
    reached = chance if chance is not None else far
    return Point.model_validate(
        {
            "probe": probe,
            "k": k,
            "far": far,
            "resolution": resolution,
            "worst": worst,
            "tar": estimate(tar, low, high, effective_n) if tar is not None else None,
            "achieved_far": rate(achieved if achieved is not None else reached) if measured else None,
            "chance": reached if measured else None,
            "times_chance": tar / reached if tar is not None else None,
            "threshold": 0.5 if measured else None,
            "calibrate_tar": tar if calibrate_tar is None else calibrate_tar,
            "setting": {},
            "tar_by_seed": [],
            "identities_needed": needed,
            "context_adjusted": context_adjusted,
        }
    )


def estimate(value: float, low: float, high: float, effective_n: float = 200.0) -> Share:
    return Share(
        value=value,
        numerator=round(value * 100_000),
        denominator=100_000,
        low=low,
        high=high,
        level=0.95,
        identities=100,
        effective_n=effective_n,
    )


def rate(value: float) -> Rate:
    return Rate(value=value, numerator=round(value * 1_000_000), denominator=1_000_000)


def in_context(
    value: float, low: float, high: float, *, overlap: float = 1.0, suspects: float = 0.5, unknown: float = 0.0
) -> ContextAdjusted:
    return ContextAdjusted(
        context="shoot",
        value=value,
        low=low,
        high=high,
        level=0.95,
        unknown=unknown,
        overlap=overlap,
        effective_pairs=100.0,
        suspects=rate(suspects),
        without_suspects=[],
    )


def controls(*, passed: bool = True, across: int = 0, within: int = 0, lookalikes: int = 0, lost: int = 0) -> Controls:
    shuffled = ControlPoint(probe="ridge", k=1, far=1e-2, tar=estimate(0.25, 0.2, 0.31), chance=0.011, passed=passed)
    return Controls(
        shuffled_identities=[shuffled],
        near_duplicates=Duplicates(cosine=0.999, across_identities=across, within_identities=within, mated=10_000),
        lookalike_identities=lookalikes,
        stray_pictures=lost,
    )
