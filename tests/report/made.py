"""A whole audit with made-up numbers that agree with each other: every part of audit.json is there."""

import math
from functools import cache

from unface.auditing.attribute_swap import SwapInSpace, SwapResults
from unface.auditing.maps import Map, MapResults
from unface.auditing.sweeps import Sweep, SweepPoint, SweepResults
from unface.auditing.transfer import EraserTransfer, TransferCell, TransferResults
from unface.auditing.utility import UtilitySets
from unface.result.audit import (
    AuditResult,
    Change,
    ControlPoint,
    Controls,
    Curated,
    Curve,
    Duplicates,
    Erasure,
    MeasuredProtocol,
    Point,
    RoleCounts,
    SpaceResult,
)
from unface.result.file import Finding, Given, Run
from unface.result.numbers import Certificate, Estimate, Interval, Kept, Rate, Share

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


@cache
def full_audit() -> AuditResult:
    """Raw vectors, isp and its two controls, and everything that can be asked of them."""
    spaces = [raw_space(), *(erased_space(method) for method in LEAKED)]
    return AuditResult(
        valid=True,
        verdict=(
            "Given two photos of the same stranger, an attacker matches them 6.6 % [6.2, 7.1] of the time, at one "
            "false match in 10,000: 660 times chance. After ISP: 2.6 % [2.4, 2.8], 260 times chance."
        ),
        findings=[
            Finding(severity="warning", about="near-duplicates", text="12 pairs of nearly the same vector"),
            Finding(severity="note", about="resolution", text="FAR 1e-6 at k = 16 is refused"),
        ],
        not_measured=["template inversion", "face-context attribution"],
        source=given("faces.parquet", 9_600),
        curated=Curated(images=20, identities=480, identities_dropped=3, rows=9_600),
        roles=RoleCounts(fit=144, train=120, calibrate=96, test=120, seed=0, sha256="5" * 64),
        protocol=MeasuredProtocol(
            variant="unface",
            far=FARS,
            k=KS,
            seeds=5,
            seed=0,
            probe=PROBES,
            score="cosine of each probe's vectors",
            bootstrap="double-or-nothing",
            bootstraps=2000,
            level=0.95,
            impostor_quota=None,
        ),
        spaces=spaces,
        parts={
            "sweeps": SweepResults(sweeps=[rank_sweep(), identity_sweep()]),
            "transfer": TransferResults(transfers=[transfer()]),
            "maps": MapResults(maps=[map_of("raw", 1.0), map_of("isp", 4.0)]),
            "attribute_swap": SwapResults(spaces=[swap_of("raw", 0.31), swap_of("isp", 0.12)]),
            "utility": UtilitySets(sources=[given("objects.parquet", 10_000)]),
        },
        controls=Controls(
            shuffled_identities=[
                ControlPoint(probe=p, k=4, far=1e-3, tar=estimate(0.001), chance=0.001, passed=True) for p in PROBES
            ],
            near_duplicates=Duplicates(cosine=0.999, across_identities=0, within_identities=12, mated=91_200),
            lookalike_identities=0,
            stray_pictures=0,
        ),
        run=Run(unface="0.2.0", started="2026-01-02T03:04:05+00:00", seconds=61.5),
    )


@cache
def raw_audit() -> AuditResult:
    """Nothing erased; the lower rate is refused at the largest k."""
    raw = full_audit().raw
    points = [_refused(point) if (point.k, point.far) == (16, 1e-4) else point for point in raw.points]
    return full_audit().model_copy(
        update={
            "spaces": [raw.model_copy(update={"points": points})],
            "verdict": "Given two photos of the same stranger, an attacker matches them 6.6 % [6.2, 7.1] of the time.",
            "not_measured": ["what an eraser leaves: this is the space as it is", "template inversion"],
            "parts": {},
        }
    )


@cache
def invalid_audit() -> AuditResult:
    """One control did better than chance."""
    text = "scores depend on something other than identity"
    first, *others = full_audit().controls.shuffled_identities
    failed = full_audit().controls.model_copy(
        update={"shuffled_identities": [first.model_copy(update={"passed": False}), *others]}
    )
    return raw_audit().model_copy(
        update={
            "valid": False,
            "verdict": f"The audit is invalid: {text}",
            "findings": [Finding(severity="invalid", about="shuffled identities", text=text)],
            "controls": failed,
        }
    )


def with_parts(result: AuditResult, **parts: object) -> AuditResult:
    """The same with other sections of parts; None takes one away."""
    changed = {**result.parts, **parts}
    return result.model_copy(update={"parts": {name: one for name, one in changed.items() if one is not None}})


def estimate(value: float) -> Share:
    """Six percent less to seven percent more as the interval."""
    return Share.counted(round(value * MATED), MATED, Interval(value * 0.94, value * 1.07, 0.95), 120, 900.0)


def kept(share: float, measure: str = "knn", raw: float = 0.62) -> Kept:
    return Kept(
        measure,
        "objects.parquet",
        5_000,
        raw=Estimate(raw, raw - 0.013, raw + 0.013, 0.95),
        erased=Estimate(raw * share, raw * share - 0.013, raw * share + 0.013, 0.95),
        retained=Estimate(share, share - 0.012, share + 0.012, 0.95),
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
        energy_left=Estimate(0.24, 0.22, 0.26, 0.95),
        fisher_before=Estimate(3.1, 2.8, 3.4, 0.95),
        fisher_left=Estimate(0.8, 0.7, 0.9, 0.95),
        covers="linear access, these identities, nothing else",
    )


def given(name: str, rows: int) -> Given:
    return Given(
        name=name,
        sha256="a" * 64,
        rows=rows,
        identities=rows // 20,
        dim=DIM,
        encoder="made-encoder",
        weights_sha256="b" * 64,
        notes=[],
    )


def rank_sweep() -> Sweep:
    """The raw space as rank 0, then each method at each rank."""
    points = [_swept("raw", 0, 0.066)]
    points += [
        _swept(method, rank, leaked, [kept(useful), kept(1 - (1 - useful) / 2, "copy recall@1", 0.9)])
        for method in LEAKED
        for rank, leaked, useful in zip(RANKS, LEAKED[method], USEFUL[method], strict=True)
    ]
    return Sweep(over="rank", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def identity_sweep() -> Sweep:
    """More people to learn from, less left."""
    points = [
        _swept("isp", RANK, left, people=n) for n, left in ((210, 0.038), (420, 0.034), (840, 0.03), (1680, 0.026))
    ]
    return Sweep(over="identities", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def _swept(method: str, rank: int, leaked: float, utility: list[Kept] | None = None, people: int = 144) -> SweepPoint:
    return SweepPoint(
        method=method,
        control=method in {"random", "pca"},
        rank=rank,
        fit_identities=people,
        probe="lda",
        calibrate_tar=leaked,
        tar=estimate(leaked),
        chance=1e-4,
        times_chance=leaked / 1e-4,
        utility=utility or [],
    )


def transfer() -> EraserTransfer:
    cells = {
        (None, "faces.parquet"): 0.066,
        ("faces.parquet", "faces.parquet"): 0.026,
        ("strangers.parquet", "faces.parquet"): 0.031,
        (None, "strangers.parquet"): 0.08,
        ("faces.parquet", "strangers.parquet"): 0.039,
        ("strangers.parquet", "strangers.parquet"): 0.029,
    }
    return EraserTransfer(
        method="isp",
        rank=RANK,
        first="faces.parquet",
        second=given("strangers.parquet", 8_000),
        cells=[
            TransferCell(
                fitted_on=fitted,
                tested_on=tested,
                k=4,
                far=1e-4,
                resolution="resolved",
                probe="lda",
                tar=estimate(tar),
                chance=1e-4,
                times_chance=tar / 1e-4,
            )
            for (fitted, tested), tar in cells.items()
        ],
        cosines=[1 - (index / RANK) ** 2 * 0.7 - 0.002 for index in range(RANK)],
        chance_cosine=0.968,
    )


def map_of(space: str, spread: float) -> Map:
    """A clump for each of 24 identities; the wider the spread, the less they are clumps."""
    rows = [(person, picture) for person in range(24) for picture in range(20)]
    return Map(
        space=space,
        perplexity=30.0,
        x=[
            30 * math.cos(2.4 * person) * (person / 24) ** 0.5 + spread * math.sin(7.3 * p + person)
            for person, p in rows
        ],
        y=[
            30 * math.sin(2.4 * person) * (person / 24) ** 0.5 + spread * math.cos(3.1 * p + person)
            for person, p in rows
        ],
        identity=[person for person, _ in rows],
    )


def swap_of(space: str, joint: float) -> SwapInSpace:
    return SwapInSpace(
        space=space,
        attribute="smiling",
        far=1e-3,
        resolution="resolved",
        threshold=0.3,
        directions=128,
        accuracy=_share(0.91),
        majority=0.5,
        trusted=True,
        accept=_share(joint + 0.1),
        flip=_share(0.85),
        joint=_share(joint),
    )


def _share(value: float) -> Share:
    return Share.counted(round(value * 1200), 1200, Interval(value - 0.03, value + 0.03, 0.95), identities=60)


def _refused(point: Point) -> Point:
    unknown = dict.fromkeys(("tar", "achieved_far", "chance", "times_chance", "threshold", "calibrate_tar"))
    return point.model_copy(
        update={**unknown, "resolution": "refused", "worst": False, "tar_by_seed": [], "identities_needed": 1234}
    )
