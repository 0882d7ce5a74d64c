"""An audit checked against a policy: a verdict for each rule, and one for all of them."""

from dataclasses import asdict, dataclass

from unface.errors import UnfaceError
from unface.gate.file_rules import FileRule, evaluate_file, file_rule_words
from unface.gate.policy import (
    CertificateRule,
    CopiesRule,
    ExposedRule,
    ImprovementRule,
    InversionRule,
    Policy,
    RiskRule,
    Rule,
    UtilityMinRule,
    UtilityRule,
    ValidationRule,
)
from unface.gate.rules import Measurement, Outcome, Verdict, amount, evaluate, inconclusive, listed
from unface.result.audit import AuditResult
from unface.result.certificate import CertificateResult
from unface.result.file import Finding
from unface.result.inversion import InversionResult
from unface.result.protection import ProtectionResult
from unface.result.readings import Readable
from unface.result.release import ReleaseResult
from unface.result.validation import ValidationResult
from unface.result.words import count, rate

SCHEMA = "unface.gate/2"
PROTECT = "unface protect facemae audit"
_EXIT = {Verdict.PASSED: 0, Verdict.FAILED: 3, Verdict.INCONCLUSIVE: 4}


@dataclass(frozen=True)
class RuleResult:
    """One rule in words, its verdict, why, and the number that decided it."""

    rule: str
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
            Verdict.PASSED: f"{total} held, for the probes, rates and people of this audit",
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
    unusable = None if usable else inconclusive(f"the {name} is invalid: a control failed")
    rules = []
    for rule in policy.require:
        required, limit = _in_words(rule, "the released space")
        if isinstance(result, ProtectionResult) and isinstance(rule, RiskRule):
            required += ", worst attacker"
        outcome = evaluate_file(rule, result)
        if outcome is None:
            outcome = inconclusive(f"this file is {what}; the rule is about what '{maker(rule)}' wrote")
        else:
            outcome = unusable or outcome
        rules.append(_rule_result(required, limit, None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, name, unusable)
    return GateResult(_one_line(source), sha256, len(warnings), tuple(rules))


def _judge_audit(result: AuditResult, policy: Policy) -> GateResult:
    """A verdict for each rule, and for the audit's warnings where the policy forbids them."""
    unusable = _unusable(result)
    rules = []
    for number, rule in enumerate(policy.require, 1):
        if isinstance(rule, FileRule):
            rules.append(_rule_result(*_in_words(rule, ""), None, evaluate(rule, result.raw, result)))
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
        rules.append(_rule_result(*_in_words(rule, name), name, outcome))
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
    return [_rule_result(f"warnings of the {what}", "none", None, unusable or outcome)]


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


def _unusable(result: AuditResult) -> Outcome | None:
    """Why no rule can be evaluated on this audit, if that is so."""
    if not result.valid:
        why = next((f": {finding.text}" for finding in result.findings if finding.severity == "invalid"), "")
        return inconclusive(f"the audit is invalid{why}")
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
    who = "worst probe" if rule.probe == "worst" else rule.probe
    return f"{what} in {space} {at}, {who}", f"at most {' and '.join(limits)}"


def _rule_result(rule: str, limit: str, space: str | None, outcome: Outcome) -> RuleResult:
    return RuleResult(
        rule=_one_line(rule),
        limit=limit,
        verdict=outcome.verdict,
        reason=_one_line(outcome.reason),
        space=_one_line(space) if space is not None else None,
        measured=outcome.measured,
    )


def _one_line(text: str) -> str:
    """Names come from files: nothing in them may break a line, steer a terminal or be illegal in XML."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
