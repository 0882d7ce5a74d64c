"""Audits made by hand for the gate: a few numbers that are easy to hold against a limit."""

from collections.abc import Sequence

from tests.auditing.made import controls, point
from unface.gate import GateResult, RuleResult, judge, make_policy
from unface.result import numbers
from unface.result.audit import (
    AuditResult,
    Change,
    Curated,
    Erasure,
    MeasuredProtocol,
    Point,
    RoleCounts,
    SpaceResult,
)
from unface.result.file import Finding, Given, Run

INVALID = Finding(severity="invalid", about="shuffled identities", text="shuffled people are still linked")
WARNING = Finding(severity="warning", about="near-duplicates", text="3 pairs under different identities")
NOTE = Finding(severity="note", about="k", text="k = 16 was left out")


def audited(*spaces: SpaceResult, findings: Sequence[Finding] = (), variant: str = "unface") -> AuditResult:
    points = [one for space in spaces for one in space.points]
    return AuditResult(
        valid=INVALID not in findings,
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
                "far": list(dict.fromkeys(one.far for one in points)),
                "k": list(dict.fromkeys(one.k for one in points)),
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
        controls=controls(),
        run=Run(unface="0", started="2025-01-01T00:00:00+00:00", seconds=1.0),
    )


def raw(*points: Point) -> SpaceResult:
    return SpaceResult(name="raw", points=list(points) or [point(0.3, 0.28, 0.32)], curves=[])


def erased(
    name: str = "isp",
    *points: Point,
    control: bool = False,
    changes: Sequence[Change] = (),
    utility: Sequence[numbers.Kept] = (),
) -> SpaceResult:
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
    shown = list(points) or [point(0.008, 0.006, 0.009)]
    return SpaceResult(
        name=name, erasure=erasure, points=shown, curves=[], changes=list(changes), utility=list(utility)
    )


def change(value: float, low: float, high: float, *, against: str = "random", k: int = 4, far: float = 1e-4) -> Change:
    return Change(
        against=against, k=k, far=far, probe="lda", against_probe="ridge", value=value, low=low, high=high, level=0.95
    )


def kept(value: float, low: float, high: float, *, measure: str = "knn", on: str = "objects.parquet") -> numbers.Kept:
    whole, share = numbers.Estimate(0.8, 0.78, 0.82, 0.95), numbers.Estimate(value, low, high, 0.95)
    return numbers.Kept(measure, on, 1000, raw=whole, erased=whole, retained=share)


def gated(result: AuditResult, *rules: dict[str, object], findings: str = "allow") -> GateResult:
    content = {"gate": {"findings": findings}, "require": list(rules)}
    return judge(result, make_policy(content, lambda table, key: f"{table}: {key}"))


def one(result: AuditResult, **rule: object) -> RuleResult:
    """The verdict on a single rule."""
    (evaluated,) = gated(result, rule).rules
    return evaluated
