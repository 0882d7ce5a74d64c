"""Pages drawn once for all tests to look at."""

from functools import cache

from tests.report.made_audit import full_audit, invalid_audit, raw_audit
from tests.report.read_page import Page
from unface.report.html import render_report


@cache
def full() -> Page:
    return Page(render_report(full_audit()))


@cache
def raw_only() -> Page:
    return Page(render_report(raw_audit()))


@cache
def invalid() -> Page:
    return Page(render_report(invalid_audit()))
