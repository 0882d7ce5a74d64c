"""One rule against one space of an audit: the worse end of a measured interval must be within the limit."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from unface.gate.policy import (
    CertificateRule,
    CopiesRule,
    ExposedRule,
    ImprovementRule,
    InversionRule,
    LeakageRule,
    RiskRule,
    Rule,
    UtilityMinRule,
    UtilityRule,
    ValidationRule,
)
from unface.result.audit import AuditResult, Point, SpaceResult
from unface.result.numbers import Kept, fewest_trials, zero_bound
from unface.result.words import count, factor, in_percent, rate

_USUAL_LEVEL = 0.95
_PEOPLE = ("person", "people")

Unit = Literal["share", "times chance", "difference"]


class Verdict(StrEnum):
    """How a rule ended. What was not measured, or not well enough, is inconclusive and never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"

    @property
    def gravity(self) -> int:
        """Failed outweighs inconclusive, which outweighs passed."""
        return (Verdict.PASSED, Verdict.INCONCLUSIVE, Verdict.FAILED).index(self)


@dataclass(frozen=True)
class Measurement:
    """A measured number and its limit; what a measure does not have (k, probe, attack …) is None."""

    value: float
    low: float
    high: float
    level: float
    limit: float
    unit: Unit
    probe: str | None = None
    k: int | None = None
    far: float | None = None
    attack: str | None = None
    queries: int | None = None

    def __str__(self) -> str:
        """0.31 % [0.22, 0.43]."""
        low, high = (amount(end, self.unit).split(" ")[0] for end in (self.low, self.high))
        return f"{amount(self.value, self.unit)} [{low}, {high}]"


@dataclass(frozen=True)
class Outcome:
    """One number against one limit; ``strain`` grows towards failing."""

    verdict: Verdict
    reason: str
    measured: Measurement | None = None
    strain: float = 0.0


def inconclusive(reason: str) -> Outcome:
    """Not measured, or not well enough."""
    return Outcome(Verdict.INCONCLUSIVE, reason)


def evaluate(rule: Rule, space: SpaceResult, result: AuditResult) -> Outcome:
    """The gravest outcome over every k and limit; of equally grave ones the closest to failing, or farthest beyond."""
    match rule:
        case LeakageRule():
            limits: list[tuple[float | None, Unit]] = [(rule.tar_max, "share"), (rule.times_chance_max, "times chance")]
            outcomes = [
                _leakage(rule, space, k, limit, unit)
                for k in _ks(rule, result)
                for limit, unit in limits
                if limit is not None
            ]
        case ImprovementRule():
            outcomes = [_improvement(rule, space, result.space(rule.beats), k) for k in _ks(rule, result)]
        case ValidationRule():
            outcomes = [inconclusive("this file is an audit; success_max is about what 'unface validate' wrote")]
        case ExposedRule() | CopiesRule() | RiskRule():
            outcomes = [inconclusive("this file is an audit; the rule is about what 'unface release' wrote")]
        case UtilityMinRule():
            outcomes = [inconclusive("this file is an audit; utility_min is about what 'unface protect' wrote")]
        case InversionRule():
            outcomes = [inconclusive("this file is an audit; inverted_max is about what 'unface invert' wrote")]
        case CertificateRule():
            outcomes = [inconclusive("this file is an audit; recognised_max is about what 'unface protect' wrote")]
        case UtilityRule():
            useful = [one for one in space.utility if one.is_usefulness]
            kept = [one for one in useful if one.measure == rule.utility and rule.on in (None, one.on)]
            outcomes = [_utility(rule, one) for one in kept]
            if "neighbour" in rule.utility:
                text = f"{rule.utility} is measured among the audited pictures, which is no usefulness"
                outcomes = [inconclusive(f"{text}; audit with --utility and name a measure such as knn")]
            elif not kept:
                where = f" on {rule.on}" if rule.on is not None else ""
                there = listed(f"{one.measure} on {one.on}" for one in useful)
                text = f"{rule.utility}{where} was not measured in {space.name}; the audit has {there}"
                outcomes = [inconclusive(text)]
    return max(
        outcomes or [inconclusive("no k was measured")],
        key=lambda outcome: (outcome.verdict.gravity, outcome.strain),
    )


def _ks(rule: LeakageRule | ImprovementRule, result: AuditResult) -> list[int]:
    return [rule.k] if rule.k is not None else result.protocol.k


def _leakage(rule: LeakageRule, space: SpaceResult, k: int, limit: float, unit: Unit) -> Outcome:
    """TAR, or its multiple of chance: the upper end must be at most the limit."""
    points = _points_at(space, k, rule.far)
    if isinstance(points, Outcome):
        return points
    chosen = [point for point in points if (point.worst if rule.probe == "worst" else point.probe == rule.probe)]
    if not chosen:
        probes = listed(point.probe for point in points)
        return inconclusive(f"probe {rule.probe!r} was not measured at k = {k}; the audit has {probes}")
    point = chosen[0]
    unusable = None
    if rule.context_adjusted:
        unusable = _no_overlap(point)
    if unusable is None and rule.different_groups:
        unusable = _no_groups(point, rule)
    if unusable is not None:
        return unusable
    adjusted = point.context_adjusted
    apart = adjusted.apart if adjusted is not None and rule.different_groups else None
    tar = apart or (adjusted if rule.context_adjusted else point.tar)
    scale = point.chance if unit == "times chance" else 1.0
    who = f"{point.probe} at k = {k}"
    if not scale:
        return inconclusive(f"{who} has no chance in the audit")
    assert point.tar is not None
    assert tar is not None
    assert tar.value is not None
    measured = Measurement(
        tar.value / scale, tar.low / scale, tar.high / scale, tar.level, limit, unit, point.probe, k, point.far
    )
    outcome = at_most(measured, f"{who}: ", (apart or point.tar).identities, chance=scale)
    return unless_beyond(_not_resolved(point, rule.coarse), outcome)


def unless_beyond(coarse: Outcome | None, outcome: Outcome) -> Outcome:
    """What a coarse number says: too few false accepts keep it from passing, not from failing beyond any doubt."""
    measured = outcome.measured
    if coarse is None:
        return outcome
    if measured is None or min(measured.value, measured.low) <= measured.limit:
        return coarse
    return replace(outcome, reason=f"{outcome.reason}; the whole interval lies beyond it, however coarse the rate")


def at_usual_level(outcome: Outcome) -> Outcome:
    """The same, or inconclusive where the interval holds less often than in 95 of 100 audits."""
    measured = outcome.measured
    if measured is None or measured.level > _USUAL_LEVEL - 1e-9:
        return outcome
    text = f"its interval holds at {100 * measured.level:g} %, a gate needs {100 * _USUAL_LEVEL:g} %; measure it again"
    return replace(outcome, verdict=Verdict.INCONCLUSIVE, reason=text)


def at_most(
    measured: Measurement, who: str, trials: int, noun: tuple[str, str] = _PEOPLE, chance: float = 1.0
) -> Outcome:
    """The upper end must be within the limit; inconclusive where it is not, and would not be with none affected.

    ``trials`` are the people, or what ``noun`` names, that the interval counts; with none of them affected it reaches
    to ``zero_bound``. Where many pairs of each person make an interval narrower than that, it decides by itself.
    A value beyond the limit fails whatever the number of people.
    """
    # A percentile interval may leave its own value out: the larger of the two decides.
    value, limit, unit = measured.value, measured.limit, measured.unit
    high = max(value, measured.high)
    measured = replace(measured, high=high)
    least = zero_bound(trials, measured.level) / chance
    if high <= limit:
        verdict, why = Verdict.PASSED, f"the upper end, {amount(high, unit)}, is within the limit"
    elif value > limit:
        verdict, why = Verdict.FAILED, "{} is more than {}".format(*_distinguishable(value, limit, unit))
    elif high >= least > limit:
        end, allowed = _distinguishable(least, limit, unit)
        few, needed = count(trials, *noun), fewest_trials(limit * chance, measured.level)
        verdict = Verdict.INCONCLUSIVE
        why = f"{few} cannot show it: with none affected the upper end would be {end}, above {allowed}"
        why += f"; at least {needed:,} are needed"
    else:
        end, allowed = _distinguishable(high, limit, unit)
        verdict, why = Verdict.FAILED, f"the value is within the limit, but its interval reaches {end}, above {allowed}"
    return Outcome(verdict, f"{who}{why}", measured, strain=high / limit)


def _improvement(rule: ImprovementRule, space: SpaceResult, other: SpaceResult | None, k: int) -> Outcome:
    """Worst-case TAR less that of another space: the whole paired interval must lie below 0, both sides resolved."""
    points = _points_at(space, k, rule.far)
    if isinstance(points, Outcome):
        return points
    change = next(
        (one for one in space.changes if one.against == rule.beats and one.k == k and _same_rate(one.far, rule.far)),
        None,
    )
    if change is None:
        there = listed(dict.fromkeys(f"{one.against} at FAR {rate(one.far)}" for one in space.changes))
        where = f"{space.name} was not compared with {rule.beats} at FAR {rate(rule.far)}, k = {k}"
        return inconclusive(f"{where}; the audit compares it with {there}")
    sides = [side.worst_at(k, change.far) for side in (space, other) if side is not None]
    coarse = next(filter(None, (_not_resolved(side, rule.coarse) for side in sides if side is not None)), None)
    high = max(change.value, change.high)
    measured = Measurement(change.value, change.low, high, change.level, 0.0, "difference", change.probe, k, change.far)
    if high < 0:
        verdict, why = Verdict.PASSED, f"the upper end, {amount(high, 'difference')} against {rule.beats}, is below 0"
    elif change.value < 0:
        reach = f"its interval reaches {amount(high, 'difference')}"
        verdict, why = Verdict.FAILED, f"TAR is lower than in {rule.beats}, but {reach}"
    else:
        verdict, why = Verdict.FAILED, f"TAR is not lower than in {rule.beats}"
    return unless_beyond(coarse, Outcome(verdict, f"{change.probe} at k = {k}: {why}", measured, strain=high))


def _utility(rule: UtilityRule, kept: Kept) -> Outcome:
    """What is kept of a measure of usefulness: the lower end must be at least the limit."""
    share, limit = kept.retained, rule.retained_min
    low = min(share.value, share.low)
    if low >= limit:
        verdict, why = Verdict.PASSED, f"the lower end, {amount(low, 'share')}, is within the limit"
    elif share.value >= limit:
        end, required = _distinguishable(low, limit, "share")
        verdict, why = (
            Verdict.FAILED,
            f"the value is within the limit, but its interval reaches {end}, below {required}",
        )
    else:
        verdict, why = Verdict.FAILED, "{} is less than {}".format(*_distinguishable(share.value, limit, "share"))
    measured = Measurement(share.value, low, share.high, share.level, limit, "share")
    return Outcome(verdict, f"on {kept.on}: {why}", measured, strain=-low)


def _points_at(space: SpaceResult, k: int, far: float) -> list[Point] | Outcome:
    """The points of a space at one k and rate, or what is missing."""
    at_far = [point for point in space.points if _same_rate(point.far, far)]
    if not at_far:
        fars = listed(dict.fromkeys(rate(point.far) for point in space.points))
        return inconclusive(f"FAR {rate(far)} was not measured in {space.name}; the audit has {fars}")
    points = [point for point in at_far if point.k == k]
    if not points:
        ks = listed(dict.fromkeys(point.k for point in at_far))
        return inconclusive(f"k = {k} was not measured in {space.name} at FAR {rate(far)}; the audit has {ks}")
    refused = next((point for point in points if point.tar is None), None)
    if refused is None:
        return points
    needed = f"; {refused.identities_needed:,} calibrate identities are needed" if refused.identities_needed else ""
    return inconclusive(f"FAR {rate(far)} at k = {k} was refused: the audit is too small to resolve it{needed}")


def _not_resolved(point: Point, coarse: Literal["allow"] | None) -> Outcome | None:
    if point.resolution == "resolved" or (point.resolution == "coarse" and coarse == "allow"):
        return None
    needed = f"; {point.identities_needed:,} calibrate identities would resolve it" if point.identities_needed else ""
    return inconclusive(
        f"FAR {rate(point.far)} at k = {point.k} is {point.resolution}: too few false accepts, or people behind them, "
        f"set its threshold{needed}, or coarse = 'allow' accepts it"
    )


def _no_overlap(point: Point) -> Outcome | None:
    adjusted = point.context_adjusted
    if adjusted is None:
        return inconclusive(
            f"no context-adjusted TAR was measured for {point.probe} at k = {point.k}; audit with --group"
        )
    if adjusted.separable:
        return None
    text = f"'{adjusted.context}' separates mated from impostor pairs almost completely"
    overlap = amount(adjusted.overlap, "share")
    return inconclusive(f"{text} (overlap {overlap}), so it cannot be separated from identity at k = {point.k}")


def _no_groups(point: Point, rule: LeakageRule) -> Outcome | None:
    if rule.context_adjusted:
        return inconclusive("context_adjusted and different_groups ask for two numbers; give each a rule of its own")
    if point.context_adjusted is not None and point.context_adjusted.apart is not None:
        return None
    text = f"no TAR of pairs from different groups was measured for {point.probe} at k = {point.k}"
    return inconclusive(f"{text}; audit with a --group column of shoots")


def _same_rate(far: float, other: float) -> bool:
    return math.isclose(far, other, rel_tol=1e-9)


def amount(value: float, unit: Unit) -> str:
    """0.31 %, 3.1 times chance, −2.1 points."""
    size = abs(value)
    number = factor(size) if unit == "times chance" else in_percent(size)
    if unit == "difference":
        return f"{'−' if value < 0 else '+'}{number} points"
    sign = "−" if value < 0 else ""
    return f"{sign}{number} {'%' if unit == 'share' else 'times chance'}"


def _distinguishable(value: float, limit: float, unit: Unit) -> tuple[str, str]:
    """Both amounts, with more digits where two different numbers would read alike."""
    shown = amount(value, unit), amount(limit, unit)
    if shown[0] != shown[1]:
        return shown
    scale, name = (100, "%") if unit == "share" else (1, "times chance")
    return f"{scale * value:.9g} {name}", f"{scale * limit:.9g} {name}"


def listed(names: Iterable[object]) -> str:
    """raw, isp, random."""
    return ", ".join(str(name) for name in names) or "none"
