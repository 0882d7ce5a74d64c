"""If these fail, a page cannot be read: in the dark, or because two spaces look alike."""

import re
from functools import cache

import pytest

from tests.documents.cases import documents
from tests.kit.documents import Layer, page, undrawn
from tests.kit.page import Page
from tests.kit.results import attribution, full_audit

SHARED = "#e3e5e8"
"""Lines of a grid, which are meant to be faint."""


@cache
def complete() -> Page:
    return Page(page(full_audit()))


def style(part: str) -> str:
    text = complete().one("style").text
    light, dark = text.split("@media (prefers-color-scheme: dark)", 1)
    return {"light": light, "dark": dark.split("* {")[0], "charts": dark.split("@media screen")[1]}[part]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "raised"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "bad", "warn"])
def test_text_can_be_read_on_its_paper(scheme: str, paper: str, ink: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", style(scheme)))
    assert contrast(colours[ink], colours[paper]) >= 4.5
    assert contrast(colours["bad"], colours["bad-paper"]) >= 4.5


def test_every_colour_of_the_charts_has_one_for_dark_paper() -> None:
    charts = "".join(re.findall(r'<svg class="chart".*?</svg>', complete().source, re.DOTALL))
    maps = complete().source[complete().source.index('<section id="maps"') :]
    people = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', maps[: maps.index("</section>")]))
    painted = set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', charts))
    assert len(painted) > 8
    for paint, colour in painted:
        found = re.search(rf'\[{paint}="{colour}"\] {{ {paint}: (#[0-9a-f]{{6}}); }}', style("charts"))
        assert found or colour in people, (paint, colour)
        if found and colour != SHARED:
            assert contrast(found[1], "#16181b") >= 4.5


def test_spaces_differ_in_look_and_look_the_same_in_every_chart() -> None:
    looks: dict[str, set[tuple[str, str]]] = {}
    with undrawn() as charts:
        page(documents()["audit/complete"].make())
    for layer in (layer for chart in charts for layer in chart.layers if "strokeDash" in layer["channels"]):
        colours, dashes = (_range(layer, channel) for channel in ("color", "strokeDash"))
        for name in colours:
            looks.setdefault(name, set()).add((str(colours[name]), str(dashes[name])))
    assert {"raw", "isp", "random", "pca"} <= set(looks)
    assert all(len(found) == 1 for found in looks.values()), "a method looks like the space it made"
    assert len({look for found in looks.values() for look in found}) == len(looks)


def _range(layer: Layer, channel: str) -> dict[str, object]:
    scale = layer["channels"][channel]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_axes_say_small_shares_in_full_and_are_marked_at_every_decade() -> None:
    text = {one.words for one in complete().all("text") if one.inside("section", id="curves")}
    assert {"0.1%", "1%", "10%", "100%", "1e-4"} <= text


def test_the_drawn_face_is_shaded_by_what_blurring_takes() -> None:
    with undrawn():
        shades = re.findall(r'fill-opacity="([\d.]+)"', page(attribution()))
    assert shades == ["0.50", "0.12", "0.12", "0.06"], "face, ring: 0.4, 0.1 in raw and 0.1, 0.05 after isp"


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
