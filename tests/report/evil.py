"""An audit in which every name is an attack on the page."""

from functools import cache

from tests.report.made_audit import full_audit
from tests.report.read_page import Page
from unface.auditing import AuditResult
from unface.report.html import render_report

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></script>"
WORDS_OF_THE_FORMAT = {"schema", "severity", "resolution", "variant", "over"}


def with_evil_words(value: object, key: str = "") -> object:
    """Every text of the audit that is not a word of the format, the same text always the same."""
    if isinstance(value, dict):
        return {name: with_evil_words(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_evil_words(part, key) for part in value]
    return value + EVIL if isinstance(value, str) and key not in WORDS_OF_THE_FORMAT else value


@cache
def evil_page() -> Page:
    dumped = full_audit().model_dump(by_alias=True, mode="json")
    return Page(render_report(AuditResult.model_validate(with_evil_words(dumped))))
