"""Audits made by hand for the gate: a few numbers that are easy to hold against a limit."""

from typing import Any

from tests.auditing import made
from tests.auditing.made import change, kept, point
from tests.auditing.made import result_of as audited
from unface.gate import GateResult, RuleResult, decide, make_policy
from unface.result.audit import AuditResult, Point, SpaceResult
from unface.result.file import Finding

__all__ = ["INVALID", "NOTE", "WARNING", "audited", "change", "erased", "gated", "kept", "one", "raw"]

INVALID = Finding(severity="invalid", about="shuffled identities", text="shuffled people are still linked")
WARNING = Finding(severity="warning", about="near-duplicates", text="3 pairs under different identities")
NOTE = Finding(severity="note", about="k", text="k = 16 was left out")


def raw(*points: Point) -> SpaceResult:
    """Linked in 30 % of pairs, unless points are given."""
    return made.raw(*(points or [point(0.3, 0.28, 0.32)]))


def erased(name: str = "isp", *points: Point, **more: Any) -> SpaceResult:
    """Linked in 0.8 % of pairs, unless points are given."""
    return made.erased(name, *(points or [point(0.008, 0.006, 0.009)]), **more)


def gated(result: AuditResult, *rules: dict[str, object], findings: str = "allow") -> GateResult:
    content = {"gate": {"findings": findings}, "require": list(rules)}
    return decide(result, make_policy(content, lambda table, key: f"{table}: {key}"))


def one(result: AuditResult, **rule: object) -> RuleResult:
    """The verdict on a single rule."""
    (evaluated,) = gated(result, rule).rules
    return evaluated
