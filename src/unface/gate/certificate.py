"""One rule against a certificate: how often a recogniser knows people in what least squares recovers."""

from unface.gate.policy import CertificateRule
from unface.gate.rules import Measurement, Outcome, Verdict, amount, inconclusive
from unface.result.certificate import CertificateResult


def certificate_words(rule: CertificateRule) -> tuple[str, str]:
    """What is required, and its limit."""
    return "reconstructions that a recogniser links", f"at most {amount(rule.recognised_max, 'share')}"


def evaluate_certificate(rule: CertificateRule, result: CertificateResult) -> Outcome:
    """The upper end of the interval decides; a recogniser that does not know originals either proves nothing."""
    identity = None if result.pictures is None else result.pictures.identity
    if identity is None:
        return inconclusive("no recogniser looked at reconstructions; certify with --pictures and --encoder")
    found, limit = identity.reconstructions, rule.recognised_max
    high = max(found.value, found.high)
    measured = Measurement(found.value, found.low, high, found.level, limit, "share", far=identity.far)
    if high > limit:
        why = "even the value is above" if found.value > limit else "the upper end is above"
        return Outcome(Verdict.FAILED, f"{why} {amount(limit, 'share')}", measured, high)
    if identity.originals.low <= max(limit, identity.guesses.high):
        return inconclusive(f"{identity.encoder} does not link originals of these people either; give other pictures")
    return Outcome(Verdict.PASSED, f"the upper end is within {amount(limit, 'share')}", measured, high)
