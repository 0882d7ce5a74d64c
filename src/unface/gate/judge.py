"""A result file checked against a policy: a verdict for each rule, and one for all of them.

``require_asked`` says before anything is measured which rules an audit could not answer.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from unface.errors import UnfaceError
from unface.gate.file_rules import FileRule, evaluate_file, file_rule_words
from unface.gate.policy import (
    CertificateRule,
    CopiesRule,
    ExposedRule,
    ImprovementRule,
    InversionRule,
    LeakageRule,
    Policy,
    RiskRule,
    Rule,
    UtilityMinRule,
    UtilityRule,
    ValidationRule,
    read_policy,
)
from unface.gate.rules import Measurement, Outcome, Verdict, amount, at_usual_level, evaluate, inconclusive, listed
from unface.result.audit import AuditResult
from unface.result.certificate import CertificateResult
from unface.result.file import Finding
from unface.result.inversion import RAW, InversionResult
from unface.result.protection import ProtectionResult
from unface.result.readings import Readable
from unface.result.release import ReleaseResult
from unface.result.validation import ValidationResult
from unface.result.words import count, one_in, percent, rate

SCHEMA = "unface.gate/2"
PROTECT = "unface protect facemae audit"
_EXIT = {Verdict.PASSED: 0, Verdict.FAILED: 3, Verdict.INCONCLUSIVE: 4}


@dataclass(frozen=True)
class RuleResult:
    """One rule in words, its verdict, why, and the number that decided it."""

    rule: str
    meaning: str
    """What the rule limits, for a reader who knows none of its terms."""
    limit: str
    verdict: Verdict
    reason: str
    space: str | None
    measured: Measurement | None


@dataclass(frozen=True)
class GateResult:
    """All rules, and what they were applied to: the audited source by name and hash."""

    source: str
    source_sha256: str
    warnings: int
    rules: tuple[RuleResult, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of the rules' verdicts."""
        return max((rule.verdict for rule in self.rules), key=lambda verdict: verdict.gravity)

    @property
    def exit_code(self) -> int:
        """0 passed, 3 failed, 4 inconclusive."""
        return _EXIT[self.verdict]

    @property
    def summary(self) -> str:
        """The verdict in one sentence, with the exit code."""
        return f"{self.verdict.capitalize()}: {self.outcome} (exit {self.exit_code})."

    @property
    def outcome(self) -> str:
        """How many rules held, failed, or could not be evaluated."""
        total = count(len(self.rules), "rule")
        failed, unknown = self.count(Verdict.FAILED), self.count(Verdict.INCONCLUSIVE)
        text = {
            Verdict.PASSED: f"{total} held, for the attackers, rates and people of this test",
            Verdict.FAILED: f"{failed} of {total} failed" + (f", {unknown} could not be evaluated" if unknown else ""),
            Verdict.INCONCLUSIVE: f"{unknown} of {total} could not be evaluated, which does not count as a pass",
        }
        return text[self.verdict]

    def count(self, verdict: Verdict) -> int:
        """How many rules ended like this."""
        return sum(rule.verdict is verdict for rule in self.rules)

    def as_dict(self) -> dict[str, object]:
        """The result as JSON has it."""
        head = {"schema": SCHEMA, "verdict": self.verdict, "exit_code": self.exit_code, "summary": self.summary}
        return {**head, **asdict(self)}


def decide(result: Readable, policy: Policy) -> GateResult:
    """A verdict for each rule, and for the file's warnings where the policy forbids them."""
    match result:
        case AuditResult():
            return _judge_audit(result, policy)
        case ValidationResult():
            what, source, sha256, usable = "a validation", result.target.name, result.asked.sha256, result.valid
        case ReleaseResult():
            what, source, sha256, usable = "a release", result.synthetic.name, result.synthetic.sha256, True
        case InversionResult():
            what, source, sha256, usable = "an inversion", result.encoder.name, result.people.sha256, result.valid
        case CertificateResult():
            sha256 = "" if result.pictures is None else result.pictures.sha256
            what, source, usable = "a certificate", result.subject, True
        case ProtectionResult():
            what, source, sha256, usable = "a protection", result.release.name, result.release.sha256, True
        case _:
            raise UnfaceError(f"no rule is about a file of {result.schema_}; give a result that 'unface gate' takes")
    name = what.split()[1]
    unusable = None if usable else inconclusive(f"the {name} is invalid{_why_invalid(result.findings)}")
    rules = []
    for rule in policy.require:
        outcome = evaluate_file(rule, result)
        if outcome is None:
            outcome = inconclusive(f"this file is {what}; the rule is about what '{maker(rule)}' wrote")
        else:
            outcome = unusable or outcome
        made = _rule_result(rule, rule.space if isinstance(rule, InversionRule) else None, outcome)
        if isinstance(result, ProtectionResult) and isinstance(rule, RiskRule):
            worst = result.audited.worst
            risk = None if worst is None else worst.risk(rule.k, rule.pictures)
            guess = "" if risk is None else f" (by guessing: {percent(risk.chance)})"
            made = replace(made, rule=f"{made.rule}, worst attacker", meaning=made.meaning + guess)
        rules.append(made)
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, name, unusable)
    return GateResult(_one_line(source), sha256, len(warnings), tuple(rules))


def _judge_audit(result: AuditResult, policy: Policy) -> GateResult:
    """A verdict for each rule, and for the audit's warnings where the policy forbids them."""
    unusable = _unusable(result)
    rules = []
    for number, rule in enumerate(policy.require, 1):
        if isinstance(rule, FileRule):
            rules.append(_rule_result(rule, None, evaluate(rule, result.raw, result)))
            continue
        name = rule.space if rule.space is not None else _released(result, number)
        space = result.space(name)
        if unusable is not None:
            outcome = unusable
        elif space is None:
            there = listed(space.name for space in result.spaces)
            outcome = inconclusive(f"space '{name}' was not measured; the audit has {there}")
        else:
            outcome = evaluate(rule, space, result)
        rules.append(_rule_result(rule, name, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "audit", unusable)
    return GateResult(_one_line(result.source.name), result.source.sha256, len(warnings), tuple(rules))


def _warnings(findings: list[Finding]) -> list[str]:
    return [f"{finding.about}: {finding.text}" for finding in findings if finding.severity == "warning"]


def _on_warnings(policy: Policy, warnings: list[str], what: str, unusable: Outcome | None) -> list[RuleResult]:
    """A verdict on them, where the policy forbids them."""
    if policy.gate.findings != "no-warnings":
        return []
    outcome = (
        Outcome(Verdict.FAILED, warnings[0]) if warnings else Outcome(Verdict.PASSED, f"the {what} has no warnings")
    )
    said, decided = f"warnings of the {what}", unusable or outcome
    return [RuleResult(said, said, "none", decided.verdict, _one_line(decided.reason), None, decided.measured)]


def maker(rule: Rule) -> str:
    """The command whose file a rule is about."""
    match rule:
        case UtilityMinRule():
            return PROTECT
        case CertificateRule():
            return "unface protect frequency certify"
        case ValidationRule():
            return "unface validate"
        case InversionRule():
            return "unface invert"
        case ExposedRule() | CopiesRule() | RiskRule():
            return "unface release"
    return "unface audit"


def _why_invalid(findings: Sequence[Finding]) -> str:
    return next((f": {finding.text}" for finding in findings if finding.severity == "invalid"), "")


def _unusable(result: AuditResult) -> Outcome | None:
    """Why no rule can be evaluated on this audit, if that is so."""
    if not result.valid:
        return inconclusive(f"the audit is invalid{_why_invalid(result.findings)}")
    if result.protocol.variant == "paper":
        return inconclusive("the paper variant's intervals are spreads over seeds, which under-cover; audit without it")
    return None


def _released(result: AuditResult, number: int) -> str:
    """The space a rule is about if it names none: what the one eraser made, or the raw one."""
    erased = [space.name for space in result.erased]
    if len(erased) > 1:
        text = f"rule {number} names no space and the audit has {len(erased)} erasers ({listed(erased)}); "
        advice = f"name the released one with space = '{erased[0]}' or --space {erased[0]}"
        raise UnfaceError(_one_line(text + advice))
    return erased[0] if erased else result.raw.name


def _in_words(rule: Rule, space: str) -> tuple[str, str]:
    """What is required, and its limit."""
    if isinstance(rule, FileRule):
        return file_rule_words(rule)
    space = rule.space or space
    if isinstance(rule, UtilityRule):
        where = f" on {rule.on}" if rule.on is not None else ""
        return f"{rule.utility} kept in {space}{where}", f"at least {amount(rule.retained_min, 'share')}"
    at = f"at FAR {rate(rule.far)}, " + (f"k = {rule.k}" if rule.k is not None else "every k")
    if isinstance(rule, ImprovementRule):
        return f"TAR in {space} less TAR in {rule.beats} {at}", "below 0"
    limits = [amount(rule.tar_max, "share")] if rule.tar_max is not None else []
    limits += [amount(rule.times_chance_max, "times chance")] if rule.times_chance_max is not None else []
    what = "context-adjusted TAR" if rule.context_adjusted else "TAR"
    what += " of pairs from different groups" if rule.different_groups else ""
    who = "worst probe" if rule.probe == "worst" else rule.probe
    return f"{what} in {space} {at}, {who}", f"at most {' and '.join(limits)}"


def _meaning(rule: Rule, space: str) -> str:
    """What a rule limits, in words that need no explanation."""
    others = "other photos of the person"
    match rule:
        case LeakageRule():
            adjusted = ", adjusted for context" if rule.context_adjusted else ""
            adjusted += ", from different groups" if rule.different_groups else ""
            said = f"photo pairs of one person matched, {_vectors(space)}, at {one_in(rule.far)}{adjusted}"
        case ImprovementRule():
            less = f"fewer photo pairs of one person matched {_vectors(space)} than {_vectors(rule.beats)}"
            said = f"{less}, at {one_in(rule.far)}"
        case UtilityRule():
            said = f"usefulness left {_vectors(space)} ({rule.utility}{f' on {rule.on}' if rule.on else ''})"
        case ValidationRule():
            photo = others if rule.pictures == "other" else "the enrolled photo"
            asked = count(rule.queries, "question")
            said = f"rebuilt face templates that match {photo}, after {asked}, at {one_in(rule.far)}"
        case InversionRule():
            photo = others if rule.pictures == "other" else "the photo behind the vector"
            made = f"vectors turned into a face or template that matches {photo}"
            said = f"{made}, {_vectors(rule.space)}, at {one_in(rule.far)}"
        case ExposedRule():
            said = "people in the training set who are exposed by a synthetic face"
        case CopiesRule():
            said = f"synthetic faces too near to a training picture to be chance, at {one_in(rule.far)}"
        case RiskRule():
            said = f"real photos whose person is among the {count(rule.k, 'released face')} nearest to them"
        case CertificateRule():
            said = "pictures that the receiver computes back and a recogniser links to their person"
        case UtilityMinRule():
            said = "photo pairs that a recogniser trained on this set judges correctly"
    return said


def _vectors(space: str) -> str:
    return "before erasure" if space == RAW else f"after erasure by {space.removeprefix('erased by ')}"


def _rule_result(rule: Rule, space: str | None, outcome: Outcome) -> RuleResult:
    what, limit = _in_words(rule, space or "the released space")
    outcome = at_usual_level(outcome)
    return RuleResult(
        rule=_one_line(what),
        meaning=_one_line(_meaning(rule, space or "the released space")),
        limit=limit,
        verdict=outcome.verdict,
        reason=_one_line(outcome.reason),
        space=_one_line(space) if space is not None else None,
        measured=outcome.measured,
    )


def _one_line(text: str) -> str:
    """Names come from files: nothing in them may break a line, steer a terminal or be illegal in XML."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


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
    if isinstance(rule, LeakageRule) and rule.different_groups and not asked.context:
        return "asks for pairs from different groups, which needs a column of shoots; add --group"
    return None
