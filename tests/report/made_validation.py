"""A whole validation with made-up numbers that agree with each other."""

from unface.result.file import Finding, Run
from unface.result.numbers import Interval, Share
from unface.result.validation import (
    ALL_JUDGES,
    Asked,
    Attacker,
    AttackResult,
    Ceiling,
    Enrolled,
    JudgeFacts,
    JudgeThreshold,
    Success,
    TargetFacts,
    ValidationResult,
)


def share(value: float) -> Share:
    """Of 400 comparisons of 40 people, give or take 5 points."""
    ends = Interval(max(value - 0.05, 0), min(value + 0.05, 1), 0.95)
    return Share.counted(round(400 * value), 400, ends, 40)


def attack(name: str, *values: float) -> AttackResult:
    """After 10 and 100 questions, at FAR 1e-2 and half of it at FAR 1e-3."""
    at = [
        Success(queries=queries, far=far, judge=ALL_JUDGES, same=None, other=share(value * part), chance=far)
        for far, part in ((1e-2, 1.0), (1e-3, 0.5))
        for queries, value in zip((10, 100), values, strict=True)
    ]
    return AttackResult(name=name, adaptive=False, settings=[], at=at)


def validation(worst: float = 0.6, *, findings: tuple[Finding, ...] = (), name: str = "door") -> ValidationResult:
    """Two attacks; ``worst`` is what the better one reaches at FAR 1e-2 after 100 questions."""
    thresholds = [
        JudgeThreshold(far=far, cosine=0.4, impostors=10**6, false_accepts=1000, resolution="resolved")
        for far in (1e-2, 1e-3)
    ]
    return ValidationResult(
        target=TargetFacts(name=name, kind="function", decisions_only=False, local=True, authorised_by=None),
        enrolled=Enrolled(source="nobody", generated=True, people=40, pictures=200, sha256="a" * 64),
        attacker=Attacker(encoder="made-encoder", queries="nobody", generated=True, pictures=500),
        asked=Asked(budget=100, counted=4000, answered=4000, lost=0, people_finished=40, ended=None, sha256="b" * 64),
        judges=[JudgeFacts(name="judge", independent=True, thresholds=thresholds)],
        attacks=[attack("scores", worst / 2, worst), attack("best-of-n", worst / 4, worst / 2)],
        shuffled=[],
        ceiling=[Ceiling(far=far, judge=ALL_JUDGES, other=share(0.9)) for far in (1e-2, 1e-3)],
        findings=list(findings),
        run=Run(unface="0.2.0", started="2026-01-02T03:04:05+00:00", seconds=61.5),
    )
