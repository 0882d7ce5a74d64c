"""One rule against a result file that is no audit: the worse end of a measured interval must be within the limit."""

from unface.gate.policy import (
    CertificateRule,
    CopiesRule,
    ExposedRule,
    InversionRule,
    ProtectRule,
    ReleaseRule,
    RiskRule,
    Rule,
    UtilityMinRule,
    ValidationRule,
)
from unface.gate.rules import Measurement, Outcome, Verdict, amount, at_most, inconclusive, listed, unless_beyond
from unface.result.certificate import CertificateResult
from unface.result.inversion import InversionResult
from unface.result.numbers import Share
from unface.result.protection import ProtectionResult
from unface.result.readings import Readable
from unface.result.release import ReleaseResult, ViewResult
from unface.result.validation import ValidationResult
from unface.result.words import count, rate

FileRule = ValidationRule | InversionRule | ReleaseRule | ProtectRule


def evaluate_file(rule: Rule, result: Readable) -> Outcome | None:
    """The outcome, or None for a rule about what another command writes."""
    match result, rule:
        case ValidationResult(), ValidationRule():
            return _validation(rule, result)
        case InversionResult(), InversionRule():
            return _inversion(rule, result)
        case ReleaseResult(), ExposedRule() | CopiesRule() | RiskRule():
            return _release(rule, result)
        case CertificateResult(), CertificateRule():
            return _certificate(rule, result)
        case ProtectionResult(), UtilityMinRule() | RiskRule():
            return _protection(rule, result)
    return None


def file_rule_words(rule: FileRule) -> tuple[str, str]:
    """What is required, and its limit."""
    match rule:
        case ValidationRule():
            who = "worst attack" if rule.attack == "worst" else rule.attack
            pictures = "other pictures" if rule.pictures == "other" else "the enrolled picture"
            asked = count(rule.queries, "question")
            what, limit = f"success against {pictures} after {asked} at FAR {rate(rule.far)}, {who}", rule.success_max
        case InversionRule():
            who = "worst attack" if rule.attack == "worst" else rule.attack
            pictures = "other pictures" if rule.pictures == "other" else "the attacked picture"
            what = f"inversion of {rule.space} vectors against {pictures} at FAR {rate(rule.far)}, {who}"
            limit = rule.inverted_max
        case ExposedRule():
            what, limit = f"training people exposed{_by(rule.view)}", rule.exposed_max
        case CopiesRule():
            what, limit = f"copies beyond the holdout's at FAR {rate(rule.far)}{_by(rule.view)}", rule.copies_max
        case RiskRule():
            pictures = {"other": "another picture", "same": "the same picture", "any": "a picture"}[rule.pictures]
            what, limit = f"retrieval risk for {pictures}, K = {rule.k}", rule.risk_max
        case CertificateRule():
            what, limit = "reconstructions that a recogniser links", rule.recognised_max
        case UtilityMinRule():
            where = "" if rule.pairs is None else f" on {rule.pairs}"
            what = f"pair verification of a recogniser trained on the release{where}"
            return what, f"at least {amount(rule.utility_min, 'share')}"
    return what, f"at most {amount(limit, 'share')}"


def _validation(rule: ValidationRule, result: ValidationResult) -> Outcome:
    """The worst attack is the one that the result is quoted by."""
    attacks = [attack for attack in result.attacks if rule.attack in ("worst", attack.name)]
    if rule.attack == "worst" and result.worst_case is not None:
        attacks = [result.worst_case]
    if not attacks:
        there = listed(attack.name for attack in result.attacks)
        return inconclusive(f"attack {rule.attack!r} was not run; the validation has {there}")
    coarse = _coarse_judge(rule, result)
    outcomes = []
    for attack in attacks:
        point = attack.point(rule.queries, rule.far)
        if point is None:
            continue
        share = point.other if rule.pictures == "other" else point.same
        if share is None:
            there = "there are no other pictures of the enrolled people; enrol people with several"
            outcomes.append(inconclusive(there))
        else:
            who = " or ".join(point.attacks) or attack.name
            outcome = _within(share, rule.success_max, far=rule.far, attack=who, queries=rule.queries)
            outcomes.append(unless_beyond(coarse, outcome))
    if not outcomes:
        numbers = sorted({point.queries for attack in attacks for point in attack.at})
        there = f"{listed(map(str, numbers))} questions at FAR {listed(rate(far) for far in result.far)}"
        asked = f"{count(rule.queries, 'question')} at FAR {rate(rule.far)}"
        return inconclusive(f"success after {asked} was not measured; it was after {there}")
    return max(outcomes, key=lambda outcome: (outcome.verdict.gravity, outcome.strain))


def _inversion(rule: InversionRule, result: InversionResult) -> Outcome:
    """The worst attack is the one that the result is quoted by. Where none converged, failing proves nothing."""
    cells = [cell for cell in result.cells if cell.space == rule.space and rule.attack in ("worst", cell.attack)]
    if not cells:
        there = listed(f"{cell.attack} on {cell.space}" for cell in result.cells)
        return inconclusive(f"{rule.attack} attack on {rule.space} was not run; the inversion has {there}")
    coarse = _coarse_judge(rule, result)
    outcomes = []
    worst = result.worst(rule.far, rule.space) if rule.attack == "worst" else None
    tried = (
        [(worst.attack, worst.point)] if worst is not None else [(cell.attack, cell.point(rule.far)) for cell in cells]
    )
    for attack, point in tried:
        if point is None:
            continue
        share = point.other if rule.pictures == "other" else point.same
        if share is None:
            there = "there are no other pictures of the people; give people with several, or pictures = 'same'"
            outcomes.append(inconclusive(there))
        else:
            outcomes.append(unless_beyond(coarse, _within(share, rule.inverted_max, far=rule.far, attack=attack)))
    if not outcomes:
        return inconclusive(f"FAR {rate(rule.far)} was not measured; there is {listed(map(rate, result.far))}")
    gravest = max(outcomes, key=lambda outcome: (outcome.verdict.gravity, outcome.strain))
    if gravest.verdict is Verdict.PASSED and all(cell.converged is False for cell in cells):
        return inconclusive("no attack converged, so that failing to invert says nothing; give them more steps")
    return gravest


def _coarse_judge(rule: ValidationRule | InversionRule, result: ValidationResult | InversionResult) -> Outcome | None:
    known = [one for judge in result.judges for one in judge.thresholds]
    if isinstance(result, ValidationResult):
        known += [one for judge in result.judges for one in judge.template_thresholds]
    thresholds = [one for one in known if one.far == rule.far]
    if rule.coarse == "allow" or all(one.resolution != "coarse" for one in thresholds):
        return None
    where = " in --queries" if isinstance(result, ValidationResult) else ""
    few = f"too few people set the judges' thresholds for FAR {rate(rule.far)} (it is coarse)"
    return inconclusive(f"{few}; give more people{where}, or set coarse = 'allow'")


def _release(rule: ReleaseRule, result: ReleaseResult) -> Outcome:
    """Exact copies fail whatever the holdout is worth."""
    exact = _exact(rule, result)
    if exact is not None:
        return exact
    if not result.comparable:
        return inconclusive("training and holdout pictures differ by more than their people; give another holdout")
    if isinstance(rule, ExposedRule):
        return _exposed(rule, result)
    if isinstance(rule, CopiesRule):
        return _copies(rule, result)
    here = [one for one in result.retrieval if (one.k, one.pictures) == (rule.k, rule.pictures)]
    if not here:
        there = listed(sorted({f"K = {one.k} ({one.pictures})" for one in result.retrieval}))
        return inconclusive(f"this retrieval risk was not measured; the release has {there}")
    return _within(max(here, key=lambda one: one.identities).share, rule.risk_max, k=rule.k)


def _exact(rule: ReleaseRule, result: ReleaseResult) -> Outcome | None:
    if not result.exact.found or isinstance(rule, RiskRule):
        return None
    if isinstance(rule, ExposedRule):
        number, of, limit, far = result.exact.people, result.training.people or 0, rule.exposed_max, None
    else:
        number, of, limit, far = result.exact.faces, result.synthetic.rows, rule.copies_max, rule.far
    share = number / max(of, 1)
    if share <= limit:
        return None
    faces = count(result.exact.faces, "synthetic face is", "synthetic faces are")
    measured = Measurement(share, share, share, 0.95, limit, "share", far=far)
    return Outcome(Verdict.FAILED, f"{faces} an exact copy of a training picture", measured)


def _copies(rule: CopiesRule, result: ReleaseResult) -> Outcome:
    view = _view(rule.view, result)
    if isinstance(view, Outcome):
        return view
    found = next((one for one in view.copies if one.far == rule.far), None)
    if found is None:
        there = listed(rate(one.far) for one in view.copies)
        return inconclusive(f"FAR {rate(rule.far)} was not measured; the release has {there}")
    coarse = None
    if found.resolution == "coarse" and rule.coarse != "allow":
        coarse = inconclusive(f"FAR {rate(rule.far)} is coarse; give more real people, or set coarse = 'allow'")
    excess = found.excess
    measured = Measurement(excess.value, excess.low, excess.high, excess.level, rule.copies_max, "share", far=rule.far)
    outcome = at_most(measured, "", found.copies.denominator, ("synthetic face", "synthetic faces"))
    return unless_beyond(coarse, outcome)


def _exposed(rule: ExposedRule, result: ReleaseResult) -> Outcome:
    if rule.view is None:
        found = result.exposure
    else:
        view = _view(rule.view, result)
        if isinstance(view, Outcome):
            return view
        found = view.exposure
    if found.exposed is None:
        return inconclusive("this holdout is too small to list anybody; give a larger holdout")
    outcome = _within(found.exposed, rule.exposed_max)
    if outcome.verdict is Verdict.FAILED and found.listed and not result.confirmed:
        return inconclusive(
            f"{count(found.listed, 'person is', 'people are')} listed, but all measurements together are within "
            "chance; look at their pictures, or give a larger holdout"
        )
    unseen = (found.least - 1) / found.exposed.denominator
    # Fewer than ``least`` exposed people cannot be listed, so an empty list bounds nothing below that.
    if outcome.verdict is Verdict.PASSED and unseen > rule.exposed_max:
        return inconclusive(
            f"this holdout lists nobody before {count(found.least, 'person is', 'people are')} exposed, "
            f"which is more than {amount(rule.exposed_max, 'share')}; give a larger holdout"
        )
    return outcome


def _view(name: str | None, result: ReleaseResult) -> ViewResult | Outcome:
    view = result.main if name is None else next((one for one in result.views if one.name == name), None)
    if view is None:
        return inconclusive(
            f"view '{name}' was not measured; the release has {listed(one.name for one in result.views)}"
        )
    if view.linking is not None and not view.linking.above_chance:
        return inconclusive(f"{view.name} does not link real people, so nothing follows from it")
    return view


def _by(view: str | None) -> str:
    return "" if view is None else f" by {view}"


def _certificate(rule: CertificateRule, result: CertificateResult) -> Outcome:
    """A recogniser that does not know originals either proves nothing."""
    identity = None if result.pictures is None else result.pictures.identity
    if identity is None:
        return inconclusive("no recogniser looked at reconstructions; certify with --pictures and --encoder")
    outcome = _within(identity.reconstructions, rule.recognised_max, far=identity.far)
    known = identity.originals.low > max(rule.recognised_max, identity.guesses.high)
    if outcome.verdict is Verdict.FAILED or known:
        return outcome
    return inconclusive(f"{identity.encoder} does not link originals of these people either; give other pictures")


def _protection(rule: UtilityMinRule | RiskRule, result: ProtectionResult) -> Outcome:
    if not result.valid:
        return inconclusive("the numbers cannot be used; the findings say why")
    if isinstance(rule, RiskRule):
        return _risk(rule, result)
    there = result.audited.utility
    found = next((one for one in there if rule.pairs in (None, one.name)), None)
    if found is None:
        names = listed(one.name for one in there)
        return inconclusive(
            f"verification{'' if rule.pairs is None else f' on {rule.pairs}'} was not measured; there is {names}"
        )
    value, limit = found.accuracy, rule.utility_min
    measured = Measurement(value.value, value.low, value.high, value.level, limit, "share")
    said = amount(limit, "share")
    if value.low >= limit:
        return Outcome(Verdict.PASSED, f"the lower end is at least {said}", measured)
    why = "even the value is below" if value.value < limit else "the lower end is below"
    return Outcome(Verdict.FAILED, f"{why} {said}", measured)


def _risk(rule: RiskRule, result: ProtectionResult) -> Outcome:
    worst = result.audited.worst
    if worst is None:
        return inconclusive("no attacker was tried; audit with --encoder")
    found = worst.risk(rule.k, rule.pictures)
    if found is None:
        there = listed(sorted({f"K = {one.k} ({one.pictures})" for one in worst.retrieval}))
        return inconclusive(f"this retrieval risk was not measured; the audit has {there}")
    return _within(found.share, rule.risk_max, k=rule.k)


def _within(
    found: Share,
    limit: float,
    *,
    far: float | None = None,
    k: int | None = None,
    attack: str | None = None,
    queries: int | None = None,
) -> Outcome:
    """The upper end of a share of people must be within the limit."""
    measured = Measurement(
        found.value, found.low, found.high, found.level, limit, "share", k=k, far=far, attack=attack, queries=queries
    )
    return at_most(measured, "" if attack is None else f"{attack}: ", found.identities)
