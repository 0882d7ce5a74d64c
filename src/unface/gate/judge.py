"""An audit checked against a policy: a verdict for each rule, and one for all of them."""

from dataclasses import asdict, dataclass

from unface.errors import UnfaceError
from unface.gate.certificate import certificate_words, evaluate_certificate
from unface.gate.inversion import evaluate_inversion, inversion_words
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
from unface.gate.protection import evaluate_protection, protection_words
from unface.gate.release import evaluate_release, release_words
from unface.gate.rules import Measurement, Outcome, Verdict, amount, evaluate, inconclusive, listed
from unface.gate.validation import evaluate_validation, validation_words
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
    """A verdict on any result file that has rules."""
    match result:
        case AuditResult():
            return judge(result, policy)
        case ValidationResult():
            return judge_validation(result, policy)
        case ReleaseResult():
            return judge_release(result, policy)
        case InversionResult():
            return judge_inversion(result, policy)
        case CertificateResult():
            return judge_certificate(result, policy)
        case ProtectionResult():
            return judge_protection(result, policy)
    raise UnfaceError(f"no rule is about a file of {result.schema_}; give a result that 'unface gate' takes")


def judge(result: AuditResult, policy: Policy) -> GateResult:
    """A verdict for each rule, and for the audit's warnings where the policy forbids them."""
    unusable = _unusable(result)
    rules = []
    for number, rule in enumerate(policy.require, 1):
        other = ValidationRule | ExposedRule | CopiesRule | RiskRule | InversionRule | CertificateRule | UtilityMinRule
        if isinstance(rule, other):
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


def judge_validation(result: ValidationResult, policy: Policy) -> GateResult:
    """The same for a validation.json."""
    unusable = None if result.valid else inconclusive("the validation is invalid: a control failed")
    rules = []
    for rule in policy.require:
        if not isinstance(rule, ValidationRule):
            outcome = inconclusive(f"this file is a validation; the rule is about what '{maker(rule)}' wrote")
            rules.append(_rule_result(*_in_words(rule, "the released space"), None, outcome))
        else:
            outcome = unusable or evaluate_validation(rule, result)
            rules.append(_rule_result(*validation_words(rule), None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "validation", unusable)
    return GateResult(_one_line(result.target.name), result.asked.sha256, len(warnings), tuple(rules))


def judge_release(result: ReleaseResult, policy: Policy) -> GateResult:
    """The same for a release.json."""
    rules = []
    for rule in policy.require:
        if isinstance(rule, ExposedRule | CopiesRule | RiskRule):
            outcome = evaluate_release(rule, result)
        else:
            outcome = inconclusive(f"this file is a release; the rule is about what '{maker(rule)}' wrote")
        rules.append(_rule_result(*_in_words(rule, "the released space"), None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "release", None)
    return GateResult(_one_line(result.synthetic.name), result.synthetic.sha256, len(warnings), tuple(rules))


def judge_inversion(result: InversionResult, policy: Policy) -> GateResult:
    """The same for an inversion.json."""
    unusable = None if result.valid else inconclusive("the inversion is invalid: a control failed")
    rules = []
    for rule in policy.require:
        if isinstance(rule, InversionRule):
            outcome = unusable or evaluate_inversion(rule, result)
        else:
            outcome = inconclusive(f"this file is an inversion; the rule is about what '{maker(rule)}' wrote")
        rules.append(_rule_result(*_in_words(rule, "the released space"), None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "inversion", unusable)
    return GateResult(_one_line(result.encoder.name), result.people.sha256, len(warnings), tuple(rules))


def judge_certificate(result: CertificateResult, policy: Policy) -> GateResult:
    """The same for a certificate.json."""
    rules = []
    for rule in policy.require:
        if isinstance(rule, CertificateRule):
            outcome = evaluate_certificate(rule, result)
        else:
            outcome = inconclusive(f"this file is a certificate; the rule is about what '{maker(rule)}' wrote")
        rules.append(_rule_result(*_in_words(rule, "the released space"), None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "certificate", None)
    sha256 = "" if result.pictures is None else result.pictures.sha256
    return GateResult(_one_line(result.subject), sha256, len(warnings), tuple(rules))


def judge_protection(result: ProtectionResult, policy: Policy) -> GateResult:
    """The same for a protection.json."""
    rules = []
    for rule in policy.require:
        if isinstance(rule, UtilityMinRule | RiskRule):
            rules.append(_rule_result(*protection_words(rule), None, evaluate_protection(rule, result)))
        else:
            outcome = inconclusive(f"this file is a protection; the rule is about what '{maker(rule)}' wrote")
            rules.append(_rule_result(*_in_words(rule, "the released space"), None, outcome))
    warnings = _warnings(result.findings)
    rules += _on_warnings(policy, warnings, "protection", None)
    return GateResult(_one_line(result.release.name), result.release.sha256, len(warnings), tuple(rules))


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
    if isinstance(rule, CertificateRule | UtilityMinRule):
        return PROTECT if isinstance(rule, UtilityMinRule) else "unface protect frequency certify"
    if isinstance(rule, ValidationRule | InversionRule):
        return "unface validate" if isinstance(rule, ValidationRule) else "unface invert"
    return "unface release" if isinstance(rule, ExposedRule | CopiesRule | RiskRule) else "unface audit"


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
    if isinstance(rule, ValidationRule | UtilityMinRule):
        return validation_words(rule) if isinstance(rule, ValidationRule) else protection_words(rule)
    if isinstance(rule, ExposedRule | CopiesRule | RiskRule):
        return release_words(rule)
    if isinstance(rule, InversionRule | CertificateRule):
        return inversion_words(rule) if isinstance(rule, InversionRule) else certificate_words(rule)
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
