"""If these fail, the face that a page draws covers other shares of the picture than were measured."""

import re
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.kit.documents import page, undrawn
from tests.kit.results import attribution, encoder

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
