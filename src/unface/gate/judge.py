"""An audit held against a policy, rule by rule. Not measured is never a pass."""

from unface.auditing import AuditResult
from unface.auditing.words import rate
from unface.errors import UnfaceError
from unface.gate.improvement import improvement
from unface.gate.leakage import leakage
from unface.gate.outcome import Outcome, Verdict, cannot_tell, decisive
from unface.gate.policy import ImprovementRule, LeakageRule, Policy, Rule, UtilityRule
from unface.gate.result import GateResult, Judged
from unface.gate.utility import utility
from unface.gate.words import amount, listed, one_line


def judge(result: AuditResult, policy: Policy) -> GateResult:
    """A verdict for each rule, and for the audit's warnings where the policy forbids them."""
    rules = [_judged(result, rule, number) for number, rule in enumerate(policy.require, 1)]
    warnings = [finding for finding in result.findings if finding.severity == "warning"]
    if policy.gate.findings == "no-warnings":
        shown = [f"{finding.about}: {finding.text}" for finding in warnings]
        said = Outcome(Verdict.FAILED, shown[0]) if shown else Outcome(Verdict.PASSED, "the audit warns of nothing")
        rules.append(_told("warnings of the audit", "none", None, _unusable(result) or said))
    return GateResult(one_line(result.source.name), result.source.sha256, len(warnings), tuple(rules))


def _judged(result: AuditResult, rule: Rule, number: int) -> Judged:
    name = rule.space if rule.space is not None else _released(result, number)
    outcome = _unusable(result) or decisive(_outcomes(result, rule, name) or [cannot_tell("no k was measured")])
    return _told(*_in_words(rule, name), name, outcome)


def _released(result: AuditResult, number: int) -> str:
    """The space a rule is about if it names none: what the one eraser made, or the raw one."""
    erased = [space.name for space in result.erased]
    if len(erased) > 1:
        text = (
            f"rule {number} names no space and the audit has {len(erased)} erasers ({listed(erased)}); say which one "
        )
        raise UnfaceError(one_line(f"{text}is released, with space = '{erased[0]}' or --space {erased[0]}"))
    return erased[0] if erased else result.raw.name


def _unusable(result: AuditResult) -> Outcome | None:
    if not result.valid:
        said = [f": {finding.text}" for finding in result.findings if finding.severity == "invalid"]
        return cannot_tell(f"the audit is invalid{said[0] if said else ''}")
    if result.protocol.variant == "paper":
        return cannot_tell("the paper variant's intervals are spreads over seeds, which under-cover; audit without it")
    return None


def _outcomes(result: AuditResult, rule: Rule, name: str) -> list[Outcome]:
    space = result.space(name)
    if space is None:
        there = listed(space.name for space in result.spaces)
        return [cannot_tell(f"space '{name}' was not measured; the audit has {there}")]
    match rule:
        case LeakageRule():
            return leakage(rule, space, result)
        case UtilityRule():
            return utility(rule, space)
        case ImprovementRule():
            return improvement(rule, space, result)


def _in_words(rule: Rule, space: str) -> tuple[str, str]:
    """What is asked, and its limit."""
    if isinstance(rule, UtilityRule):
        where = f" on {rule.on}" if rule.on is not None else ""
        return f"{rule.utility} kept in {space}{where}", f"at least {amount(rule.retained_min, 'share')}"
    at = f"at FAR {rate(rule.far)}, " + (f"k = {rule.k}" if rule.k is not None else "every k")
    if isinstance(rule, ImprovementRule):
        return f"TAR in {space} less TAR in {rule.beats} {at}", "below 0"
    limits = [amount(rule.tar_max, "share")] if rule.tar_max is not None else []
    limits += [amount(rule.times_chance_max, "times chance")] if rule.times_chance_max is not None else []
    what = "context-adjusted TAR" if rule.context_adjusted else "TAR"
    who = "worst probe" if rule.probe == "worst" else rule.probe
    return f"{what} in {space} {at}, {who}", f"at most {' and '.join(limits)}"


def _told(rule: str, limit: str, space: str | None, outcome: Outcome) -> Judged:
    return Judged(
        rule=one_line(rule),
        limit=limit,
        verdict=outcome.verdict,
        reason=one_line(outcome.reason),
        space=one_line(space) if space is not None else None,
        found=outcome.found,
    )
