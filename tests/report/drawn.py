"""Pages drawn once for all tests to look at; on one of them every name is an attack."""

from functools import cache

from tests.gate import test_inversion as inversions
from tests.gate import test_release as releases
from tests.gate.made import gated
from tests.gate.test_certificate import certificate
from tests.gate.test_protection import protection
from tests.page.read_page import Page
from tests.report.made import full_audit, invalid_audit, raw_audit
from tests.report.made_attribution import result as attribution
from tests.report.made_validation import validation
from unface.gate import GateResult, decide, make_policy
from unface.report.attribution import render_attribution
from unface.report.certificate import render_certificate
from unface.report.html import render_report
from unface.report.inversion import render_inversion
from unface.report.protection import render_protection
from unface.report.release import render_release
from unface.report.side_by_side import render_side_by_side
from unface.report.validation import render_validation
from unface.result.audit import AuditResult
from unface.result.readings import Readable
from unface.result.release import RiskyPicture

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></script>"
WORDS_OF_THE_FORMAT = {"schema", "severity", "resolution", "variant", "over"}


@cache
def full() -> Page:
    return Page(render_report(full_audit()))


@cache
def raw_only() -> Page:
    return Page(render_report(raw_audit()))


@cache
def invalid() -> Page:
    return Page(render_report(invalid_audit()))


@cache
def evil_page() -> Page:
    dumped = full_audit().model_dump(by_alias=True, mode="json")
    return Page(render_report(AuditResult.model_validate(with_evil_words(dumped))))


@cache
def every_kind() -> dict[str, str]:
    """One page of each kind, with and without a verdict."""
    audit, asked = full_audit(), validation(0.6)
    copied = RiskyPicture(id="s1.png", training=0.91, holdout=0.32, people=2, is_copy=True)
    released = releases.result(
        releases.view(listed=40).model_copy(update={"riskiest": [copied]}),
        releases.view("eyes"),
        fused=releases.exposure(44),
    )
    inverted = inversions.result(inversions.cell("bob", 62), inversions.cell("bob", 20, "isp"))

    def failed(result: Readable, **rule: object) -> GateResult:
        return decide(result, make_policy({"require": [rule]}, lambda _, key: key))

    return {
        "audit failed": render_report(audit, decision=gated(audit, {"far": 1e-4, "tar_max": 0.01})),
        "audit passed": render_report(raw_audit(), decision=gated(raw_audit(), {"far": 1e-4, "tar_max": 0.1})),
        "invalid audit": render_report(invalid_audit()),
        "encoders": render_side_by_side({"one": audit, "two": audit}, {"one": "1/report.html", "two": "2/report.html"}),
        "validation": render_validation(asked, decision=failed(asked, success_max=0.05, far=1e-3, queries=100)),
        "release": render_release(released, decision=failed(released, exposed_max=0.01)),
        "inversion": render_inversion(inverted, decision=failed(inverted, inverted_max=0.05, far=1e-3)),
        "certificate": render_certificate(certificate(0.99), failed(certificate(0.99), recognised_max=0.05)),
        "attribution": render_attribution(attribution("made", "second")),
        "protection": render_protection(protection(), failed(protection(), utility_min=0.85)),
    }


def with_evil_words(value: object, key: str = "") -> object:
    """Every text of the audit that is not a word of the format, the same text always the same."""
    if isinstance(value, dict):
        return {name: with_evil_words(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_evil_words(part, key) for part in value]
    return value + EVIL if isinstance(value, str) and key not in WORDS_OF_THE_FORMAT else value
