"""One rule against a protected face set: what it is good for must reach a limit, and what it shows stay within one."""

from unface.gate.policy import RiskRule, UtilityMinRule
from unface.gate.release import bounded_by, release_words
from unface.gate.rules import Measurement, Outcome, Verdict, amount, inconclusive, listed
from unface.result.protection import ProtectionResult


def protection_words(rule: UtilityMinRule | RiskRule) -> tuple[str, str]:
    """What is required, and its limit."""
    if isinstance(rule, RiskRule):
        what, limit = release_words(rule)
        return f"{what}, worst attacker", limit
    where = "" if rule.pairs is None else f" on {rule.pairs}"
    return (
        f"pair verification of a recogniser trained on the release{where}",
        f"at least {amount(rule.utility_min, 'share')}",
    )


def evaluate_protection(rule: UtilityMinRule | RiskRule, result: ProtectionResult) -> Outcome:
    """The worse end of the interval decides."""
    if not result.valid:
        return inconclusive("the numbers cannot be used; the findings say why")
    if isinstance(rule, RiskRule):
        return _risk(rule, result)
    there = result.audited.utility
    found = next((one for one in there if rule.pairs in (None, one.name)), None)
    if found is None:
        names = listed(one.name for one in there) if there else "none"
        return inconclusive(
            f"verification{'' if rule.pairs is None else f' on {rule.pairs}'} was not measured; there is {names}"
        )
    value, limit = found.accuracy, rule.utility_min
    measured = Measurement(value.value, value.low, value.high, value.level, limit, "share")
    said = amount(limit, "share")
    if value.low >= limit:
        return Outcome(Verdict.PASSED, f"the lower end is at least {said}", measured, -value.low)
    why = "even the value is below" if value.value < limit else "the lower end is below"
    return Outcome(Verdict.FAILED, f"{why} {said}", measured, -value.low)


def _risk(rule: RiskRule, result: ProtectionResult) -> Outcome:
    worst = result.audited.worst
    if worst is None:
        return inconclusive("no attacker was tried; audit with --encoder")
    found = worst.risk(rule.k, rule.pictures)
    if found is None:
        there = listed(sorted({f"K = {one.k} ({one.pictures})" for one in worst.retrieval}))
        return inconclusive(f"this retrieval risk was not measured; the audit has {there}")
    return bounded_by(found.share, rule.risk_max, k=rule.k)
