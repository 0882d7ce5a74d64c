"""If these fail, a name in an audit can run as code in the reader's browser, or the page asks the network."""

import base64
import hashlib
import json
import re
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
from markupsafe import Markup

from tests.page.read_page import Page
from tests.report.drawn import EVIL, evil_page, full, raw_only
from tests.report.made import full_audit, raw_audit, with_parts
from unface.auditing.maps import MapResults, Maps
from unface.page.templates import render
from unface.report.html import render_report
from unface.result.audit import AuditResult
from unface.result.file import Frozen
from unface.result.parts import Part, Section


def test_no_name_in_an_audit_becomes_an_element() -> None:
    page, honest = evil_page(), full()
    assert page.all("img") == []
    assert [one.tag for one in page.elements] == [one.tag for one in honest.elements]
    assert [one.attributes.get("type") for one in page.all("script")] == ["application/json", None]
    assert not [name for one in page.elements for name in one.attributes if name.startswith("on")]


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
    page = Page(render_report(with_parts(raw_audit(), guest=Frozen())))
    section = page.one("section", id=f"guest{EVIL}")
    inside = [one.tag for one in page.elements if section in one.within]
    assert inside == (["h2", "p"] if isinstance(body, Markup) else ["h2"])
    assert EVIL in section.words
    assert f"absent {EVIL}" in page.one("section", id="limits").words
    assert page.all("img") == []
    assert not [name for one in page.elements for name in one.attributes if name.startswith("on")]
    assert page.elements.index(section) < page.elements.index(page.one("section", id="curves"))


def test_names_are_shown_as_they_are() -> None:
    words = evil_page().words
    for name in (
        "faces.parquet",
        "knn",
        "isp",
        "smiling",
        "near-duplicates",
        "strangers.parquet",
        "template inversion",
    ):
        assert name + EVIL in words


def test_what_the_slider_reads_is_the_same_words_in_json() -> None:
    block = evil_page().one("script", type="application/json").text
    assert "<" not in block
    assert "isp" + EVIL in json.loads(block)["said"][0]


def test_nothing_is_loaded_from_anywhere() -> None:
    page = full()
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", page.source)
    assert page.all("link", "img", "iframe", "object", "embed", "base", "form") == []
    assert all(one.attributes["href"].startswith("#") for one in page.all("a"))
    assert not [one for one in page.elements if "src" in one.attributes]


def test_links_lead_to_something() -> None:
    for page in (full(), raw_only()):
        targets = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
        assert len(targets) == len(set(targets))
        assert {one.attributes["href"][1:] for one in page.all("a")} <= set(targets)


def test_the_policy_lets_only_this_script_run() -> None:
    page = evil_page()
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    script = next(one for one in page.all("script") if "type" not in one.attributes)
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-inline" not in policy.replace("style-src 'unsafe-inline'", "")


def test_a_large_audit_stays_under_two_megabytes() -> None:
    one, drawn = full_audit().spaces[1], Maps.of(full_audit())[0]
    many = [one.model_copy(update={"name": f"isp-{number}", "points": one.points * 5}) for number in range(8)]
    crowd = {"x": drawn.x * 20, "y": drawn.y * 20, "identity": [number // 16 for number in range(len(drawn.x) * 20)]}
    maps = MapResults(maps=[drawn.model_copy(update=crowd)] * 2)
    large = with_parts(full_audit(), maps=maps).model_copy(update={"spaces": [*full_audit().spaces, *many]})
    page = render_report(large)
    assert len(page.encode()) < 2_000_000
    assert re.search(r"\d+ more not drawn", page)
