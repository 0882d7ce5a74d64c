"""What is kept of a measure of usefulness against a minimum: the lower end of the interval must reach it."""

from unface.auditing.schema import Kept, SpaceResult
from unface.gate.outcome import Found, Outcome, Verdict, cannot_tell
from unface.gate.policy import UtilityRule
from unface.gate.words import amount, listed, told_apart


def utility(rule: UtilityRule, space: SpaceResult) -> list[Outcome]:
    """One outcome for each set the measure was taken on."""
    kept = [one for one in space.utility if one.measure == rule.utility and rule.on in (None, one.on)]
    if kept:
        return [_held(rule, one) for one in kept]
    where = f" on {rule.on}" if rule.on is not None else ""
    there = listed(f"{one.measure} on {one.on}" for one in space.utility)
    return [cannot_tell(f"{rule.utility}{where} was not measured in {space.name}; the audit has {there}")]


def _held(rule: UtilityRule, kept: Kept) -> Outcome:
    found = Found(
        value=kept.retained.value,
        low=min(kept.retained.value, kept.retained.low),
        high=kept.retained.high,
        level=kept.retained.level,
        limit=rule.retained_min,
        unit="share",
    )
    verdict = Verdict.PASSED if found.low >= found.limit else Verdict.FAILED
    return Outcome(verdict, f"on {kept.on}: {_why(found)}", found, strain=-found.low)


def _why(found: Found) -> str:
    if found.low >= found.limit:
        return f"the lower end, {amount(found.low, found.unit)}, reaches the limit"
    if found.value >= found.limit:
        low, limit = told_apart(found.low, found.limit, found.unit)
        return f"the value reaches the limit, but its interval straddles it, down to {low} where {limit} is asked for"
    value, limit = told_apart(found.value, found.limit, found.unit)
    return f"{value} is less than {limit}"
