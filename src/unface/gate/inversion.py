"""One rule against an inversion: what an attack makes of stored vectors must be within the limit."""

from unface.gate.policy import InversionRule
from unface.gate.rules import Measurement, Outcome, Verdict, amount, inconclusive, listed
from unface.result.inversion import InversionCell, InversionResult, InversionSuccess
from unface.result.words import rate


def inversion_words(rule: InversionRule) -> tuple[str, str]:
    """What is required, and its limit."""
    who = "worst attack" if rule.attack == "worst" else rule.attack
    pictures = "other pictures" if rule.pictures == "other" else "the attacked picture"
    what = f"inversion of {rule.space} vectors against {pictures} at FAR {rate(rule.far)}, {who}"
    return what, f"at most {amount(rule.inverted_max, 'share')}"


def evaluate_inversion(rule: InversionRule, result: InversionResult) -> Outcome:
    """The upper end of the interval decides. Where no attack converged, failing to invert proves nothing."""
    cells = [cell for cell in result.cells if cell.space == rule.space and rule.attack in ("worst", cell.attack)]
    if not cells:
        there = listed(f"{cell.attack} on {cell.space}" for cell in result.cells)
        return inconclusive(f"{rule.attack} attack on {rule.space} was not run; the inversion has {there}")
    coarse = any(
        one.resolution == "coarse" for judge in result.judges for one in judge.thresholds if one.far == rule.far
    )
    if coarse and rule.coarse != "allow":
        return inconclusive(f"FAR {rate(rule.far)} is coarse for a judge; give more people, or set coarse = 'allow'")
    outcomes = [_outcome(rule, cell, point) for cell in cells if (point := cell.point(rule.far)) is not None]
    if not outcomes:
        return inconclusive(f"FAR {rate(rule.far)} was not measured; there is {listed(map(rate, result.far))}")
    gravest = max(outcomes, key=lambda outcome: (outcome.verdict.gravity, outcome.strain))
    if gravest.verdict is Verdict.PASSED and all(cell.converged is False for cell in cells):
        return inconclusive("no attack converged, so that failing to invert says nothing; give them more steps")
    return gravest


def _outcome(rule: InversionRule, cell: InversionCell, point: InversionSuccess) -> Outcome:
    share = point.other if rule.pictures == "other" else point.same
    if share is None:
        return inconclusive("there are no other pictures of the people; give people with several, or pictures = 'same'")
    high = max(share.value, share.high)
    limit = amount(rule.inverted_max, "share")
    measured = Measurement(
        share.value, share.low, high, share.level, rule.inverted_max, "share", far=rule.far, attack=cell.attack
    )
    if high <= rule.inverted_max:
        return Outcome(Verdict.PASSED, f"{cell.attack}: the upper end is within {limit}", measured, high)
    why = "even the value is above" if share.value > rule.inverted_max else "the upper end is above"
    return Outcome(Verdict.FAILED, f"{cell.attack}: {why} {limit}", measured, high)
