"""If these fail, a page cannot be read: in the dark, or because two spaces look alike."""

import re
from functools import cache
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.documents.cases import documents
from tests.kit.documents import Layer, page, undrawn
from tests.kit.page import Page
from tests.kit.results import attribution, encoder, full_audit

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


def test_an_axis_of_whole_numbers_has_no_lines_between_them() -> None:
    counted = []
    for name in ("audit/complete", "validation/failed", "release/leaks", "inversion/failed"):
        document = documents()[name]
        with undrawn() as charts:
            page(document.make(), document.decision, document.history)
        axes = [layer["channels"].get("x", {}).get("axis") or {} for chart in charts for layer in chart.layers]
        counted += [axis for axis in axes if axis.get("format") == "d"]
    assert len(counted) > 20
    assert not any(axis["grid"] for axis in counted)


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


INK, GREY, AXIS = "#1f2328", "#767c85", "#4a4f57"


def drawings(axes: Literal["semi", "full"] = "semi", *, swapped: bool = True) -> list[str]:
    """The drawn face of each space."""
    one = encoder(swapped=swapped).model_copy(update={"axes": axes})
    with undrawn():
        html = page(attribution().model_copy(update={"encoders": [one]}))
    return re.findall(r'<svg class="chart" width="224".*?</svg>', html, re.DOTALL)


def paths(svg: str, **attributes: str) -> list[NDArray[np.float64]]:
    """Outlines, (n, 2) each, of the paths with these attributes."""
    found = []
    for tag in re.findall(r'<path d="M[^>]*?Z"[^>]*>', svg):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if all(given.get(name.replace("_", "-")) == value for name, value in attributes.items()):
            first = given["d"].split("Z")[0]
            found.append(np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", first), float))
    return found


def inside(outline: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(224, 224): the pixels of the canvas within."""
    canvas = Image.new("1", (224, 224))
    ImageDraw.Draw(canvas).polygon([(x - 0.5, y - 0.5) for x, y in outline], fill=1)
    return np.asarray(canvas)


@pytest.mark.parametrize("axes", ["semi", "full"])
def test_the_drawn_ellipse_and_ring_cover_what_they_did_on_average(axes: Literal["semi", "full"]) -> None:
    """The ellipse 26 % of the canvas, the ring as much again, the bold line 62 % of the background."""
    svg, _ = drawings(axes)
    (ellipse,) = paths(svg, stroke=AXIS, stroke_width="1.2")
    (ring,) = paths(svg, stroke=AXIS, stroke_dasharray="5 3")
    width, height = np.ptp(ellipse, axis=0)
    assert height / width == pytest.approx(1.3 * 1.15 / 1.2, rel=0.01)
    assert ellipse.mean(axis=0) == pytest.approx([112, 112], abs=0.1)
    assert inside(ellipse).mean() == pytest.approx(0.26, abs=0.01)
    assert inside(ring).mean() == pytest.approx(0.52, abs=0.01)
    background = ~inside(ellipse)
    dotted = paths(svg, stroke=GREY, stroke_dasharray="1 4")
    seen = [(inside(outline) & background).sum() / background.sum() for outline in dotted]
    assert seen == pytest.approx([0.25, 0.5, 0.75], abs=0.02)
    (bold,) = paths(svg, stroke=INK, stroke_width="2.5")
    assert (inside(bold) & background).sum() / background.sum() == pytest.approx(0.62, abs=0.02)


def test_without_swaps_no_share_of_the_background_is_marked() -> None:
    assert paths(drawings(swapped=False)[0], stroke_width="2.5") == []
