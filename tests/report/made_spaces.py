"""Spaces of an audit with made-up numbers that agree with each other: raw vectors, an eraser, two controls."""

import math

from unface.auditing.schema import (
    Bounds,
    Certificate,
    Change,
    Curve,
    Erasure,
    Estimate,
    Rate,
    SpaceResult,
)

from unface.auditing import Point
from unface.result import numbers

MATED, IMPOSTORS, DIM, RANK = 95_000, 56_880_000, 512, 192
FARS, KS, PROBES = [1e-3, 1e-4], [1, 4, 16], ["cosine", "ridge", "lda"]
RANKS = [64, 128, 192, 256]
# Worst-case TAR at FAR 1e-4 and what is left of usefulness, by method and rank.
LEAKED = {
    "isp": [0.045, 0.033, 0.026, 0.018],
    "random": [0.061, 0.057, 0.053, 0.048],
    "pca": [0.046, 0.035, 0.028, 0.02],
}
USEFUL = {"isp": [0.97, 0.93, 0.87, 0.78], "random": [0.98, 0.94, 0.87, 0.8], "pca": [0.97, 0.94, 0.89, 0.8]}


def estimate(value: float) -> Estimate:
    """Six percent less to seven percent more as the interval."""
    numerator = round(value * MATED)
    return Estimate(
        value=numerator / MATED,
        numerator=numerator,
        denominator=MATED,
        low=value * 0.94,
        high=value * 1.07,
        level=0.95,
        method="identity bootstrap",
        identities=120,
        effective_n=900.0,
    )


def kept(share: float, measure: str = "knn", raw: float = 0.62) -> numbers.Kept:
    return numbers.Kept(
        measure,
        "objects.parquet",
        5_000,
        raw=numbers.Estimate(raw, raw - 0.013, raw + 0.013, 0.95),
        erased=numbers.Estimate(raw * share, raw * share - 0.013, raw * share + 0.013, 0.95),
        retained=numbers.Estimate(share, share - 0.012, share + 0.012, 0.95),
    )


def point(probe: str, k: int, far: float, tar: float, *, worst: bool) -> Point:
    found = estimate(tar)
    return Point(
        probe=probe,
        k=k,
        far=far,
        resolution="resolved",
        worst=worst,
        tar=found,
        achieved_far=Rate(value=far, numerator=round(far * IMPOSTORS), denominator=IMPOSTORS),
        chance=far,
        times_chance=found.value / far,
        threshold=0.4,
        calibrate_tar=tar,
        setting={},
        tar_by_seed=[tar] * 5,
    )


def raw_space() -> SpaceResult:
    return SpaceResult(name="raw", points=_points(0.066), curves=_curves(0.066))


def erased_space(method: str) -> SpaceResult:
    at = RANKS.index(RANK)
    left = LEAKED[method][at]
    others = {"raw": 0.066, **{name: leaked[at] for name, leaked in LEAKED.items()}}
    return SpaceResult(
        name=method,
        erasure=Erasure(
            method=method,
            control=method != "isp",
            rank=RANK,
            dim=DIM,
            rank_rule="given",
            fitted_on="fit identities of faces.parquet",
            fit_identities=144,
            fit_images=2_880,
            projection_sha256="c" * 64,
            degenerate=0,
            spectrum=[1.0] * RANK if method == "random" else [math.exp(-index / 60) for index in range(300)],
            certificate=_certificate() if method == "isp" else None,
        ),
        points=_points(left),
        curves=_curves(left),
        changes=[
            _change(k, left, name, tar)
            for k in KS
            for name, tar in others.items()
            if name == "raw" or (method == "isp" and name != "isp")
        ],
        utility=[kept(USEFUL[method][at]), kept(1 - (1 - USEFUL[method][at]) / 2, "copy recall@1", 0.9)],
    )


def _points(left: float) -> list[Point]:
    strength = {("cosine", 1): 0.7, ("cosine", 4): 0.7, ("cosine", 16): 0.7}
    strength |= {("ridge", 1): 0.5, ("ridge", 4): 0.8, ("ridge", 16): 0.9}
    strength |= {("lda", 1): 0.75, ("lda", 4): 1.0, ("lda", 16): 0.95}
    return [
        point(probe, k, far, left * strength[probe, k] * (2 if far == 1e-3 else 1), worst=probe == "lda")
        for k in KS
        for far in FARS
        for probe in PROBES
    ]


def _curves(left: float) -> list[Curve]:
    fars = [10 ** (-8 + index / 6) for index in range(47)]
    power = math.log(left) / math.log(1e-4)
    return [
        Curve(probe=probe, k=k, far=fars, tar=[far**power for far in fars], eer=0.2) for probe in PROBES for k in KS
    ]


def _change(k: int, here: float, name: str, there: float) -> Change:
    return Change(
        against=name,
        k=k,
        far=1e-4,
        probe="lda",
        against_probe="lda",
        value=here - there,
        low=here - there - 0.003,
        high=here - there + 0.003,
        level=0.95,
    )


def _certificate() -> Certificate:
    return Certificate(
        identities=336,
        images=6_720,
        energy_left=Bounds(value=0.24, low=0.22, high=0.26),
        fisher_before=Bounds(value=3.1, low=2.8, high=3.4),
        fisher_left=Bounds(value=0.8, low=0.7, high=0.9),
        covers="linear access, these identities, nothing else",
    )
