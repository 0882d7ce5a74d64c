"""Worst-case TAR against that of another space: the paired difference must lie below 0 with its whole interval."""

import math

from unface.auditing import AuditResult
from unface.auditing.schema import Change, SpaceResult
from unface.auditing.words import rate
from unface.gate.leakage import not_resolved, points_at
from unface.gate.outcome import Found, Outcome, Verdict, cannot_tell
from unface.gate.policy import ImprovementRule
from unface.gate.words import amount, listed


def improvement(rule: ImprovementRule, space: SpaceResult, result: AuditResult) -> list[Outcome]:
    """One outcome for each k of the rule."""
    ks = [rule.k] if rule.k is not None else result.protocol.ks
    return [_at(rule, space, k) for k in ks]


def _at(rule: ImprovementRule, space: SpaceResult, k: int) -> Outcome:
    at = points_at(space, k, rule.far)
    if isinstance(at, Outcome):
        return at
    changes = [
        change
        for change in space.changes
        if change.against == rule.beats and change.k == k and math.isclose(change.far, rule.far, rel_tol=1e-9)
    ]
    if not changes:
        there = listed(dict.fromkeys(f"{change.against} at FAR {rate(change.far)}" for change in space.changes))
        where = f"{space.name} with {rule.beats} at FAR {rate(rule.far)}, k = {k}"
        return cannot_tell(f"nothing compares {where}; the audit compares it with {there}")
    return not_resolved(at[0], coarse=rule.coarse) or _held(changes[0])


def _held(change: Change) -> Outcome:
    found = Found(
        value=change.value,
        low=change.low,
        high=max(change.value, change.high),
        level=change.level,
        limit=0.0,
        unit="difference",
        probe=change.probe,
        k=change.k,
        far=change.far,
    )
    verdict = Verdict.PASSED if found.high < 0 else Verdict.FAILED
    return Outcome(verdict, f"{change.probe} at k = {change.k}: {_why(found, change.against)}", found, found.high)


def _why(found: Found, other: str) -> str:
    if found.high < 0:
        return f"the upper end, {amount(found.high, found.unit)} against {other}, is below 0"
    if found.value < 0:
        return f"TAR is lower than in {other}, but the interval straddles 0, up to {amount(found.high, found.unit)}"
    return f"TAR is not lower than in {other}"
