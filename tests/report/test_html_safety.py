"""If these fail, a name in an audit can run as code in the reader's browser, or the page asks the network."""

import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest
from unface.report.looks import AXIS, ERASERS, GREY, GRID, INK

from tests.report.drawn import full, raw_only
from tests.report.evil import EVIL, evil_page
from tests.report.made_audit import full_audit
from unface.report.html import render_report


def test_no_name_in_an_audit_becomes_an_element() -> None:
    page, honest = evil_page(), full()
    assert page.all("img") == []
    assert [one.tag for one in page.elements] == [one.tag for one in honest.elements]
    assert [one.attributes.get("type") for one in page.all("script")] == ["application/json", None]
    assert not [name for one in page.elements for name in one.attributes if name.startswith("on")]


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
    one, drawn = full_audit().spaces[1], full_audit().maps[0]
    many = [one.model_copy(update={"name": f"isp-{number}", "points": one.points * 5}) for number in range(8)]
    crowd = {"x": drawn.x * 20, "y": drawn.y * 20, "identity": [number // 16 for number in range(len(drawn.x) * 20)]}
    maps = [drawn.model_copy(update=crowd)] * 2
    large = full_audit().model_copy(update={"spaces": [*full_audit().spaces, *many], "maps": maps})
    page = render_report(large)
    assert len(page.encode()) < 2_000_000
    assert re.search(r"\d+ more not drawn", page)


def style(part: str) -> str:
    text = files("unface.report").joinpath("page", "report.css").read_text(encoding="utf-8")
    light, dark = text.split("@media (prefers-color-scheme: dark)", 1)
    return {"light": light, "dark": dark.split("* {")[0], "charts": dark.split("@media screen")[1]}[part]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "raised"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "bad", "warn"])
def test_text_can_be_read_on_its_paper(scheme: str, paper: str, ink: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", style(scheme)))
    assert contrast(colours[ink], colours[paper]) >= 4.5
    assert contrast(colours["bad"], colours["bad-paper"]) >= 4.5


@pytest.mark.parametrize("colour", [INK, GREY, AXIS, GRID, *ERASERS])
def test_every_colour_of_the_charts_has_one_for_dark_paper(colour: str) -> None:
    for paint in ("fill", "stroke"):
        found = re.search(rf'\[{paint}="{colour}"\] {{ {paint}: (#[0-9a-f]{{6}}); }}', style("charts"))
        assert found
        if colour != GRID:
            assert contrast(found[1], "#16181b") >= 4.5


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
