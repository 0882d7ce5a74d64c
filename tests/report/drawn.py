"""Pages drawn once for all tests to look at; on one of them every name is an attack."""

from functools import cache

from tests.page.read_page import Page
from tests.report.made import full_audit, invalid_audit, raw_audit
from unface.report.html import render_report
from unface.result.audit import AuditResult

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


def with_evil_words(value: object, key: str = "") -> object:
    """Every text of the audit that is not a word of the format, the same text always the same."""
    if isinstance(value, dict):
        return {name: with_evil_words(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_evil_words(part, key) for part in value]
    return value + EVIL if isinstance(value, str) and key not in WORDS_OF_THE_FORMAT else value
