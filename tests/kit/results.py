"""Results made by hand, and the one place that knows their classes.

``result(kind)`` is a whole result of that kind whose numbers agree with each other. Below it, kind by kind, stand
builders of its pieces for tests that choose every number: ``audited(raw(point(0.3, 0.28, 0.32)), erased("isp"))``.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, cast

from unface.auditing.albums import AlbumChange, AlbumControl, AlbumPoint, AlbumResults
from unface.auditing.attribute_swap import SwapInSpace, SwapResults
from unface.auditing.exposure import Exposure, ExposureResults, GroupGap, GroupTar
from unface.auditing.maps import Map, MapResults
from unface.auditing.search import HitRates, OpenSearch, SearchResults, SpaceSearch
from unface.auditing.sweeps import Sweep, SweepPoint, SweepResults
from unface.auditing.transfer import EraserTransfer, TransferCell, TransferResults
from unface.auditing.translate import TranslateCeiling, TranslatedAt, TranslatedSpace, TranslateResults
from unface.auditing.utility import UtilitySets
from unface.result import attribution as attributions
from unface.result import certificate as certificates
from unface.result import inversion as inversions
from unface.result import protection as protections
from unface.result import release as releases
from unface.result import validation as validations
from unface.result.attribution import AttributedSpace, AttributionResult, EncoderAttribution
from unface.result.audit import (
    AuditResult,
    Change,
    ContextAdjusted,
    ControlPoint,
    Controls,
    Curated,
    Curve,
    Duplicates,
    ErasedSource,
    Erasure,
    FitOverlap,
    GateUse,
    MeasuredProtocol,
    Point,
    RoleCounts,
    SameRate,
    SpaceResult,
)
from unface.result.certificate import CertificateResult
from unface.result.face_gate import GateCertificate
from unface.result.file import Finding, Given, Listing, ResultFile, Run
from unface.result.history import PastResult, past_result
from unface.result.inversion import InversionCell, InversionResult
from unface.result.numbers import (
    Certificate,
    Estimate,
    Interval,
    Kept,
    Mean,
    Rate,
    Share,
    wilson_ends,
    zero_bound,
)
from unface.result.protection import AttackerResult, MethodResult, PairsResult, ProtectionResult
from unface.result.readings import Readable, Reading
from unface.result.release import ExposureResult, ReleaseResult, RiskResult, SetFacts, ViewResult
from unface.result.validation import ALL_JUDGES, AttackResult, Hardening, ValidationResult

__all__ = [
    "AlbumResults",
    "AttackResult",
    "AuditResult",
    "CertificateResult",
    "Change",
    "Controls",
    "EncoderAttribution",
    "Estimate",
    "Finding",
    "FitOverlap",
    "Hardening",
    "Interval",
    "InversionCell",
    "InversionResult",
    "Listing",
    "MethodResult",
    "PastResult",
    "Point",
    "ProtectionResult",
    "Rate",
    "Readable",
    "Reading",
    "ReleaseResult",
    "Run",
    "Share",
    "SpaceResult",
    "ValidationResult",
    "ViewResult",
    "past_result",
]
"""Classes that tests name in their types: so no other file has to know where they live."""

Kind = Literal["audit", "validation", "release", "inversion", "certificate", "protection", "attribution"]
Resolution = Literal["resolved", "coarse"]
AnyResult = ResultFile | AttributionResult
KINDS: tuple[Kind, ...] = (
    "audit", "validation", "release", "inversion", "certificate", "protection", "attribution",
)  # fmt: skip

INVALID = Finding(severity="invalid", about="shuffled identities", text="shuffled people are still linked")
WARNING = Finding(severity="warning", about="near-duplicates", text="3 pairs under different identities")
NOTE = Finding(severity="note", about="k", text="k = 16 was left out")
RUN = Run(unface="0.2.0", started="2026-01-02T03:04:05+00:00", seconds=61.5)


def result(kind: Kind, **changes: object) -> AnyResult:
    """A whole result of a kind, with other values in some of its fields."""
    made: dict[Kind, Callable[[], AnyResult]] = {
        "audit": full_audit,
        "validation": validation,
        "release": full_release,
        "inversion": full_inversion,
        "certificate": certificate,
        "protection": protection,
        "attribution": attribution,
    }
    return made[kind]().model_copy(update=changes)


# Numbers that every kind has


def share(value: float, low: float, high: float, effective_n: float | None = 200.0) -> Share:
    """Of 100,000 pairs of 100 people."""
    return Share(value, low, high, 0.95, round(value * 100_000), 100_000, 100, effective_n)


def counted(numerator: int, denominator: int, low: float, high: float) -> Share:
    """Each person counts once."""
    return Share.counted(numerator, denominator, Interval(low, high, 0.95), denominator)


def rate(value: float) -> Rate:
    return Rate(value=value, numerator=round(value * 1_000_000), denominator=1_000_000)


def given(name: str, rows: int) -> Given:
    """A set of vectors with twenty rows of each person."""
    return Given(
        name=name,
        sha256="a" * 64,
        rows=rows,
        identities=rows // 20,
        dim=512,
        encoder="made-encoder",
        weights_sha256="b" * 64,
        notes=[],
    )


# An audit of few numbers


def audited(
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
        curated=Curated(
            images=8, most=8 if variant == "unface" else None, identities=100, identities_dropped=0, rows=800
        ),
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


def raw(*points: Point, curves: Sequence[Curve] = ()) -> SpaceResult:
    """The raw space, linked in 30 % of pairs unless points are given."""
    return SpaceResult(name="raw", points=list(points or [point(0.3, 0.28, 0.32)]), curves=list(curves))


def erased(
    name: str = "isp",
    *points: Point,
    control: bool = False,
    changes: Sequence[Change] = (),
    utility: Sequence[Kept] = (),
    curves: Sequence[Curve] = (),
    **erasure: object,
) -> SpaceResult:
    """What an eraser or a control leaves that removes 4 of 8 dimensions: 0.8 % of pairs unless points are given."""
    plain: dict[str, object] = {
        "method": name,
        "control": control,
        "rank": 4,
        "dim": 8,
        "rank_rule": "given",
        "fitted_on": "faces.parquet",
        "fit_identities": 30,
        "fit_images": 240,
        "projection_sha256": "c" * 64,
        "degenerate": 0,
        "spectrum": [],
        "certificate": None,
    }
    return SpaceResult(
        name=name,
        erasure=Erasure.model_validate({**plain, **erasure}),
        points=list(points or [point(0.008, 0.006, 0.009)]),
        curves=list(curves),
        changes=list(changes),
        utility=list(utility),
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
    over_people: float | None = None,
    calibrate_tar: float | None = None,
    context_adjusted: ContextAdjusted | None = None,
) -> Point:
    """The TAR of one attacker at one k and rate."""
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
            "tar_over_people": over_people,
            "identities_needed": needed,
            "context_adjusted": context_adjusted,
        }
    )


def refused(*, k: int = 4, far: float = 1e-6, probe: str = "lda", needed: int | None = 1234) -> Point:
    """A rate that the audit is too small for."""
    return point(None, k=k, far=far, probe=probe, resolution="refused", worst=False, needed=needed)


def change(
    value: float,
    low: float,
    high: float,
    *,
    against: str = "random",
    k: int = 4,
    far: float = 1e-4,
    same_rate: SameRate | None = None,
) -> Change:
    return Change(
        against=against,
        k=k,
        far=far,
        probe="lda",
        against_probe="ridge",
        value=value,
        low=low,
        high=high,
        level=0.95,
        same_rate=same_rate,
    )


def same_rate(here: float, there: float, achieved: float = 1e-4, against: float = 2.6e-4) -> SameRate:
    """TAR with thresholds of the test people; achieved rates are those of the calibrated ones."""
    return SameRate(
        tar=rate(here), against_tar=rate(there), achieved_far=rate(achieved), against_achieved_far=rate(against)
    )


def kept(
    value: float, low: float, high: float, *, measure: str = "knn", on: str = "objects.parquet", whole: float = 0.8
) -> Kept:
    """What is left of usefulness that was ``whole`` in the raw space."""
    before = Estimate(whole, whole - 0.02, whole + 0.02, 0.95)
    after = Estimate(whole * value, whole * low, whole * high, 0.95)
    return Kept(measure, on, 1000, raw=before, erased=after, retained=Estimate(value, low, high, 0.95))


def in_context(
    value: float,
    low: float,
    high: float,
    *,
    overlap: float = 1.0,
    suspects: float = 0.5,
    unknown: float = 0.0,
    apart: Share | None = None,
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
        apart=apart,
    )


def controls(*, passed: bool = True, across: int = 0, within: int = 0, lookalikes: int = 0, lost: int = 0) -> Controls:
    shuffled = ControlPoint(probe="ridge", k=1, far=1e-2, tar=share(0.25, 0.2, 0.31), chance=0.011, passed=passed)
    return Controls(
        shuffled_identities=[shuffled],
        near_duplicates=Duplicates(cosine=0.999, across_identities=across, within_identities=within, mated=10_000),
        lookalike_identities=lookalikes,
        stray_pictures=lost,
    )


def certified(covers: str = "linear access, these identities, nothing else") -> Certificate:
    """What linear access still finds in an erased space."""
    return Certificate(
        identities=336,
        images=6_720,
        energy_left=Estimate(0.24, 0.22, 0.26, 0.95),
        fisher_before=Estimate(3.1, 2.8, 3.4, 0.95),
        fisher_left=Estimate(0.8, 0.7, 0.9, 0.95),
        covers=covers,
    )


def face_gate(missed_here: tuple[int, int] = (2, 800), *, asked: float = 0.001, bound: float = 0.0012) -> GateUse:
    """What a face gate let pass: 1 of 4,000 held-out faces, and of the audit's own pictures as many as given."""
    rates = (Rate.counted(1, 4_000), bound, Rate.counted(1, 200), 0.024, Rate.counted(30, 1_000))
    return GateUse(certificate=GateCertificate(asked, *rates), missed_here=Rate.counted(*missed_here))


def fit_overlap(matches: int = 7, *, people: int = 1, overlap: bool = False) -> FitOverlap:
    return FitOverlap(people=people, compared=1_000, matches=matches, chance=0.005, overlap=overlap)


def erased_source(overlap: FitOverlap | None = None) -> ErasedSource:
    """Vectors that were erased before they were audited."""
    return ErasedSource(kind="isp", rank=4, gated=False, projection_sha256="c" * 64, overlap=overlap)


# A whole audit

FARS, KS, PROBES, RANK = [1e-3, 1e-4], [1, 4, 16], ["cosine", "ridge", "lda"], 192
RANKS = [64, 128, 192, 256]
LEAKED = {
    "isp": [0.045, 0.033, 0.026, 0.018],
    "random": [0.061, 0.057, 0.053, 0.048],
    "pca": [0.046, 0.035, 0.028, 0.02],
}
"""Worst-case TAR at FAR 1e-4 by method and rank."""
USEFUL = {"isp": [0.97, 0.93, 0.87, 0.78], "random": [0.98, 0.94, 0.87, 0.8], "pca": [0.97, 0.94, 0.89, 0.8]}
"""What is left of usefulness, likewise."""


@cache
def full_audit() -> AuditResult:
    """Raw vectors, isp and its two controls, and everything that can be asked of them."""
    spaces = [_full_raw(0.066), *(_full_erased(method) for method in LEAKED)]
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
        curated=Curated(images=20, most=20, identities=480, identities_dropped=3, rows=9_600),
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
                ControlPoint(probe=p, k=4, far=1e-3, tar=_about(0.001), chance=0.001, passed=True) for p in PROBES
            ],
            near_duplicates=Duplicates(cosine=0.999, across_identities=0, within_identities=12, mated=91_200),
            lookalike_identities=0,
            stray_pictures=0,
        ),
        run=RUN,
    )


@cache
def raw_audit() -> AuditResult:
    """Nothing erased; the lower rate is refused at the largest k."""
    first = full_audit().raw
    points = [refused(k=16, far=1e-4, probe=p.probe) if (p.k, p.far) == (16, 1e-4) else p for p in first.points]
    return full_audit().model_copy(
        update={
            "spaces": [first.model_copy(update={"points": points})],
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
    """The same audit with other sections of parts; None takes one away."""
    changed = {**result.parts, **parts}
    return result.model_copy(update={"parts": {name: one for name, one in changed.items() if one is not None}})


def _about(value: float) -> Share:
    """Six percent less to seven percent more as the interval."""
    return share(value, value * 0.94, value * 1.07, 900.0)


def _full_raw(left: float) -> SpaceResult:
    return raw(*_points(left), curves=_curves(left))


def _full_erased(method: str) -> SpaceResult:
    at = RANKS.index(RANK)
    left = LEAKED[method][at]
    others = {"raw": 0.066, **{name: leaked[at] for name, leaked in LEAKED.items()}}
    useful = USEFUL[method][at]
    return erased(
        method,
        *_points(left),
        curves=_curves(left),
        changes=[
            _full_change(k, left, name, tar)
            for k in KS
            for name, tar in others.items()
            if name == "raw" or (method == "isp" and name != "isp")
        ],
        utility=[_full_kept(useful), _full_kept(1 - (1 - useful) / 2, "copy recall@1")],
        control=method != "isp",
        rank=RANK,
        dim=512,
        fitted_on="fit identities of faces.parquet",
        fit_identities=144,
        fit_images=2_880,
        spectrum=[1.0] * RANK if method == "random" else [math.exp(-index / 60) for index in range(300)],
        certificate=certified() if method == "isp" else None,
    )


def _points(left: float) -> list[Point]:
    strength = {("cosine", 1): 0.7, ("cosine", 4): 0.7, ("cosine", 16): 0.7}
    strength |= {("ridge", 1): 0.5, ("ridge", 4): 0.8, ("ridge", 16): 0.9}
    strength |= {("lda", 1): 0.75, ("lda", 4): 1.0, ("lda", 16): 0.95}
    found = []
    for k in KS:
        for far in FARS:
            for probe in PROBES:
                tar = _about(left * strength[probe, k] * (2 if far == 1e-3 else 1))
                at = point(tar.value, tar.low, tar.high, far=far, k=k, probe=probe, worst=probe == "lda")
                found.append(at.model_copy(update={"tar_by_seed": [tar.value] * 5}))
    return found


def _curves(left: float) -> list[Curve]:
    fars = [10 ** (-8 + index / 6) for index in range(47)]
    power = math.log(left) / math.log(1e-4)
    return [
        Curve(probe=probe, k=k, far=fars, tar=[far**power for far in fars], eer=0.2) for probe in PROBES for k in KS
    ]


def _full_change(k: int, here: float, name: str, there: float) -> Change:
    return change(here - there, here - there - 0.003, here - there + 0.003, against=name, k=k)


def _full_kept(value: float, measure: str = "knn") -> Kept:
    return kept(value, value - 0.012, value + 0.012, measure=measure)


# Parts of an audit


def sweeps(*found: Sweep) -> SweepResults:
    return SweepResults(sweeps=list(found))


def utility_sets(*names: str, spared: str | None = None) -> UtilitySets:
    return UtilitySets(sources=[given(name, 9) for name in names], spared=None if spared is None else given(spared, 9))


def rank_sweep() -> Sweep:
    """The raw space as rank 0, then each method at each rank."""
    points = [swept("raw", 0, 0.066)]
    points += [
        swept(method, rank, leaked, _full_kept(useful), _full_kept(1 - (1 - useful) / 2, "copy recall@1"))
        for method in LEAKED
        for rank, leaked, useful in zip(RANKS, LEAKED[method], USEFUL[method], strict=True)
    ]
    return Sweep(over="rank", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def identity_sweep() -> Sweep:
    """More people to learn from, less left."""
    points = [
        swept("isp", RANK, left, people=n) for n, left in ((210, 0.038), (420, 0.034), (840, 0.03), (1680, 0.026))
    ]
    return Sweep(over="identities", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def swept(method: str, rank: int, tar: float, *utility: Kept, people: int = 144) -> SweepPoint:
    """One method at one rank."""
    return SweepPoint(
        method=method,
        control=method in {"random", "pca"},
        rank=rank,
        fit_identities=people,
        probe="lda",
        calibrate_tar=tar,
        tar=_about(tar),
        chance=1e-4,
        times_chance=tar / 1e-4,
        utility=list(utility),
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
                resolution="coarse" if fitted == "strangers.parquet" == tested else "resolved",
                probe="lda",
                tar=_about(tar),
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


def maps(*found: Map) -> MapResults:
    return MapResults(maps=list(found))


def swap_of(space: str, joint: float, *, trusted: bool = True) -> SwapInSpace:
    return SwapInSpace(
        space=space,
        attribute="smiling",
        far=1e-3,
        resolution="resolved",
        threshold=0.3,
        directions=128,
        accuracy=_of_60(0.91),
        majority=0.5,
        trusted=trusted,
        accept=_of_60(joint + 0.1),
        flip=_of_60(0.85),
        joint=_of_60(joint),
    )


def _of_60(value: float) -> Share:
    return Share.counted(round(value * 1200), 1200, Interval(value - 0.03, value + 0.03, 0.95), identities=60)


def album(tar: float | None, size: tuple[int, int], space: str = "raw", **others: object) -> AlbumPoint:
    """At FAR 1e-4, by LDA, which is the worst case; None is refused."""
    plain: dict[str, object] = {
        "space": space,
        "probe": "lda",
        "first": size[0],
        "second": size[1],
        "far": 1e-4,
        "resolution": "resolved" if tar is not None else "refused",
        "worst": tar is not None,
        "tar": None if tar is None else share(tar, tar - 0.01, tar + 0.01),
        "achieved_far": None if tar is None else rate(2e-4),
        "chance": None if tar is None else 1e-4,
        "times_chance": None if tar is None else tar / 1e-4,
        "threshold": 0.5,
        "calibrate_tar": tar,
    }
    return AlbumPoint.model_validate({**plain, **others})


def albums(*points: AlbumPoint, failed: bool = False) -> AlbumResults:
    """Albums of one, two and three pictures, unless points are given."""
    usual = (
        album(0.2, (2, 2)),
        album(0.1, (2, 2), probe="cosine", worst=False),
        album(0.05, (1, 1)),
        album(0.4, (2, 3), resolution="coarse"),
        album(0.02, (1, 1), "isp"),
        album(None, (2, 2), "isp", identities_needed=1_500),
        album(0.04, (1, 1), "random"),
        album(0.3, (2, 3), far=1e-3),
    )
    return AlbumResults(
        k=4,
        images=6,
        deals=2,
        points=list(points or usual),
        changes=[
            AlbumChange(
                space="isp", against="raw", first=2, second=3, far=1e-3, value=-0.1, low=-0.12, high=0.02, level=0.95
            )
        ],
        shuffled_identities=[
            AlbumControl(probe="lda", first=2, second=2, far=1e-2, tar=share(0.01, 0, 0.02), chance=0.01, passed=True),
            AlbumControl(
                probe="lda", first=2, second=3, far=1e-2, tar=share(0.2, 0.1, 0.3), chance=0.01, passed=not failed
            ),
        ],
    )


def searched(space: str = "raw", *, worst: bool = True, opened: Resolution | None = "resolved") -> SpaceSearch:
    """One attacker's searches in two galleries; ``opened`` is the resolution of the search that may find nobody."""

    def hits(gallery: int, value: float) -> HitRates:
        means = [Mean(at, at - 0.01, at + 0.01, 0.95, 100, 25) for at in (value, value + 0.1)]
        return HitRates(gallery=gallery, first=means[0], first_ten=means[1], chance_first=0.04, chance_first_ten=0.33)

    found = OpenSearch(
        fpir=1e-2,
        people=25,
        resolution=opened or "resolved",
        threshold=0.4,
        found=share(0.31, 0.3, 0.32),
        achieved_fpir=Rate.counted(1, 100),
    )
    return SpaceSearch(
        space=space,
        probe="lda" if worst else "cosine",
        worst=worst,
        rates=[hits(1_000, 0.5), hits(20_000, 0.2)],
        open_set=found if opened else None,
    )


def searches(*found: SpaceSearch) -> SearchResults:
    usual = (searched(opened="coarse"), searched(worst=False, opened=None), searched("random"))
    return SearchResults(k=4, people=25, searches=list(found or usual))


def exposures(column: str | None = "region", *, few: int = 0, low: float = 0.01) -> ExposureResults:
    """How TAR is spread over people; ``low`` is the lower end of the gap between two groups."""
    groups = [GroupTar(group=n, people=people, tar=share(0.1 * n, 0, 0.5)) for n, people in ((1, 12), (2, 13))]
    gap = GroupGap(higher=2, lower=1, value=0.1, low=low, high=0.2, level=0.95)
    one = Exposure(
        space="raw",
        probe="lda",
        half_linked=share(0.2, 0.15, 0.25),
        worst_tenth=Estimate(0.7, 0.6, 0.8, 0.95),
        dsys=Estimate(0.412, 0.384, 0.441, 0.95),
        dsys_bias=0.0123,
        groups=groups if column else [],
        gap=gap if column else None,
    )
    return ExposureResults(k=4, far=1e-3, column=column, few=few, spaces=[one])


def translated_at(
    far: float, other: float | None, change: Estimate | None = None, resolution: Resolution = "resolved"
) -> TranslatedAt:
    return TranslatedAt(
        far=far,
        resolution=resolution,
        threshold=0.4,
        same=share(0.9, 0.85, 0.95),
        other=None if other is None else share(other, other - 0.01, other + 0.01),
        chance=Rate.counted(1, 1_000),
        change=change,
    )


def translated(*of_raw: TranslatedAt, encoder: str | None = "arc") -> TranslateResults:
    """Templates of another recogniser made of these vectors."""
    changed = translated_at(1e-3, 0.1, Estimate(-0.4, -0.45, 0.02, 0.95), "coarse")
    usual = (translated_at(1e-2, 0.8), translated_at(1e-3, 0.5), translated_at(1e-4, 0.3))
    return TranslateResults(
        recogniser=given("recogniser.npz", 100).model_copy(update={"encoder": encoder}),
        train_pictures=1_200,
        spaces=[
            TranslatedSpace(space="raw", control=False, strength=1, at=list(of_raw or usual)),
            TranslatedSpace(space="isp", control=False, strength=1, at=[changed]),
            TranslatedSpace(space="random", control=True, strength=1, at=[translated_at(1e-2, None)]),
        ],
        ceiling=[
            TranslateCeiling(far=1e-2, other=share(0.99, 0.98, 1)),
            TranslateCeiling(far=1e-3, other=share(0.95, 0.9, 0.97)),
            TranslateCeiling(far=1e-4, other=None),
        ],
    )


@cache
def every_part() -> AuditResult:
    """The whole audit with the parts that most audits leave out."""
    gated = full_audit().spaces[1]
    assert gated.erasure is not None
    gated = gated.model_copy(update={"erasure": gated.erasure.model_copy(update={"gate": face_gate()})})
    first = full_audit().raw
    shoot = in_context(0.04, 0.03, 0.05, overlap=0.8)
    points = [p.model_copy(update={"context_adjusted": shoot}) if p.worst else p for p in first.points]
    spaces = [first.model_copy(update={"points": points}), gated, *full_audit().spaces[2:]]
    return with_parts(
        full_audit().model_copy(update={"spaces": spaces, "gate_source": given("things.npz", 4_000)}),
        albums=albums(),
        search=searches(),
        exposure=exposures(),
        translate=translated(),
        inversion=full_inversion(),
        attribution=encoder(),
    )


# Validation


def of_400(value: float) -> Share:
    """Of 400 comparisons of 40 people, give or take 5 points."""
    ends = Interval(max(value - 0.05, 0), min(value + 0.05, 1), 0.95)
    return Share.counted(round(400 * value), 400, ends, 40)


def validated_attack(name: str, *values: float) -> AttackResult:
    """After 10 and 100 questions, at FAR 1e-2 and half of it at FAR 1e-3."""
    at = [
        validations.Success(
            queries=queries, far=far, judge=ALL_JUDGES, same=None, other=of_400(value * part), chance=far
        )
        for far, part in ((1e-2, 1.0), (1e-3, 0.5))
        for queries, value in zip((10, 100), values, strict=True)
    ]
    return AttackResult(name=name, adaptive=False, settings=[], at=at)


def validation(worst: float = 0.6, *, findings: tuple[Finding, ...] = (), name: str = "door") -> ValidationResult:
    """Two attacks; ``worst`` is what the better one reaches at FAR 1e-2 after 100 questions."""
    thresholds = [
        validations.JudgeThreshold(far=far, cosine=0.4, impostors=10**6, false_accepts=1000, resolution="resolved")
        for far in (1e-2, 1e-3)
    ]
    return ValidationResult(
        target=validations.TargetFacts(
            name=name, kind="function", decisions_only=False, local=True, authorised_by=None
        ),
        enrolled=validations.Enrolled(source="nobody", generated=True, people=40, pictures=200, sha256="a" * 64),
        attacker=validations.Attacker(encoder="made-encoder", queries="nobody", generated=True, pictures=500),
        asked=validations.Asked(
            budget=100, counted=4000, answered=4000, lost=0, people_finished=40, ended=None, sha256="b" * 64
        ),
        judges=[validations.JudgeFacts(name="judge", independent=True, thresholds=thresholds)],
        attacks=[validated_attack("scores", worst / 2, worst), validated_attack("best-of-n", worst / 4, worst / 2)],
        shuffled=[],
        ceiling=[validations.Ceiling(far=far, judge=ALL_JUDGES, other=of_400(0.9)) for far in (1e-2, 1e-3)],
        findings=list(findings),
        run=RUN,
    )


# Release

PERMUTED = releases.PermutationTest(p=0.4, exact=True, permutations=None)


def facts(name: str, people: int | None) -> SetFacts:
    return SetFacts(
        name=name, sha256="00", rows=1000, people=people, clustered=False, dim=8, encoder="sface", weights_sha256=None
    )


def exposure(listed: int, least: int = 2) -> ExposureResult:
    """So many of 1,000 training people are listed."""
    found = counted(listed, 1000, max(listed / 1000 - 0.002, 0), listed / 1000 + 0.003)
    return ExposureResult(fdr=0.05, exposed=None if least > 1000 else found, least=least, pictures=3, smallest_p=0.001)


def view(name: str = "face", *, listed: int = 0, least: int = 2, links: bool = True) -> ViewResult:
    """A release seen by one recogniser; FAR 1e-4 is resolved and 1e-5 coarse."""
    return ViewResult(
        name=name,
        linking=releases.Linking(far=0.01, tar=counted(50, 100, 0.4, 0.6), above_chance=links),
        membership=releases.MembershipResult(share=counted(500, 1000, 0.47, 0.53), null=0.5, test=PERMUTED),
        exposure=exposure(listed, least),
        separation=releases.SeparationResult(
            auc=Estimate(0.5, 0.48, 0.52, 0.95), fpr=0.01, tpr=None, average_precision=0.5, coin=0.5
        ),
        copies=[
            releases.CopiesResult(
                far=far,
                cosine=0.4,
                strangers=1000,
                false_accepts=1,
                resolution="coarse" if far == 1e-5 else "resolved",
                copies=counted(5, 1000, 0.002, 0.01),
                holdout=4,
                expected=4.0,
                excess=Estimate(0.001, -0.002, 0.004, 0.95),
                test=PERMUTED,
            )
            for far in (1e-4, 1e-5)
        ],
        riskiest=[],
    )


def release(*views: ViewResult, holds: bool = True, **changes: object) -> ReleaseResult:
    """A set of faces that exposes nobody, unless its views say so; what they say is no chance."""
    shown = any(one.exposure.listed or min(_p_values(one)) < 0.01 for one in views)
    overall = releases.PermutationTest(p=1e-4 if shown else 0.4, exact=False, permutations=9_999)
    return ReleaseResult(
        synthetic=facts("drawn", None),
        training=facts("people", 1000),
        holdout=facts("others", 1000),
        exchangeable=releases.ExchangeabilityResult(
            auc=0.5 if holds else 0.9, limit=0.55, people=500, holds=holds, needed=700
        ),
        views=list(views) or [view()],
        fused=None,
        overall=overall,
        retrieval=[
            RiskResult(
                pictures="other",
                identities=size,
                released=size,
                k=2,
                share=counted(60, 1000, 0.05, 0.07),
                chance=2 / size,
            )
            for size in (10, 1000)
        ],
        findings=[],
        run=Run(unface="0", started="2026-01-01T00:00:00+00:00", seconds=1.0),
    ).model_copy(update=changes)


def _p_values(of: ViewResult) -> list[float]:
    near = [] if of.enrichment is None else [of.enrichment.p]
    return [of.membership.test.p, *(one.test.p for one in of.copies), *near]


def full_release() -> ReleaseResult:
    """Forty people listed, two views, a copy among the riskiest faces."""
    copied = releases.RiskyPicture(id="s1.png", training=0.91, holdout=0.32, people=2, is_copy=True)
    face = view(listed=40).model_copy(update={"riskiest": [copied]})
    return release(face, view("eyes"), fused=exposure(44), findings=[WARNING])


def exact_copies(faces: int, people: int) -> releases.ExactCopies:
    return releases.ExactCopies(faces=faces, people=people)


def enriched(name: str, p: float, listed: int = 0) -> ViewResult:
    """A view whose nearest people are training people with this p-value."""
    near = releases.EnrichmentResult(nearest=20, training=15, expected=10.0, p=p)
    return view(name, listed=listed).model_copy(update={"enrichment": near})


# Inversion

_NOTHING = inversions.Passes(encoder_forward=0, encoder_backward=0, prior_forward=0, prior_backward=0, seconds=0)
_COSINE = Estimate(0.9, 0.8, 0.95, 0.95)


def cell(attack: str, accepted: int, space: str = "raw", *, converged: bool | None = True) -> InversionCell:
    """One attack on one space: so many of 100 people are found at FAR 1e-3."""
    found = Share.counted(accepted, 100, Interval(max(accepted / 100 - 0.02, 0), accepted / 100 + 0.03, 0.95), 100)
    at = inversions.InversionSuccess(far=1e-3, judge="all", same=found, other=found, derangement=Rate.counted(0, 900))
    return InversionCell(
        attack=attack,
        space=space,
        settings={},
        knows=[],
        gives="pictures",
        targets=100,
        no_face=0,
        reached=_COSINE,
        converged=converged,
        at=[at],
        each=_NOTHING,
        shared=_NOTHING,
    )


def inversion(*cells: InversionCell, resolution: Resolution = "resolved") -> InversionResult:
    """These attacks, judged by one recogniser."""
    cells = cells or (cell("bob", 62), cell("bob", 20, "isp"))
    threshold = validations.JudgeThreshold(
        far=1e-3, cosine=0.3, impostors=10**5, false_accepts=99, resolution=resolution
    )
    error = inversions.EqualError(rate=0.05, cosine=0.2, far=0.05)
    spaces = [
        inversions.SpaceFacts(
            name=name, kind=None, rank=0, dim=8, projection_sha256=None, second=_COSINE, strangers=_COSINE
        )
        for name in dict.fromkeys(one.space for one in cells)
    ]
    return InversionResult(
        encoder=inversions.Attacked(name="e", dim=8, weights_sha256=None, aligned=False),
        people=inversions.TargetPeople(
            source="x", generated=True, targets=100, pictures=200, train=0, calibrate=100, sha256="ab"
        ),
        prior=None,
        judges=[inversions.InversionJudge(name="sface", independent=True, thresholds=[threshold], equal_error=error)],
        spaces=spaces,
        cells=list(cells),
        ceiling=[],
        findings=[],
        run=Run(unface="0", started="", seconds=0),
    )


def full_inversion() -> InversionResult:
    """One attack with few and with many steps, a control, and a space on which it did not converge."""
    slow = cell("alsuv:steps=300", 62).model_copy(update={"settings": {"steps": 300.0}})
    fast = cell("alsuv:steps=30", 41).model_copy(update={"settings": {"steps": 30.0}})
    control = inversions.InversionControl(name="random face", cosine=None, at=cell("x", 3).at)
    controlled = slow.model_copy(update={"controls": [control]})
    return inversion(fast, controlled, cell("alsuv", 3, "isp", converged=False))


# Certificate


def certificate(recognised: float = 0.02, originals: float = 1.0, *, encoder: bool = True) -> CertificateResult:
    """A front end from which a recogniser links this share of pictures that were computed back."""
    rank = 765 if recognised > 0.5 else 9

    def of_1000(value: float) -> Share:
        ends = Interval(max(value - 0.01, 0), min(value + 0.01, 1), 0.95)
        return Share.counted(round(1000 * value), 1000, ends, 100)

    quality = Mean(20.0, 19.0, 21.0, 0.95, 100, 50)
    identity = certificates.Identity(
        calibrate_people=50,
        resolution="resolved",
        encoder="sface",
        far=1e-3,
        cosine=0.4,
        impostors=10_000,
        originals=of_1000(originals),
        guesses=of_1000(0.0),
        reconstructions=of_1000(recognised),
    )
    return CertificateResult(
        front_end="dctdp",
        variant="published",
        kind="linear",
        size=16,
        inputs=768,
        noise=None,
        maps=[
            certificates.MapResult(
                name="all pictures", outputs=rank, rank=rank, condition=1.0, noise_psnr=None, psnr=quality
            )
        ],
        pictures=certificates.PicturesResult(
            name="people",
            sha256="ab" * 32,
            pictures=100,
            people=50,
            psnr=quality,
            guess_psnr=quality,
            identity=identity if encoder else None,
        ),
        findings=[],
        run=RUN,
    )


# Protection


def attacker(name: str, hits: int, chosen: float = 0.1) -> AttackerResult:
    """Links so many of 100 released faces of each of 20 people."""
    low, high = wilson_ends(hits / 100, 20, statistics.NormalDist().inv_cdf(0.975))
    ends = Interval(low if hits else 0.0, high if hits else zero_bound(20), 0.95)
    found = Share.counted(20 * hits, 2000, ends, 20)
    risks = [
        RiskResult(pictures=pictures, identities=size, released=5 * size, k=k, share=found, chance=0.01)
        for pictures in cast(tuple[Literal["same", "other"], ...], ("same", "other"))
        for size in (10, 20)
        for k in (1, 2)
    ]
    return AttackerResult(
        name=name, kind="recogniser", far=1e-3, cosine=0.4, achieved_far=1e-3, same=found, other=found,
        calibrate_other=chosen, retrieval=risks,
    )  # fmt: skip


def accuracy(value: float, name: str = "lfw", seeds: int = 1) -> PairsResult:
    """Verification of photo pairs, the same spread over ten folds for each seed."""
    folds = [value + 0.01 * (at % 2) - 0.005 for at in range(10)]
    return PairsResult(name=name, pairs=6000, seeds=list(range(seeds)), by_seed=[folds] * seeds)


def protection(*, hits: int = 30, value: float = 0.8, invalid: bool = False) -> ProtectionResult:
    """FaceMAE at a ratio of 0.75, beside the originals, another ratio, and people who do not exist."""
    worst = attacker("fine-tuned", hits, 0.5)
    made = protections.MethodResult
    methods = [
        made(
            name="FaceMAE", ratio=0.75, audited=True, pictures=200, people=40, utility=[accuracy(value)],
            attackers=[attacker("weak", 0), worst],
        ),
        made(
            name="originals", ratio=None, pictures=200, people=40, utility=[accuracy(0.9)],
            attackers=[attacker("a", 90)],
        ),
        made(
            name="FaceMAE", ratio=0.9, pictures=200, people=40, utility=[accuracy(0.7)], attackers=[attacker("a", 5)]
        ),
        made(name="people who do not exist", ratio=None, pictures=9, people=3, utility=[accuracy(0.6)], attackers=[]),
    ]  # fmt: skip
    return ProtectionResult(
        release=protections.ReleaseFacts(
            name="set", sha256="ab", people=40, pictures=200, preset="tiny", loss="irm", recogniser="sface",
            model_sha256="cd",
        ),
        calibrate_people=20,
        measured_people=20,
        methods=methods,
        second=protections.SecondRelease(
            attacker="fine-tuned", same_seed_shown=0.25, other_seed_shown=0.44, one=worst.same, both=worst.same
        ),
        findings=[Finding(severity="invalid", about="test", text="broken")] if invalid else [],
        not_measured=["other backbones"],
        run=Run(unface="1", started="2026-01-01T00:00:00+00:00", seconds=1.0),
    )  # fmt: skip


# Attribution

PAIRS, TRIPLETS, ATTRIBUTED = 90, 80, 30
_SIGMAS, _REVEALED = (0, 1, 2, 4, 6, 8), (0, 0.25, 0.5, 0.75, 1)


def attribution(*names: str) -> AttributionResult:
    """A face that counts and an eraser that takes it away, for each encoder of these names."""
    return AttributionResult(
        source=attributions.Pictures(name="faces.zip", sha256="d" * 64, pictures=120, identities=40, notes=[]),
        encoders=[encoder(name) for name in names or ("made",)],
        run=RUN,
        left_out=Listing(
            ("encoder", "picture", "step", "reason"), [("made", "ann/7.jpg", "picture", "no face")], "left out"
        ),
    )


def encoder(name: str = "made", *, swapped: bool = True) -> EncoderAttribution:
    """What one encoder looks at; without swaps there is neither a preference nor a threshold."""
    spread = attributions.Spread(mean=0.01, std=0.005, largest=0.02, of=100)
    return EncoderAttribution(
        encoder=name,
        weights_sha256="b" * 64,
        licence="MIT",
        detector="yunet",
        swap="landmarks",
        canvas=224,
        axes="semi",
        seed=0,
        replicates=2000,
        quality=attributions.AttributionQuality(
            pictures=120,
            usable=100,
            identities=34,
            padding=spread,
            fcr=attributions.Spread(mean=0.26, std=0.03, largest=0.4, of=100),
            fcr_difference=spread,
            area_difference=spread,
            pairs=PAIRS,
            swaps_tried=86,
            swaps=TRIPLETS,
            left_out=[
                attributions.LeftOutCount(step="picture", reason="no face", count=12),
                attributions.LeftOutCount(step="picture", reason="face at the border", count=8),
                attributions.LeftOutCount(step="swap", reason="the donor looks away", count=6),
            ],
        ),
        spaces=[_attributed("raw", 0.4, 0.1, 8, swapped), _attributed("isp", 0.1, 0.05, 60, swapped)],
    )


def _attributed(name: str, face: float, ring: float, first: int, swapped: bool) -> AttributedSpace:
    counts = [min(first + 4 * n, TRIPLETS) for n in range(6)]
    cpi = attributions.ContextPreference(
        at=[attributions.BlurLevel(sigma=s, preferred=of_triplets(n)) for s, n in zip(_SIGMAS, counts, strict=True)],
        change=averaged(0.25, TRIPLETS),
        crossover=attributions.Crossover(value=None, low=None, high=None, crossing=0.0),
        donor_nearer=of_triplets(76),
    )
    b_star = attributions.BackgroundThreshold(
        median=averaged(0.75, TRIPLETS),
        crossing=averaged(0.62, TRIPLETS),
        at_zero=of_triplets(0),
        at_one=of_triplets(20),
        at=[
            attributions.RevealLevel(
                share=b,
                preferred=of_triplets(20 * n),
                to_context=averaged(b, TRIPLETS),
                to_identity=averaged(0.6, TRIPLETS),
            )
            for n, b in enumerate(_REVEALED)
        ],
        rising=of_triplets(72),
        flat=of_triplets(64),
    )
    return AttributedSpace(
        name=name,
        projection_sha256=None if name == "raw" else "c" * 64,
        rank=None if name == "raw" else 16,
        fii=attributions.FaceImportance(
            index=averaged(face - ring, PAIRS),
            face_drop=averaged(face, PAIRS),
            background_drop=averaged(ring, PAIRS),
            similarity=averaged(0.7, PAIRS),
        ),
        cpi=cpi if swapped else None,
        b_star=b_star if swapped else None,
    )


def averaged(value: float, of: int) -> Mean:
    return Mean(value=value, low=value - 0.02, high=value + 0.02, level=0.95, of=of, identities=ATTRIBUTED)


def of_triplets(count: int) -> Share:
    value = count / TRIPLETS
    low, high = max(value - 0.05, 0.0), min(value + 0.05, 1.0)
    return Share(
        value=value, numerator=count, denominator=TRIPLETS, low=low, high=high, level=0.95, identities=ATTRIBUTED
    )


def with_evil_words(result: AnyResult, evil: str) -> AnyResult:
    """The result with ``evil`` behind every text of it that is no word of the format, the same text always the same."""
    kept = _NAMES_OF_THE_FORMAT | ({"raw"} if isinstance(result, InversionResult) else set())
    dumped = _evil(result.model_dump(by_alias=True, mode="json"), evil, kept)
    return type(result).model_validate(dumped)


_WORDS_OF_THE_FORMAT = {
    "schema", "severity", "resolution", "variant", "over", "kind", "sha256", "judge", "pictures", "applies_to", "axes",
    "step", "started", "gives", "unface",
}  # fmt: skip


_NAMES_OF_THE_FORMAT = {"random face", "best of pool", "originals"}


def _evil(value: object, evil: str, kept: set[str], key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _evil(part, evil, kept, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_evil(part, evil, kept, key) for part in value]
    return value + evil if isinstance(value, str) and key not in _WORDS_OF_THE_FORMAT and value not in kept else value
