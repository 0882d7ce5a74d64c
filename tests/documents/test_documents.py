"""If these fail, a page, a table or a card reads otherwise than it did: `make snapshots` if that is meant."""

import pytest

from tests.documents.cases import documents
from tests.kit.documents import card, chart_lines, encoders_page, lines, page, terminal, undrawn
from tests.kit.gating import FAILS, gated
from tests.kit.golden import declare, golden
from tests.kit.results import full_audit, invalid_audit, raw_audit

NAMES = list(documents())
CARDS = [
    name for name in NAMES if name.endswith(("failed", "leaks", "no-policy", "invalid", "coarse", "empty", "quiet"))
]
ENCODERS = {"sface": full_audit, "an-encoder-s14": raw_audit, "broken": invalid_audit}

declare(*(f"{name}.{form}.txt" for name in NAMES for form in ("page", "terminal")))
declare(*(f"{name}.card.txt" for name in CARDS), "encoders.page.txt", "encoders.terminal.txt")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_and_its_charts_are_as_they_were(name: str) -> None:
    document = documents()[name]
    with undrawn() as charts:
        html = page(document.make(), document.decision, document.history)
    golden(lines(html) + chart_lines(charts), f"{name}.page.txt")


@pytest.mark.parametrize("name", NAMES)
def test_the_terminal_is_as_it_was_in_eighty_columns(name: str) -> None:
    document = documents()[name]
    text = terminal(document.make(), document.decision)
    golden(text, f"{name}.terminal.txt")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_as_it_was(name: str) -> None:
    golden(lines(card(documents()[name].make())), f"{name}.card.txt")


def test_encoders_side_by_side_are_as_they_were() -> None:
    audits = {name: make() for name, make in ENCODERS.items()}
    decisions = {name: gated(audit, FAILS) for name, audit in audits.items()}
    text = []
    for decided in (None, decisions):
        with undrawn() as charts:
            html = encoders_page(audits, decided)
        text.append(lines(html) + chart_lines(charts))
    golden("\n\n".join(text), "encoders.page.txt")
    golden(terminal(audits), "encoders.terminal.txt")
