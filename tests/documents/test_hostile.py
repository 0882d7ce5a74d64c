"""If these fail, a name in somebody else's file runs as code, moves the cursor or breaks out of a table."""

import json
import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import pytest
from markupsafe import Markup, escape

from tests.documents.cases import ESCAPE, EVIL
from tests.kit.documents import card, encoders_page, page, terminal, undrawn
from tests.kit.gating import FAILS, PASSES, gated
from tests.kit.page import Page
from tests.kit.results import (
    KINDS,
    AnyResult,
    AuditResult,
    Kind,
    audited,
    cell,
    erased,
    every_part,
    full_audit,
    inversion,
    point,
    raw,
    raw_audit,
    result,
    with_evil_words,
    with_parts,
)
from unface.gate import compare, diff_markdown, gate_markdown, junit_xml, sarif
from unface.page.templates import render
from unface.result.file import Frozen
from unface.result.parts import Part, Section

LONG = "x" * 5_000_000
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
IN_TABLES = 'x"/>]]><![CDATA[>|`&<script>[a](http://b)\x00\x1b[31m\ufffe\n# heading [bold]'
NAMES = pytest.mark.parametrize(
    "name", [f"a{ESCAPE}z", f"[red]a{ESCAPE}z[/red]", LONG], ids=["escape", "markup", "long"]
)


def whole(kind: Kind) -> AnyResult:
    return every_part() if kind == "audit" else result(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_on_a_page_becomes_an_element_and_each_is_shown_as_it_is(kind: Kind) -> None:
    with undrawn():
        evil, honest = Page(page(with_evil_words(whole(kind), EVIL))), Page(page(whole(kind)))
    assert [one.tag for one in evil.elements] == [one.tag for one in honest.elements]
    assert [one.attributes.get("type") for one in evil.all("script")] == [
        one.attributes.get("type") for one in honest.all("script")
    ]
    assert evil.all("img") == []
    assert not [name for one in evil.elements for name in one.attributes if name.startswith("on")]
    assert {one.attributes.get("href") for one in evil.all("a")} <= {
        one.attributes.get("href") for one in honest.all("a")
    }
    assert EVIL in evil.words


def test_what_the_slider_of_a_page_reads_is_the_same_words_in_json() -> None:
    with undrawn():
        evil = Page(page(with_evil_words(full_audit(), EVIL)))
    block = evil.one("script", type="application/json").text
    assert "<" not in block
    assert "isp" + EVIL in json.loads(block)["said"][0]


def test_names_of_encoders_are_text_on_their_page_and_links_lead_to_their_reports() -> None:
    with undrawn():
        evil, honest = (Page(encoders_page({name: raw_audit(), "b": raw_audit()})) for name in (f"a{EVIL}", "a"))
    assert [one.tag for one in evil.elements] == [one.tag for one in honest.elements]
    links = [one.attributes["href"] for one in evil.all("a") if not one.attributes["href"].startswith("#")]
    assert links == [f"a{EVIL}/report.html", "b/report.html"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "attribution"])
def test_names_on_a_card_are_text(kind: Kind) -> None:
    html = card(with_evil_words(whole(kind), EVIL))
    assert "<script" not in html
    assert "<img" not in html
    assert str(escape(EVIL)) in html


class Guest(Part):
    """Another package's part, which hands over its section as it came."""

    name = "guest"
    schema = Frozen
    body: ClassVar[str] = f"<b>{EVIL}</b>"

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        return [Section(f"guest{EVIL}", EVIL, cls.body), f"absent {EVIL}"]


@pytest.mark.parametrize("body", [Guest.body, render("tables.jinja", text=EVIL, tables=[])])
def test_nothing_that_a_part_hands_over_becomes_an_element_unless_a_template_made_it(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("guest", f"{__name__}:Guest", "unface.parts")
    monkeypatch.setattr("unface.functions.entry_points", lambda group, name: [entry] if name == "guest" else [])
    monkeypatch.setattr(Guest, "body", body)
    with undrawn():
        shown = Page(page(with_parts(raw_audit(), guest=Frozen())))
    section = shown.one("section", id=f"guest{EVIL}")
    inside = [one.tag for one in shown.elements if section in one.within]
    assert inside == (["h2", "p"] if isinstance(body, Markup) else ["h2"])
    assert EVIL in section.words
    assert f"absent {EVIL}" in shown.one("section", id="limits").words
    assert shown.all("img") == []
    assert not [name for one in shown.elements for name in one.attributes if name.startswith("on")]
    assert shown.elements.index(section) < shown.elements.index(shown.one("section", id="curves"))


@NAMES
@pytest.mark.parametrize("kind", KINDS)
def test_no_name_on_the_terminal_steers_or_floods_it(kind: Kind, name: str) -> None:
    made = with_evil_words(result(kind), name if name != LONG else name[: 10**5])
    text = terminal(made, width=120)
    assert CONTROL.findall(text) == []
    assert len(text) < 300_000
    if name.startswith("[red]"):
        assert "[red]" in text, "it is no markup of the terminal's"


@NAMES
def test_neither_do_encoders_side_by_side_a_gate_or_a_comparison(name: str) -> None:
    source = full_audit().source.model_copy(update={"name": name, "notes": [name]})
    made = full_audit().model_copy(update={"source": source})
    utility = [replace(one, on=name, measure=name) for one in made.spaces[1].utility]
    made = made.model_copy(
        update={"spaces": [made.raw, made.spaces[1].model_copy(update={"utility": utility})], "verdict": name}
    )
    gate = gated(made, {"far": 1e-3, "tar_max": 0.5}, {"far": 1e-3, "tar_max": 0.5, "probe": name})
    for text in (terminal({name: made}), terminal(gate, width=120), terminal(compare(made, made))):
        assert CONTROL.findall(text) == []
        assert 0 < len(text) < 60_000


@pytest.fixture
def hostile() -> AuditResult:
    made = audited(raw(), erased(IN_TABLES, point(0.3, 0.2, 0.4, probe=IN_TABLES)))
    return made.model_copy(update={"source": made.source.model_copy(update={"name": IN_TABLES})})


def test_names_become_neither_markup_nor_cells_of_markdown(hostile: AuditResult) -> None:
    judged = gate_markdown(gated(hostile, PASSES, FAILS, {**PASSES, "probe": IN_TABLES[::-1]}))
    compared = diff_markdown(compare(hostile, hostile))
    for text, bars in ((judged, 5), (compared, 6)):
        assert not any(sign in text for sign in ("<script", "](http", "`&", "\x1b", "\x00", "\n# heading"))
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(rows) > 2
        assert {row.count("|") for row in rows} == {bars}


def test_names_stay_text_in_junit_and_sarif(hostile: AuditResult) -> None:
    judged = gated(hostile, PASSES, FAILS, {**PASSES, "probe": IN_TABLES[::-1]})
    (suite,) = ElementTree.fromstring(junit_xml(judged))
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["error"]]
    assert suite.attrib["name"].startswith('unface gate: x"/>]]><![CDATA[>|`&<script>')
    assert len(json.loads(sarif(judged, Path("audit.json")))["runs"][0]["results"]) == 2


def test_names_neither_steer_a_gates_table_nor_are_taken_for_markup(hostile: AuditResult) -> None:
    text = terminal(gated(hostile, PASSES, FAILS), width=600)
    assert CONTROL.findall(text) == []
    assert "[bold]" in text


def test_a_name_in_an_inversions_chart_is_numbered_and_not_drawn() -> None:
    made = inversion(cell("<b>mine</b>", 3, "<i>own</i>"))
    shown = page(made)
    assert "<b>mine" not in shown
    assert "&lt;b&gt;mine" in shown
