"""Pages that a browser opens, drawn once; on one of them every name is an attack."""

from functools import cache

from tests.documents.cases import EVIL, documents
from tests.kit.documents import encoders_page, page
from tests.kit.page import Page
from tests.kit.results import full_audit, invalid_audit, with_evil_words

KINDS = {
    "audit failed": "audit/failed",
    "audit passed": "audit/little-left",
    "invalid audit": "audit/invalid",
    "validation": "validation/failed",
    "release": "release/leaks",
    "inversion": "inversion/failed",
    "certificate": "certificate/failed",
    "attribution": "attribution/two-encoders",
    "protection": "protection/failed",
}


@cache
def full() -> Page:
    return Page(page(full_audit()))


@cache
def invalid() -> Page:
    return Page(page(invalid_audit()))


@cache
def evil_page() -> Page:
    return Page(page(with_evil_words(full_audit(), EVIL)))


@cache
def every_kind() -> dict[str, str]:
    """One page of each kind, with and without a verdict."""
    made = {}
    for kind, name in KINDS.items():
        document = documents()[name]
        made[kind] = page(document.make(), document.decision, document.history)
    return {**made, "encoders": encoders_page({"one": full_audit(), "two": full_audit()})}
