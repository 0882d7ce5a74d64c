"""Whether an audit is going to measure what a policy asks of it: said before anything is measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unface.errors import UnfaceError
from unface.gate.judge import PROTECT, maker
from unface.gate.policy import ImprovementRule, LeakageRule, Policy, RiskRule, Rule, UtilityRule, read_policy
from unface.gate.rules import listed
from unface.result.words import rate


@dataclass(frozen=True)
class Asked:
    """What an audit is asked to measure."""

    far: Sequence[float]
    k: Sequence[int | str]
    """Empty where the set decides; then ``needed_k`` has to be looked up in it."""
    erasers: int
    """How many there will be, ready projections among them."""
    utility: bool
    context: bool
    """Whether there is a column to adjust TAR for."""


def require_asked(policy: Policy, path: Path, asked: Asked) -> None:
    """Refuse the first rule that the audit could only leave inconclusive."""
    for number, rule in enumerate(policy.require, 1):
        why = _not_measured(rule, asked)
        if why is not None:
            raise UnfaceError(f"--policy {path}: rule {number} {why}")


def policy_for(path: Path | None, command: str) -> Policy | None:
    """The policy, if one is given; a rule about what another command writes is refused."""
    if path is None:
        return None
    policy = read_policy(path)
    for number, rule in enumerate(policy.require, 1):
        both = isinstance(rule, RiskRule) and command == PROTECT  # risk_max is also about what 'unface release' writes
        if maker(rule) != command and not both:
            raise UnfaceError(f"--policy {path}: rule {number} is about what '{maker(rule)}' writes; {_LEAVE}")
    return policy


_LEAVE = "leave it to 'unface gate'"


def needed_far(policy: Policy) -> list[float]:
    """False-accept rates that the rules about TAR name."""
    return [rule.far for rule in policy.require if isinstance(rule, LeakageRule | ImprovementRule)]


def needed_k(policy: Policy) -> list[int]:
    """Every k that a rule names."""
    rules = [rule for rule in policy.require if isinstance(rule, LeakageRule | ImprovementRule)]
    return sorted({rule.k for rule in rules if rule.k is not None})


def _not_measured(rule: Rule, asked: Asked) -> str | None:
    """What is wrong with one rule, and what to do."""
    if not isinstance(rule, LeakageRule | ImprovementRule | UtilityRule):
        return f"is about what '{maker(rule)}' writes; {_LEAVE}"
    if rule.space is None and asked.erasers > 1:
        return f"names no space and there will be {asked.erasers} erasers; add space = and the released one's name"
    if not isinstance(rule, UtilityRule):
        return _no_point(rule, asked)
    return None if asked.utility else f"asks for {rule.utility}, which needs a set to measure it on; add --utility"


def _no_point(rule: LeakageRule | ImprovementRule, asked: Asked) -> str | None:
    """What is missing to measure TAR as a rule wants it."""
    if not any(math.isclose(rule.far, far, rel_tol=1e-9) for far in asked.far):
        rates = ",".join(rate(far) for far in sorted({*asked.far, rule.far}, reverse=True))
        there = listed(rate(far) for far in asked.far)
        return f"asks for FAR {rate(rule.far)}, and this audit measures {there}; add --far {rates}"
    if rule.k is not None and asked.k and rule.k not in asked.k and "all" not in asked.k:
        ks = ",".join(map(str, [*asked.k, rule.k]))
        return f"asks for k = {rule.k}, and this audit measures k = {listed(asked.k)}; add --k {ks}"
    if isinstance(rule, LeakageRule) and rule.context_adjusted and not asked.context:
        return "asks for the context-adjusted TAR, which needs a column; add --group or --context"
    return None
