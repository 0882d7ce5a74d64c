"""Results made by hand, number by number, and one small audit of people whose names must not leak."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from unface import audit, make_identities
from unface.auditing import Protocol
from unface.data import EmbeddingSet
from unface.result.audit import (
    AuditResult,
    Change,
    ContextAdjusted,
    ControlPoint,
    Controls,
    Curated,
    Duplicates,
    Erasure,
    MeasuredProtocol,
    Point,
    RoleCounts,
    SpaceResult,
)
from unface.result.file import Finding, Given, Run
from unface.result.numbers import Estimate, Kept, Rate, Share

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
    """60 identities of 8 images: k = 1, 4 and all are run, 16 is left out; the lower rates are coarse and refused."""
    settings = Protocol(
        far=(1e-2, 1e-3, 5e-4),
        probe=["cosine", "ridge", "lda", "plda"],
        seeds=2,
        bootstraps=200,
        group="shoot",
        threads=1,
    )
    return audit(secret_people(), eraser=(), protocol=settings)


def result_of(
    *spaces: SpaceResult, findings: Sequence[Finding] = (), checks: Controls | None = None, variant: str = "unface"
) -> AuditResult:
    """An audit of these spaces that nobody ran."""
    points = [one for space in spaces for one in space.points]
    return AuditResult(
        valid=not any(finding.severity == "invalid" for finding in findings),
        verdict="Made up.",
        findings=list(findings),
        not_measured=[],
        source=Given(
            name="faces.parquet",
            sha256="a" * 64,
            rows=800,
            identities=100,
            dim=8,
            encoder=None,
            weights_sha256=None,
            notes=[],
        ),
        curated=Curated(images=8, identities=100, identities_dropped=0, rows=800),
        roles=RoleCounts(fit=30, train=25, calibrate=20, test=25, seed=0, sha256="b" * 64),
        protocol=MeasuredProtocol.model_validate(
            {
                "variant": variant,
                "far": list(dict.fromkeys(one.far for one in points)) or [1e-4],
                "k": list(dict.fromkeys(one.k for one in points)) or [4],
                "seeds": 5,
                "seed": 0,
                "probe": list(dict.fromkeys(one.probe for one in points)),
                "score": "cosine",
                "bootstrap": "double-or-nothing",
                "bootstraps": 2000,
                "level": 0.95,
                "impostor_quota": None,
            }
        ),
        spaces=list(spaces),
        controls=checks or controls(),
        run=Run(unface="0", started="2025-01-01T00:00:00+00:00", seconds=1.0),
    )


def raw(*points: Point) -> SpaceResult:
    """The raw space, with no curve to draw."""
    return SpaceResult(name="raw", points=list(points), curves=[])


def erased(
    name: str,
    *points: Point,
    control: bool = False,
    changes: Sequence[Change] = (),
    utility: Sequence[Kept] = (),
) -> SpaceResult:
    """The space of an eraser or a control that removes 4 of 8 dimensions."""
    erasure = Erasure(
        method=name,
        control=control,
        rank=4,
        dim=8,
        rank_rule="given",
        fitted_on="faces.parquet",
        fit_identities=30,
        fit_images=240,
        projection_sha256="c" * 64,
        degenerate=0,
        spectrum=[],
        certificate=None,
    )
    return SpaceResult(
        name=name, erasure=erasure, points=list(points), curves=[], changes=list(changes), utility=list(utility)
    )


def change(value: float, low: float, high: float, *, against: str = "random", k: int = 4, far: float = 1e-4) -> Change:
    return Change(
        against=against, k=k, far=far, probe="lda", against_probe="ridge", value=value, low=low, high=high, level=0.95
    )


def kept(value: float, low: float, high: float, *, measure: str = "knn", on: str = "objects.parquet") -> Kept:
    whole, share = Estimate(0.8, 0.78, 0.82, 0.95), Estimate(value, low, high, 0.95)
    return Kept(measure, on, 1000, raw=whole, erased=whole, retained=share)


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
            "tar": share(tar, low, high, effective_n) if tar is not None else None,
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


def share(value: float, low: float, high: float, effective_n: float | None = 200.0) -> Share:
    return Share(value, low, high, 0.95, round(value * 100_000), 100_000, 100, effective_n)


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
    shuffled = ControlPoint(probe="ridge", k=1, far=1e-2, tar=share(0.25, 0.2, 0.31), chance=0.011, passed=passed)
    return Controls(
        shuffled_identities=[shuffled],
        near_duplicates=Duplicates(cosine=0.999, across_identities=across, within_identities=within, mated=10_000),
        lookalike_identities=lookalikes,
        stray_pictures=lost,
    )
