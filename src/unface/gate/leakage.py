"""TAR, or its multiple of chance, against a maximum: the upper end of the interval must be within it."""

import math
from collections.abc import Sequence

from unface.auditing import AuditResult, Point
from unface.auditing.schema import ContextAdjusted, SpaceResult
from unface.auditing.words import rate
from unface.gate.outcome import Found, Outcome, Unit, Verdict, cannot_tell
from unface.gate.policy import LeakageRule
from unface.gate.words import amount, listed, told_apart

# Of the impostors' context distribution; mated pairs that reach less of it do not tell identity from the shoot.
_LEAST_OVERLAP = 0.5


def leakage(rule: LeakageRule, space: SpaceResult, result: AuditResult) -> list[Outcome]:
    """One outcome for each k and each limit of the rule."""
    ks = [rule.k] if rule.k is not None else result.protocol.ks
    return [outcome for k in ks for outcome in _at(rule, space, k)]


def _at(rule: LeakageRule, space: SpaceResult, k: int) -> list[Outcome]:
    at = points_at(space, k, rule.far)
    if isinstance(at, Outcome):
        return [at]
    chosen = [point for point in at if (point.worst if rule.probe == "worst" else point.probe == rule.probe)]
    if not chosen:
        probes = listed(point.probe for point in at)
        return [cannot_tell(f"probe {rule.probe!r} was not measured at k = {k}; the audit has {probes}")]
    unresolved = not_resolved(chosen[0], coarse=rule.coarse)
    return [unresolved] if unresolved else [_held(rule, chosen[0], *limit) for limit in _limits(rule)]


def points_at(space: SpaceResult, k: int, far: float) -> list[Point] | Outcome:
    """The points of a space at one k and rate, or what is missing of them."""
    at_far = [point for point in space.points if math.isclose(point.far, far, rel_tol=1e-9)]
    if not at_far:
        fars = listed(rate(found) for found in _distinct([point.far for point in space.points]))
        return cannot_tell(f"FAR {rate(far)} was not measured in {space.name}; the audit has {fars}")
    at = [point for point in at_far if point.k == k]
    if not at:
        ks = listed(_distinct([point.k for point in at_far]))
        return cannot_tell(f"k = {k} was not measured in {space.name} at FAR {rate(far)}; the audit has {ks}")
    refused = next((point for point in at if point.tar is None), None)
    if refused is None:
        return at
    needed = f"; {refused.identities_needed:,} calibrate identities are needed" if refused.identities_needed else ""
    return cannot_tell(f"FAR {rate(far)} at k = {k} was refused, the audit is too small to resolve it{needed}")


def not_resolved(point: Point, coarse: str | None) -> Outcome | None:
    """Cannot tell, where a rate is coarse and the rule does not allow that."""
    if point.resolution == "resolved" or (point.resolution == "coarse" and coarse == "allow"):
        return None
    needed = f"; {point.identities_needed:,} calibrate identities would resolve it" if point.identities_needed else ""
    return cannot_tell(
        f"FAR {rate(point.far)} at k = {point.k} is {point.resolution}, too few false accepts set its threshold{needed}"
        ", or coarse = 'allow' takes it as it is"
    )


def _limits(rule: LeakageRule) -> list[tuple[float, Unit]]:
    limits: list[tuple[float | None, Unit]] = [(rule.tar_max, "share"), (rule.times_chance_max, "times chance")]
    return [(limit, unit) for limit, unit in limits if limit is not None]


def _held(rule: LeakageRule, point: Point, limit: float, unit: Unit) -> Outcome:
    tar = _adjusted(point) if rule.context_adjusted else point.tar
    if isinstance(tar, Outcome):
        return tar
    scale = point.chance if unit == "times chance" else 1.0
    if tar is None or tar.value is None or not scale:
        return cannot_tell(f"{point.probe} at k = {point.k} has no {'TAR' if scale else 'chance'} in the audit")
    found = Found(
        value=tar.value / scale,
        low=tar.low / scale,
        high=max(tar.value, tar.high) / scale,
        level=tar.level,
        limit=limit,
        unit=unit,
        probe=point.probe,
        k=point.k,
        far=point.far,
    )
    verdict = Verdict.PASSED if found.high <= limit else Verdict.FAILED
    return Outcome(verdict, _why(found), found, strain=found.high / limit)


def _adjusted(point: Point) -> ContextAdjusted | Outcome:
    adjusted = point.context_adjusted
    if adjusted is None:
        return cannot_tell(
            f"no context-adjusted TAR was measured for {point.probe} at k = {point.k}; audit with --group"
        )
    if adjusted.value is None or adjusted.overlap < _LEAST_OVERLAP:
        share = amount(adjusted.overlap, "share")
        text = f"'{adjusted.context}' separates mated from impostor pairs almost wholly (overlap {share})"
        return cannot_tell(f"{text}, so identity cannot be told from it at k = {point.k}")
    return adjusted


def _why(found: Found) -> str:
    who = f"{found.probe} at k = {found.k}"
    if found.high <= found.limit:
        return f"{who}: the upper end, {amount(found.high, found.unit)}, is within the limit"
    if found.value <= found.limit:
        high, limit = told_apart(found.high, found.limit, found.unit)
        return f"{who}: the value is within the limit, but its interval straddles it, up to {high} where {limit} may be"
    value, limit = told_apart(found.value, found.limit, found.unit)
    return f"{who}: {value} is more than {limit}"


def _distinct(values: Sequence[float]) -> list[float]:
    return list(dict.fromkeys(values))
