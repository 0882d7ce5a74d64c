"""Judges results by rules that a test spells out as a policy file would."""

from tests.kit.results import audited, erased, raw
from unface.gate import GateResult, Policy, RuleResult, decide, make_policy
from unface.result.readings import Readable

Rule = dict[str, object]
PASSES: Rule = {"far": 1e-4, "tar_max": 0.5}
FAILS: Rule = {"far": 1e-4, "tar_max": 0.01}
UNKNOWN: Rule = {"far": 1e-6, "tar_max": 0.5}
"""Of ``audited(raw())``: 30 % are linked at FAR 1e-4, and no other rate was measured."""


def policy(*rules: Rule, findings: str = "allow") -> Policy:
    content = {"gate": {"findings": findings}, "require": list(rules)}
    return make_policy(content, lambda table, key: f"{table}: {key}")


def gated(result: Readable, *rules: Rule, findings: str = "allow") -> GateResult:
    return decide(result, policy(*rules, findings=findings))


def ruled(result: Readable, **rule: object) -> RuleResult:
    """The outcome of a single rule."""
    (found,) = gated(result, rule).rules
    return found


def mixed() -> GateResult:
    """One rule that passes, one that fails and one that cannot be evaluated."""
    return gated(audited(raw()), PASSES, FAILS, UNKNOWN)


__all__ = ["FAILS", "PASSES", "UNKNOWN", "Rule", "audited", "erased", "gated", "mixed", "policy", "raw", "ruled"]
