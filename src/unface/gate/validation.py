"""One rule against a validation: what an attack reaches after some questions must be within the limit."""

from unface.gate.policy import ValidationRule
from unface.gate.rules import Measurement, Outcome, Verdict, amount, inconclusive, listed
from unface.result.validation import AttackResult, Success, ValidationResult
from unface.result.words import count, rate


def validation_words(rule: ValidationRule) -> tuple[str, str]:
    """What is required, and its limit."""
    who = "worst attack" if rule.attack == "worst" else rule.attack
    pictures = "other pictures" if rule.pictures == "other" else "the enrolled picture"
    what = f"success against {pictures} after {count(rule.queries, 'question')} at FAR {rate(rule.far)}, {who}"
    return what, f"at most {amount(rule.success_max, 'share')}"


def evaluate_validation(rule: ValidationRule, result: ValidationResult) -> Outcome:
    """The upper end of the interval decides; the worst attack is the one that the result is quoted by."""
    attacks = [attack for attack in result.attacks if rule.attack in ("worst", attack.name)]
    if rule.attack == "worst" and result.worst_case is not None:
        attacks = [result.worst_case]
    if not attacks:
        there = listed(attack.name for attack in result.attacks)
        return inconclusive(f"attack {rule.attack!r} was not run; the validation has {there}")
    coarse = any(
        one.resolution == "coarse" for judge in result.judges for one in judge.thresholds if one.far == rule.far
    )
    if coarse and rule.coarse != "allow":
        return inconclusive(f"FAR {rate(rule.far)} is coarse for a judge; give more people, or set coarse = 'allow'")
    outcomes = [_outcome(rule, attack, point) for attack in attacks if (point := attack.point(rule.queries, rule.far))]
    if not outcomes:
        numbers = sorted({point.queries for attack in attacks for point in attack.at})
        rates = listed(rate(far) for far in result.far)
        there = f"{listed(map(str, numbers))} questions at FAR {rates}"
        return inconclusive(
            f"{count(rule.queries, 'question')} at FAR {rate(rule.far)} were not measured; there is {there}"
        )
    return max(outcomes, key=lambda outcome: (outcome.verdict.gravity, outcome.strain))


def _outcome(rule: ValidationRule, attack: AttackResult, point: Success) -> Outcome:
    share = point.other if rule.pictures == "other" else point.same
    if share is None:
        return inconclusive("there are no other pictures of the enrolled people; enrol people with several")
    high, who = max(share.value, share.high), " or ".join(point.attacks) or attack.name
    measured = Measurement(
        share.value,
        share.low,
        high,
        share.level,
        rule.success_max,
        "share",
        far=rule.far,
        attack=who,
        queries=rule.queries,
    )
    limit = amount(rule.success_max, "share")
    if high <= rule.success_max:
        return Outcome(Verdict.PASSED, f"{who}: the upper end is within {limit}", measured, high)
    why = "even the value is above" if share.value > rule.success_max else "the upper end is above"
    return Outcome(Verdict.FAILED, f"{who}: {why} {limit}", measured, high)
